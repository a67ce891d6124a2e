//! The money of one call: which budgets it draws on, what is set aside for it, and what it came to.
//!
//! Money is set aside by the judge as its last check, and settled by the ticket. Limits in shadow are counted on
//! accounts of their own, and change nothing.

pub(super) mod unread;

use std::sync::Arc;

use sprag_core::event::{Ending, Event};
use sprag_core::id::RunId;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{
    AccountId, Asked, Budget, Denied, Draw, Draws, Estimate, Habits, Holder, Policy, Reservation, Reserve, Spender,
    StageAction, Stop, Weighed, Window, denied_refusal, draws, estimate, shortfall_refusal,
};
use sprag_core::price::{Price, cost};
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::{Call, Reply};
use sprag_store::RunKey;
use sprag_store::catalog::Snapshot;
use sprag_store::history::OpenCall;
use sprag_store::state::{Lesson, RunPlace};
use xxhash_rust::xxh3::xxh3_64;

use super::elsewhere::refers_elsewhere;
use super::killed::or_killed;
use super::pilot::Pilot;
use super::ticket::Ticket;
use crate::app::App;
use crate::config::Settings;
use crate::tokens::PromptSample;

/// Bytes of an answer that make a token, as long as nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;
/// Bytes of an answer after which is looked again whether what is set aside still pays for it.
const LOOK_BYTES: u64 = 512;

/// What is set aside for a call, and where.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    draws: Draws,
    /// None for a call that has no price.
    price: Option<Price>,
    asked: Asked,
    /// A stream was asked for.
    is_stream: bool,
    estimate: Estimate,
    /// Nothing like it was seen before.
    is_first: bool,
    /// Input tokens as they are expected, for an answer whose provider does not tell until its end.
    input_tokens: u64,
    reserved: Option<Reservation>,
    reserved_in_shadow: Option<Reservation>,
    next_look: u64,
    /// Output tokens that the provider had told at the last look.
    told: u64,
    /// Others of its kind wait for it.
    pilot: Option<Pilot>,
}

/// What a call asks, of whom, and where it stands.
pub(crate) struct Plan<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) policy: &'a Policy,
    pub(crate) call: &'a Call<'a>,
    pub(crate) price: Option<Price>,
    pub(crate) tree: &'a [RunPlace],
    pub(crate) habits: Habits,
    pub(crate) body: &'a [u8],
}

impl Spending {
    /// Plans the money of a call to a model: what its accounts have spent so far, and what it will cost.
    pub(crate) async fn plan(app: &Arc<App>, plan: Plan<'_>, ticket: &Ticket) -> Spending {
        let now = ticket.event().at;
        let mut draws = plan.draws(app, ticket, now);
        for draws in [&mut draws.enforced, &mut draws.shadow] {
            seed(app, draws, now).await;
        }
        let asked = asked(plan.call, plan.body, ticket.sample(), draws.reserve);
        let is_stream = plan.call.is_stream;
        let mut spending = Spending { draws, price: plan.price, asked, is_stream, ..Spending::default() };
        let (agent, model) = (&ticket.event().agent, plan.call.model.as_deref().unwrap_or_default());
        let known = || Some(plan.habits).filter(|habits| habits.calls > 0).or_else(|| app.state.habits(agent, model));
        spending.expect(known());
        if spending.is_first && !spending.draws.enforced.is_empty() {
            // Whoever was ahead has shown meanwhile what such a call costs.
            let lead = app.pilots.lead(xxh3_64(model.as_bytes()));
            // Who is killed meanwhile is refused by the judge.
            spending.pilot = or_killed(lead, ticket.watch()).await.ok().flatten();
            spending.expect(known());
            if !spending.is_first {
                spending.pilot = None;
            }
        }
        spending
    }

    /// Sets the money aside, on all accounts or on none.
    pub(crate) fn reserve(&mut self, app: &App, now: Timestamp) -> Weighed {
        let mut weighed = Weighed::default();
        let kills = self.draws.kills_run;
        match self.set_aside(app, &self.draws.enforced, now) {
            Ok(reserved) => self.reserved = reserved,
            Err(denied) => {
                weighed.stop = Some(denied_refusal(&denied, kills, now));
                return weighed;
            }
        }
        match self.set_aside(app, &self.draws.shadow, now) {
            Ok(reserved) => self.reserved_in_shadow = reserved,
            Err(denied) => weighed.would_stop.push(denied_refusal(&denied, false, now).refusal),
        }
        for (held, stage) in self.reserved.iter().flat_map(Reservation::stages_reached) {
            if let StageAction::Throttle { delay_ms } = stage.action {
                weighed.delay_ms = weighed.delay_ms.max(Some(delay_ms));
            }
            weighed.warning.get_or_insert_with(|| {
                format!("{} has used {} % of its ${} budget", held.draw.id, stage.at, held.draw.limit)
            });
        }
        weighed
    }

    /// Whether the call has a price.
    pub(crate) fn is_priced(&self) -> bool {
        self.price.is_some()
    }

    /// Tokens that the call is expected to use, for rates.
    pub(crate) fn tokens(&self) -> u64 {
        self.estimate.tokens
    }

    /// What is set aside.
    pub(crate) fn reserved(&self) -> NanoUsd {
        self.reserved.as_ref().map_or(NanoUsd::ZERO, |reserved| reserved.amount)
    }

    /// What is to be on record before the call goes out, in case Sprag ends before the call does.
    pub(crate) fn open_call(&self, event: &Event) -> Option<OpenCall> {
        let reserved = Some(self.reserved()).filter(|reserved| *reserved > NanoUsd::ZERO)?;
        Some(OpenCall {
            id: event.id.clone(),
            at: event.at,
            agent: event.agent.clone(),
            key: event.key.clone(),
            run: event.run.clone(),
            provider: event.provider.clone(),
            dialect: event.dialect,
            path: event.path.clone(),
            model: event.model.clone(),
            reserved,
        })
    }

    /// Sets more aside for an answer that has come further than what is set aside pays for.
    ///
    /// # Errors
    /// When there is no more: the answer must be cut.
    pub(crate) fn follow(
        &mut self,
        app: &App,
        reply: &Reply,
        sample: &PromptSample,
        event: &Event,
    ) -> Result<(), Stop> {
        let (Some(price), Some(reserved)) = (&self.price, &mut self.reserved) else { return Ok(()) };
        let so_far = answer_bytes(reply);
        // What a model thinks may be told in numbers alone.
        let told = reply.usage.map_or(0, |usage| usage.output);
        if so_far < self.next_look && told <= self.told {
            return Ok(());
        }
        (self.next_look, self.told) = (so_far + LOOK_BYTES, told);
        let spent = cost(price, &used_so_far(reply, so_far, self.input_tokens));
        if spent <= reserved.amount {
            return Ok(());
        }
        // First with room to go on for a while, then with just what it has come to.
        let with_room = NanoUsd(spent.0.saturating_add(spent.0 / 4));
        if app.state.raise(reserved, with_room).or_else(|_| app.state.raise(reserved, spent)).is_ok() {
            return Ok(());
        }
        // Its length is only a guess at its cost: nothing is cut off before it is counted.
        let counted = app.tokens.complete(event.model.as_deref().unwrap_or_default(), sample, reply);
        let counted = cost(price, &counted);
        let raised = app.state.raise(reserved, counted);
        // The nearer the end, the sooner the next look.
        let room = app.state.room(reserved) + reserved.amount - counted;
        let tokens_left = (u128::try_from(room.0).unwrap_or(0) * 1000).checked_div(u128::from(price.rates.output.0));
        let tokens_left = tokens_left.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(u64::MAX);
        self.next_look = so_far + tokens_left.clamp(1, LOOK_BYTES / BYTES_PER_TOKEN) * BYTES_PER_TOKEN;
        raised.map_err(|shortfall| shortfall_refusal(&shortfall, self.draws.kills_run, app.clock.now()))
    }

    /// What a call costs whose answer was made and not read: nobody waited for its end, or it broke off. It is charged
    /// what was set aside, for the provider charges for it too. Nothing for a stream: that ends when its reader leaves,
    /// and what was said until then is counted.
    pub(crate) fn unread_cost(&self, event: &Event, reply: &Reply, status: Option<u16>) -> Option<NanoUsd> {
        let was_made = match status {
            Some(status) => status < 400,
            None => matches!(event.ending, Ending::ClientGone | Ending::Killed | Ending::TimedOut),
        };
        // In the background an answer is made after this one, which only promises it.
        let is_promise = matches!(reply.finish.as_deref(), Some("queued" | "in_progress"));
        let is_known = (reply.complete && !is_promise) || reply.usage.is_some() || reply.error.is_some();
        let is_charged = was_made && !is_known && !self.is_stream && !event.stream && self.price.is_some();
        is_charged.then(|| self.reserved()).filter(|reserved| *reserved > NanoUsd::ZERO)
    }

    /// What the call teaches about those after it.
    pub(crate) fn lesson(&self, usage: &Usage) -> Option<Lesson> {
        let price = self.price.as_ref()?;
        let input = cost(price, &Usage { output: 0, reasoning: 0, audio_output: 0, ..*usage });
        let input_full_tokens = match price.rates.input.0 {
            0 => usage.prompt_tokens() as f64,
            pico => input.0 as f64 * 1000.0 / pico as f64,
        };
        Some(Lesson {
            prompt_bytes: self.asked.prompt_bytes,
            input_full_tokens,
            output_tokens: usage.output / u64::from(self.asked.choices.max(1)),
        })
    }

    /// Gives back what was set aside and books what the call cost. Stages that are reached by that are put on record.
    pub(crate) fn settle(&mut self, app: &App, event: &Event) {
        let cost = event.cost.unwrap_or_default();
        let draws = std::mem::take(&mut self.draws);
        let crossed = match self.reserved.take() {
            Some(reserved) => app.state.settle_money(&reserved, cost),
            None => app.state.charge(&draws.enforced, cost),
        };
        match self.reserved_in_shadow.take() {
            Some(reserved) => drop(app.state.settle_money(&reserved, cost)),
            None => drop(app.state.charge(&draws.shadow, cost)),
        }
        self.pilot = None;
        if cost > NanoUsd::ZERO {
            let is_drawn = |id: &AccountId| [&draws.enforced, &draws.shadow].iter().any(|of| drawn(of, id));
            app.state.charge_late(payers(event).filter(|id| !is_drawn(id)), event.at, cost);
        }
        for crossed in crossed {
            app.record_reached(&crossed, event);
        }
    }

    fn set_aside(&self, app: &App, draws: &[Draw], now: Timestamp) -> Result<Option<Reservation>, Denied> {
        if draws.is_empty() {
            return Ok(None);
        }
        // A call without a price must still meet a budget that is used up.
        let (amount, least) = match &self.price {
            Some(_) => (self.estimate.amount, self.estimate.least()),
            None => (NanoUsd(1), NanoUsd(1)),
        };
        app.state.reserve(draws, amount, least, now).map(Some)
    }

    /// Estimates the call by what calls like it used.
    fn expect(&mut self, habits: Option<Habits>) {
        let free = Price::default();
        let price = self.price.as_ref().unwrap_or(&free);
        self.estimate = estimate(&self.asked, price, habits.as_ref(), self.draws.reserve);
        let per_byte = habits.map_or(0.0, |habits| habits.tokens_per_byte);
        self.input_tokens = match per_byte > 0.0 {
            true => (self.asked.prompt_bytes as f64 * f64::from(per_byte)) as u64,
            false => self.asked.prompt_bytes / BYTES_PER_TOKEN,
        };
        self.is_first = self.estimate.guessed > NanoUsd::ZERO;
        // What calls like it used may be more than a limit ever allows. That alone is no reason to refuse this one, for
        // refused calls teach nothing, and it would never end.
        let tightest = self.draws.enforced.iter().map(|draw| draw.limit).min();
        let never_fits = tightest.is_some_and(|limit| self.estimate.amount > limit);
        if self.draws.reserve == Reserve::Expected && never_fits {
            let input = cost(price, &Usage { input: self.input_tokens, ..Usage::default() });
            self.estimate.guessed = (self.estimate.amount - input).max(self.estimate.guessed);
        }
    }
}

impl Plan<'_> {
    fn draws(&self, app: &App, ticket: &Ticket, now: Timestamp) -> Draws {
        Payer { settings: self.settings, policy: self.policy, tree: self.tree }.draws(app, ticket, now)
    }
}

/// Who pays for a call, whatever it is.
struct Payer<'a> {
    settings: &'a Settings,
    policy: &'a Policy,
    tree: &'a [RunPlace],
}

impl Payer<'_> {
    fn draws(&self, app: &App, ticket: &Ticket, now: Timestamp) -> Draws {
        let key = ticket.key().map(|entry| (entry.key.id.as_str(), &entry.key.budget));
        let (budget, everything) = (&self.policy.budget, &self.settings.budget.budget);
        let is_set = |budget: &Budget| budget.is_set();
        if !is_set(budget) && !is_set(everything) && !key.is_some_and(|(_, budget)| is_set(budget)) {
            return Draws::default();
        }
        let agent = &ticket.event().agent;
        let snapshot = app.catalog.snapshot();
        let runs: Vec<(RunId, NanoUsd)> = self
            .tree
            .iter()
            .map(|place| {
                let run = RunKey { agent: agent.clone(), id: place.id.clone() };
                (place.id.clone(), spent_by_run(&snapshot, &run, place.tree_cost))
            })
            .collect();
        let (day, month) = app.windows.at(&self.settings.budget.zone, now);
        draws(&Spender { agent, key, budget, everything, runs: &runs, day, month })
    }
}

/// What a run has spent since it was last resumed, with what was adjusted by hand.
fn spent_by_run(snapshot: &Snapshot, run: &RunKey, tree_cost: NanoUsd) -> NanoUsd {
    let before = snapshot.mark(run).map_or(NanoUsd::ZERO, |mark| mark.cost);
    let holder = Holder::Run(run.agent.clone(), run.id.clone());
    let id = AccountId { holder, window: Window::Run, is_shadow: false };
    (tree_cost - before + snapshot.adjustment(&id, Timestamp(0))).max(NanoUsd::ZERO)
}

/// Looks up what accounts have spent that are not open yet.
async fn seed(app: &Arc<App>, draws: &mut [Draw], now: Timestamp) {
    for place in app.state.unseeded(draws, now) {
        let draw = &mut draws[place];
        // What a run has spent, the run itself knows.
        if draw.id.window == Window::Run {
            continue;
        }
        let (app, id, start) = (app.clone(), draw.id.clone(), draw.span.start);
        let spent = tokio::task::spawn_blocking(move || app.spent(&id, start)).await;
        // A budget of which nobody knows what is left has nothing left.
        draw.seed = spent.ok().flatten().unwrap_or(draw.limit);
    }
}

fn drawn(draws: &[Draw], id: &AccountId) -> bool {
    draws.iter().any(|draw| draw.id == *id)
}

/// Every account that a call would count in, if there were a limit.
fn payers(event: &Event) -> impl Iterator<Item = AccountId> {
    let runs = event.run.iter().flat_map(|run| [Some(&run.id), run.parent.as_ref()]).flatten();
    let runs = runs.map(|run| (Holder::Run(event.agent.clone(), run.clone()), Window::Run));
    let key = event.key.as_deref().map(|key| Holder::Key(key.into()));
    let others = key.into_iter().chain([Holder::Agent(event.agent.clone()), Holder::Everything]);
    let others = others.flat_map(|holder| [Window::Day, Window::Month].map(|window| (holder.clone(), window)));
    let ids = |(holder, window): (Holder, Window)| {
        [false, true].map(|is_shadow| AccountId { holder: holder.clone(), window, is_shadow })
    };
    runs.chain(others).flat_map(ids)
}

fn asked(call: &Call<'_>, body: &[u8], sample: &PromptSample, reserve: Reserve) -> Asked {
    // Only an upper bound must know what the body does not show.
    let is_strict = reserve == Reserve::WorstCase;
    Asked {
        prompt_bytes: sample.bytes(),
        doubtful_bytes: sample.doubtful_bytes(),
        attachments: sample.inlined(),
        is_open_ended: is_strict && (call.is_continued || refers_elsewhere(body)),
        max_output_tokens: call.max_output_tokens,
        choices: call.choices,
    }
}

/// What an answer has used so far. What the provider has not told yet is guessed by its length.
fn used_so_far(reply: &Reply, bytes: u64, input_tokens: u64) -> Usage {
    let mut usage = reply.usage.unwrap_or(Usage { input: input_tokens, ..Usage::default() });
    usage.output = usage.output.max(bytes / BYTES_PER_TOKEN);
    usage
}

fn answer_bytes(reply: &Reply) -> u64 {
    let calls = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
    reply.text_bytes.saturating_add(reply.reasoning_bytes).saturating_add(calls as u64)
}
