//! One call's account: written when the request arrives, settled exactly once, whatever happens.
//!
//! The ticket travels with the answer's body. Finished, failed, refused, abandoned or panicked, it settles: by
//! [`Ticket::settle`], or when it is dropped without that.

mod farewell;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::request::Parts;
use sprag_core::dlp::Sightings;
use sprag_core::event::{Ending, Event, EventKind, RunRecord, WouldBlock};
use sprag_core::id::AgentName;
use sprag_core::loops::{Action, Finding, Mode, Rules, Verdict};
use sprag_core::policy::{Advice, Delay, Kill, chanting, killed};
use sprag_core::price::cost;
use sprag_core::run::{Remember, Scope};
use sprag_core::usage::Usage;
use sprag_core::wire::{History, Refusal, Reply};
use sprag_store::RunKey;
use sprag_store::catalog::{KeyEntry, Snapshot};
use sprag_store::history::OpenCall;
use sprag_store::state::RatesTaken;

pub(crate) use self::farewell::Settling;
use super::abreast::Line;
use super::chant::Listener;
use super::detect::{self, Looked, Seen, SeenRun};
use super::killed::{KillWatch, Watched};
use super::plain;
use super::route::Route;
use super::settled::{Settled, settle_run};
use super::share::{Farewell, Held, Over};
use super::spending::Spending;
use super::trail::Trail;
use crate::app::App;
use crate::config::Provider;
use crate::tokens::PromptSample;
use crate::vaults::VaultKey;

/// What one call holds open.
pub(crate) struct Ticket {
    app: Arc<App>,
    provider: Arc<Provider>,
    /// Filled as the call goes on; recorded when it settles.
    event: Event,
    /// When what happened to it.
    trail: Trail,
    /// The virtual key that the call came with.
    key: Option<Arc<KeyEntry>>,
    run: Option<TicketRun>,
    /// What kills are held against; absent until the caller is known.
    watched: Option<Arc<Watched>>,
    /// The rules by which detection looked at the request; absent where it did not.
    rules: Option<Arc<Rules>>,
    /// What it takes of rates and budgets.
    rates: RatesTaken,
    spending: Spending,
    /// Something that the caller is told with the answer.
    warning: Option<String>,
    /// The request had to wait.
    delay: Option<Delay>,
    /// Counted for its agent, outside any run.
    has_entered: bool,
    arrived: Instant,
    sample: PromptSample,
    /// The request was handed to the upstream: from then on it may cost something.
    was_sent: bool,
    /// The upstream's status; what the client gets may be another one.
    answered_with: Option<u16>,
    /// The upstream failed, and how.
    failed_as: Option<Ending>,
    /// How other nodes hear of it; absent for a Sprag on its own.
    shared: Option<Held>,
    /// What is waited for before the client has the whole answer.
    farewell: Option<Farewell>,
    /// On its way to be counted: dropped before that, it settles without.
    is_counting: bool,
    is_settled: bool,
}

/// The run of a call, and what the call will leave behind as evidence.
pub(crate) struct TicketRun {
    pub(crate) key: RunKey,
    pub(crate) scope: Scope,
    pub(crate) history: Option<History>,
    /// What later requests need, once it is left behind.
    pub(crate) left: Option<Remember>,
}

impl Ticket {
    /// The line that its call goes through.
    pub(crate) fn line(&self) -> &Line {
        &self.app.line
    }

    /// A ticket for a request that has just arrived.
    pub(crate) fn new(app: Arc<App>, route: &Route<'_>, head: &Parts, arrived: Instant) -> Ticket {
        let now = app.clock.now();
        let path = plain::path(&app.settings.load().dlp.scanner, route.path);
        let kind = if route.dialect.is_llm() { EventKind::LlmCall } else { EventKind::Request };
        let event = Event {
            provider: route.provider.name.to_string(),
            dialect: route.dialect,
            path: format!("{} {path}", head.method),
            ending: Ending::ClientGone,
            ..Event::new(app.ids.request(now), now, kind)
        };
        Ticket {
            trail: Trail::new(&app, &head.headers, arrived),
            app,
            provider: route.provider.clone(),
            event,
            key: None,
            run: None,
            watched: None,
            rules: None,
            rates: RatesTaken::default(),
            spending: Spending::default(),
            warning: None,
            delay: None,
            has_entered: false,
            arrived,
            sample: PromptSample::default(),
            was_sent: false,
            answered_with: None,
            failed_as: None,
            shared: None,
            farewell: None,
            is_counting: false,
            is_settled: false,
        }
    }

    /// When the request arrived.
    pub(crate) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The event as it stands.
    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// What is noted of its way.
    pub(crate) fn trail(&mut self) -> &mut Trail {
        &mut self.trail
    }

    /// Who calls, and for which model.
    pub(crate) fn set_caller(&mut self, agent: AgentName, model: Option<&str>) {
        self.event.agent = agent;
        self.event.model = model.map(|name| name[..name.floor_char_boundary(plain::MODEL_SEEN_BYTES)].to_owned());
    }

    /// The virtual key that the call came with: it says who calls.
    pub(crate) fn set_key(&mut self, entry: Arc<KeyEntry>) {
        self.event.agent = entry.key.agent.clone();
        self.event.key = Some(entry.key.id.clone());
        self.key = Some(entry);
    }

    /// The virtual key that the call came with.
    pub(crate) fn key(&self) -> Option<&Arc<KeyEntry>> {
        self.key.as_ref()
    }

    /// The call was opened in its run, and must be settled there.
    pub(crate) fn set_run(&mut self, run: TicketRun, record: RunRecord) {
        self.run = Some(run);
        self.event.run = Some(record);
    }

    /// What kills are held against from now on.
    pub(crate) fn set_watched(&mut self, watched: Watched) {
        self.watched = Some(Arc::new(watched));
    }

    /// The kill that stops the call.
    pub(crate) fn kill(&self, snapshot: &Snapshot) -> Option<Arc<Kill>> {
        self.watched.as_ref()?.kill(&self.app, snapshot)
    }

    /// Ready when the call is killed.
    pub(crate) fn watch(&self) -> Option<KillWatch> {
        self.watched.as_ref().map(|watched| watched.watch(&self.app))
    }

    /// Lets go of the buffer that the request stands in, because the answer may take long. What was ready when the call is
    /// killed is replaced by what is given back.
    pub(crate) fn release_request(&mut self) -> Option<KillWatch> {
        self.watched = self.watched.take().map(|watched| Arc::new(watched.packed()));
        self.watch()
    }

    /// The request as detection sees it.
    pub(crate) fn seen<'a>(&'a self, head: &'a Parts, body: &'a [u8]) -> Seen<'a> {
        let run = self.run.as_ref().zip(self.event.run.as_ref()).map(|(run, record)| SeenRun {
            key: &run.key,
            step: record.step,
            origin: record.origin,
            history: run.history.as_ref(),
        });
        Seen { agent: &self.event.agent, run, now: self.event.at, head, body }
    }

    /// What detection found, and the rules by which it will look at the answer.
    pub(crate) fn set_verdict(&mut self, rules: Arc<Rules>, looked: Looked) {
        self.rules = Some(rules);
        self.trail.detected = looked.leg;
        self.event.verdict = looked.decision.enforced;
        self.event.shadow = looked.decision.shadow.filter(|verdict| verdict.action.stops());
        self.event.level = looked.level;
        self.event.evidence = looked.evidence;
    }

    /// How other nodes hear of the call.
    pub(crate) fn set_shared(&mut self, held: Held) {
        self.shared = Some(held);
    }

    /// How other nodes hear of the call, if they do.
    pub(crate) fn shared(&mut self) -> Option<&mut Held> {
        self.shared.as_mut()
    }

    /// Why limits in shadow would have refused the call.
    pub(crate) fn set_would_block(&mut self, would_block: Vec<WouldBlock>) {
        self.event.would_block = would_block;
    }

    /// Secrets and personal data that were found in the request or in the answer.
    pub(crate) fn add_sightings(&mut self, sightings: Sightings) {
        if sightings.total > 0 {
            self.event.dlp.get_or_insert_default().absorb(sightings);
        }
    }

    /// Whose hidden values these are: others may name the same run, and get nothing of them.
    pub(crate) fn vault_key(&self) -> Option<VaultKey> {
        self.run.as_ref().map(|run| (run.key.clone(), run.scope))
    }

    /// The answer holds what may not pass; gives what the client is told.
    pub(crate) fn withheld(&mut self, refusal: Refusal) -> Refusal {
        let refusal = self.signed(refusal);
        self.mark_failed(Ending::CutOff, refusal.reason.as_str());
        self.event.blocked = true;
        self.event.block_reason = Some(refusal.reason.as_str().to_owned());
        refusal
    }

    /// What the call takes of rates and budgets, to be given back or booked when it settles.
    pub(crate) fn set_limits(&mut self, rates: RatesTaken, spending: Spending) {
        self.rates = rates;
        self.spending = spending;
    }

    /// The call may go out, when what is set aside for it is [on record](Ticket::write_out).
    pub(crate) fn mark_permitted(&mut self, advice: &Advice) {
        self.warning.clone_from(&advice.warning);
        if let Some(open) = self.open_call() {
            self.app.history.note_opened(open);
        }
    }

    /// Writes down what was noted of this call, and of others that go through the line with it.
    pub(crate) fn write_out(&self) {
        self.app.history.write_out();
    }

    /// Sets more aside for an answer that is longer than expected. Gives what the client is told when there is no more,
    /// and the answer must be cut.
    pub(crate) fn outruns(&mut self, reply: &Reply) -> Option<Refusal> {
        let before = self.spending.reserved();
        let call = self.shared.as_ref().and_then(Held::call);
        let followed = self.spending.follow(&self.app, call, reply, &self.sample, &self.event);
        let Err(stop) = followed else {
            if self.spending.reserved() != before
                && let Some(open) = self.open_call()
            {
                self.app.history.opened(&open);
            }
            return None;
        };
        if let Some(consequence) = stop.consequence {
            let (app, agent) = (self.app.clone(), self.event.agent.clone());
            self.app.settling.spawn(async move { app.follow(agent, *consequence).await });
        }
        let refusal = self.signed(stop.refusal);
        self.mark_failed(Ending::CutOff, refusal.reason.as_str());
        Some(refusal)
    }

    /// Waits for money that an answer cannot go on without. Ready with true when it has waited, and is to be
    /// [looked at](Ticket::outruns) again.
    pub(crate) fn poll_money(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.spending.poll_raise(cx)
    }

    /// Listens to the answer, where the rules ask for that.
    pub(crate) fn listener(&self) -> Option<Listener> {
        self.rules.as_ref().and_then(Listener::new)
    }

    /// The answer repeats itself. Gives what the client is told when it is cut off; None where that is only noted.
    pub(crate) fn chants(&mut self, finding: Finding) -> Option<Refusal> {
        let action = self.rules.as_ref().map_or(Action::Reject, |rules| rules.chant.common.action);
        let is_enforced = finding.mode == Mode::Enforce;
        let refusal = self.signed(chanting(&finding));
        let verdict = Verdict { finding, action, strike: 1, retry_seconds: None };
        if !is_enforced {
            self.event.shadow.get_or_insert(verdict);
            return None;
        }
        self.event.verdict = Some(verdict);
        if !action.stops() {
            return None;
        }
        // The call was made and counts as a step: a model that chants at every try must meet the run's limit.
        self.mark_failed(Ending::CutOff, refusal.reason.as_str());
        Some(refusal)
    }

    /// The request waited.
    pub(crate) fn mark_delayed(&mut self, delay: Delay) {
        self.delay = Some(delay);
        self.trail.mark_waited(delay);
    }

    /// How long it waited, and why.
    pub(crate) fn delay(&self) -> Option<Delay> {
        self.delay
    }

    /// The request belongs to no run, and counts for its agent until it is settled.
    pub(crate) fn enter(&mut self) -> u32 {
        self.has_entered = true;
        self.app.state.enter(&self.event.agent)
    }

    /// What is kept of the prompt.
    pub(crate) fn sample(&self) -> &PromptSample {
        &self.sample
    }

    /// Keeps what is needed of a request body in case its tokens must be counted.
    pub(crate) fn keep_sample(&mut self, body: &[u8]) {
        self.sample = PromptSample::of(body);
    }

    /// The request goes upstream now; `read_at` is when its last byte had arrived.
    pub(crate) fn mark_sent(&mut self, read_at: Instant) {
        self.was_sent = true;
        let now = Instant::now();
        self.trail.mark_sent(read_at, now);
        self.event.overhead_us = u32::try_from((now - read_at).as_micros()).unwrap_or(u32::MAX);
    }

    /// The status and form of the answer.
    pub(crate) fn mark_answered(&mut self, status: u16, is_stream: bool) {
        self.answered_with = Some(status);
        self.trail.answered_with = Some(status);
        self.event.status = status;
        if status >= 400 {
            self.spending.teaches_nothing();
        }
        self.event.stream = is_stream;
    }

    /// The first byte of the answer's body passes now.
    pub(crate) fn mark_first_byte(&mut self) {
        if self.event.first_byte_ms.is_none() {
            let now = Instant::now();
            self.event.first_byte_ms = Some(between_ms(self.arrived, now));
            self.trail.mark_first_byte(now);
        }
    }

    /// The upstream failed; `why` holds no content of the call.
    pub(crate) fn mark_failed(&mut self, ending: Ending, why: impl Into<String>) {
        self.failed_as = Some(ending);
        self.event.error = Some(why.into());
    }

    /// How the call failed, if it did.
    pub(crate) fn failed_as(&self) -> Option<Ending> {
        self.failed_as
    }

    /// The client is told something else than the provider said.
    pub(crate) fn set_status(&mut self, status: u16) {
        self.event.status = status;
    }

    /// The call is killed while it is under way; gives what the client is told.
    pub(crate) fn killed(&mut self, kill: &Kill) -> Refusal {
        let refusal = self.signed(killed(kill));
        self.mark_failed(Ending::Killed, refusal.reason.as_str());
        self.event.blocked = true;
        self.event.block_reason = Some(refusal.reason.as_str().to_owned());
        refusal
    }

    /// Refuses the call and settles it.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) {
        self.event.status = refusal.status;
        if refusal.reason.is_policy() {
            self.event.blocked = true;
            self.event.block_reason = Some(refusal.reason.as_str().to_owned());
        }
        self.event.error.get_or_insert_with(|| refusal.reason.as_str().to_owned());
        self.settle_aside(&Reply::default(), self.failed_as.unwrap_or(Ending::Refused));
    }

    /// Closes the account: usage to cost, cost to the run, evidence remembered, the event noted. Only the first
    /// call does anything. The caller writes the record out.
    fn settle(&mut self, reply: &Reply, usage: Option<Usage>, ending: Ending) -> Option<Settled> {
        if std::mem::replace(&mut self.is_settled, true) {
            return None;
        }
        let (ended_at, now) = (Instant::now(), self.app.clock.now());
        let event = &mut self.event;
        event.ending = ending;
        event.total_ms = between_ms(self.arrived, ended_at);
        event.finish = reply.finish.clone();
        event.tools = reply.tool_calls.iter().map(|call| call.name.clone()).collect();
        event.usage = usage;
        event.model = event.model.take().or_else(|| reply.model.clone());
        if let Some(usage) = &event.usage {
            let price = self.app.price(&self.provider, reply.model.as_deref(), event.model.as_deref());
            event.cost = price.as_ref().map(|price| cost(price, usage));
            event.unpriced = event.cost.is_none() && usage.total_tokens() > 0;
            self.trail.priced_as = price.map(|price| price.model);
        }
        if self.was_sent {
            event.cost = event.cost.max(self.spending.unread_cost(event, reply, self.answered_with));
        }
        plain::event(&self.app.settings.load().dlp.scanner, event);
        let runs = self.watched.as_ref().map_or(&[][..], |watched| &watched.runs);
        let late = self.spending.begin_record(&self.app, event, runs);
        let lesson = event.usage.filter(|_| ending == Ending::Complete).and_then(|usage| self.spending.lesson(&usage));
        let has_taught = lesson.is_some();
        if self.was_sent && !has_taught {
            self.spending.teaches_nothing();
        }
        let warning = self.warning.take();
        let settled = self.run.as_mut().map(|run| settle_run(&self.app, run, event, reply, lesson, warning, now));
        if let Some((run, rules)) = self.run.as_ref().zip(self.rules.as_ref()) {
            detect::depart(&self.app, rules, &run.key, event, reply, now);
        }
        if self.has_entered {
            self.app.state.leave(&event.agent);
        }
        self.trail.finish(&self.app, &self.provider, event, reply, ended_at);
        self.app.note_in_trace(event, self.trail.trace_id().as_deref());
        // Recorded first: should Sprag end in between, what is set aside is charged or the cost is, and never both.
        let used = event.usage.map_or(0, |usage| usage.total_tokens());
        self.app.state.correct_rates(&std::mem::take(&mut self.rates), used);
        if let Some(held) = self.shared.take() {
            let (run, draws, late) = (self.run.as_ref(), self.spending.draws(), late.ids());
            self.farewell = held.end(&self.app, Over { event, run, draws, late, has_taught });
        }
        self.spending.settle(&self.app, event, runs, late);
        settled
    }

    /// A refusal that says whose call it was.
    fn signed(&self, refusal: Refusal) -> Refusal {
        let refusal = refusal.with("agent", self.event.agent.as_str());
        match &self.event.run {
            Some(run) => refusal.with("run_id", run.id.for_caller()).with("step", run.step),
            None => refusal,
        }
    }

    /// What goes on record of a call that is under way.
    fn open_call(&self) -> Option<OpenCall> {
        let mut open = self.spending.open_call(&self.event)?;
        plain::model(&self.app.settings.load().dlp.scanner, &mut open.model);
        Some(open)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Nobody saw an answer: the handler was cancelled because its client left, or it panicked.
        if !self.is_settled {
            self.settle_aside(&Reply::default(), Ending::ClientGone);
        }
    }
}

fn between_ms(from: Instant, to: Instant) -> u32 {
    u32::try_from((to - from).as_millis()).unwrap_or(u32::MAX)
}
