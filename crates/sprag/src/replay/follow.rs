//! One recorded run, followed step by step as the proxy would have.

use sprag_core::loops::{
    Action, AgentWatch, Arrival, Departure, Finding, Mode, PromptScope, RepeatCounters, Rules, RunWatch, Verdict,
    decide, fingerprint, read_turn,
};
use sprag_core::money::NanoUsd;
use sprag_core::price::{Prices, cost};
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, Dialect, Family, Reply};
use xxhash_rust::xxh3::Xxh3;

/// Where a run would have been stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The request that is refused, 1 for the first of the run.
    pub step: u32,
    /// What would have been done.
    pub action: Action,
    /// Why.
    pub finding: Finding,
}

/// Steps and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps.
    pub steps: u32,
    /// The known part of their cost.
    pub cost: NanoUsd,
    /// Steps whose tokens or price are not on record.
    pub unpriced_steps: u32,
}

/// A run under way.
pub struct Follow<'a> {
    rules: &'a Rules,
    prices: &'a Prices,
    is_declared: bool,
    run: RunWatch,
    /// Of this run alone: recorded runs of one agent do not influence each other.
    agent: AgentWatch,
    repeats: RepeatCounters,
    model: Option<String>,
    total: Spent,
    /// From the stop on.
    saved: Spent,
    stop: Option<Stop>,
    latest: Timestamp,
}

/// What became of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The model of its first call.
    pub model: Option<String>,
    /// All that was recorded.
    pub total: Spent,
    /// The part that would not have happened.
    pub saved: Spent,
    /// Where it would have been stopped.
    pub stop: Option<Stop>,
    /// When it was last heard of; long ago where the recording has no dates.
    pub ended: Timestamp,
}

impl<'a> Follow<'a> {
    /// Begins to follow a run; `is_declared` when its caller named it.
    #[must_use]
    pub fn new(rules: &'a Rules, prices: &'a Prices, is_declared: bool) -> Follow<'a> {
        Follow {
            rules,
            prices,
            is_declared,
            run: RunWatch::default(),
            agent: AgentWatch::default(),
            repeats: RepeatCounters::default(),
            model: None,
            total: Spent::default(),
            saved: Spent::default(),
            stop: None,
            latest: Timestamp::default(),
        }
    }

    /// Whether the run is stopped: its further steps are counted and not looked at.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// A request arrives; `end` is the hash of its whole conversation, where it carries one.
    pub fn arrive(&mut self, call: &Call<'_>, end: Option<u64>, now: Timestamp) {
        self.count(call.model.as_deref());
        self.latest = self.latest.max(now);
        if self.is_stopped() {
            return;
        }
        let turn = read_turn(call, self.rules.prompt_scope == PromptScope::LastUserMessage);
        let step = self.total.steps;
        let arrival = Arrival { step, now, end, turn: &turn, is_declared: self.is_declared };
        let mut findings = self.run.arrive(&arrival, self.rules).findings;
        findings.extend(self.agent.arrive(0, self.run.is_retry(), &arrival, self.rules));
        if self.rules.repeat.common.mode != Mode::Off {
            findings.extend(self.repeats.check(request_hash(call), now, &self.rules.repeat));
        }
        let decision = decide(findings, self.rules, self.run.strikes(), step);
        // What shadow would have done is what is asked here.
        let stops = |verdict: &Verdict| verdict.action.stops();
        let verdict = decision.enforced.filter(stops).or(decision.shadow.filter(stops));
        self.stop = verdict.map(|verdict| Stop { step, action: verdict.action, finding: verdict.finding });
        if self.is_stopped() {
            self.saved.steps = 1;
        }
    }

    /// The same request comes once more after a stop, or cannot be read: it is a step and nothing else.
    pub fn count(&mut self, model: Option<&str>) {
        self.total.steps += 1;
        self.saved.steps += u32::from(self.is_stopped());
        if self.model.is_none() {
            self.model = model.map(str::to_owned);
        }
    }

    /// The answer to the latest request is over.
    pub fn depart(&mut self, dialect: Dialect, reply: &Reply, is_answered: bool, now: Timestamp) {
        let cost = self.cost(dialect, reply);
        self.latest = self.latest.max(now);
        spend(&mut self.total, cost);
        if self.is_stopped() {
            return spend(&mut self.saved, cost);
        }
        let tokens = reply.usage.map_or(0, |usage| usage.total_tokens());
        let departure = Departure { step: self.total.steps, now, reply, is_answered, cost, tokens };
        self.run.depart(&departure);
        self.agent.depart(0, &departure, self.rules);
    }

    /// What became of the run.
    #[must_use]
    pub fn finish(self) -> Outcome {
        Outcome { model: self.model, total: self.total, saved: self.saved, stop: self.stop, ended: self.latest }
    }

    fn cost(&self, dialect: Dialect, reply: &Reply) -> Option<NanoUsd> {
        let provider = match dialect.family() {
            Some(Family::Anthropic) => "anthropic",
            Some(Family::Gemini) => "gemini",
            _ => "openai",
        };
        let find = |model: &str| self.prices.find(provider, model);
        let price = reply.model.as_deref().and_then(find).or_else(|| find(self.model.as_deref()?))?;
        reply.usage.map(|usage| cost(price, &usage))
    }
}

/// What makes two requests of a recording the same.
fn request_hash(call: &Call<'_>) -> u64 {
    let mut body = Xxh3::new();
    for item in call.items.iter().chain(&call.prompt) {
        body.update(item.get().as_bytes());
    }
    fingerprint("POST", call.dialect.name(), "", Some(body.digest()), &[])
}

fn spend(spent: &mut Spent, cost: Option<NanoUsd>) {
    match cost {
        Some(cost) => spent.cost += cost,
        None => spent.unpriced_steps += 1,
    }
}
