//! What happened so far: told by every event, shown in the status and in the report, and handed over to the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use sprag_core::event::{Act, ActKind, Ending, Event, EventKind, RunRecord};
use sprag_core::id::RunId;
use sprag_core::limits::{COMMAND_RUNS, COMMAND_STOPS};
use sprag_core::money::NanoUsd;
use sprag_core::policy::KillScope;
use sprag_store::history::Handover;
use tokio::sync::watch;

use crate::acts::KillOrder;
use crate::show;

/// Follows the events of one command.
pub(super) struct Tally {
    command: RunId,
    inner: Mutex<Inner>,
    /// Why the command must end, once it must.
    stop: watch::Sender<Option<Stop>>,
}

struct Inner {
    sums: Sums,
    /// Its conversations, and what each is a part of.
    runs: BTreeMap<RunId, Option<RunId>>,
    stops: Vec<Stop>,
    refusals: BTreeMap<String, u64>,
    hidden: BTreeMap<String, u64>,
    models: BTreeSet<String>,
    /// None once it is closed.
    handover: Option<Handover>,
    trouble: Option<String>,
}

/// Sums over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Sums {
    /// Calls to models, refused ones included.
    pub(super) steps: u64,
    /// Those that Sprag refused.
    pub(super) refused: u64,
    /// Those that failed at the provider, or on the way.
    pub(super) failed: u64,
    /// Other requests that passed through.
    pub(super) other_requests: u64,
    /// Conversations.
    pub(super) runs: u64,
    /// Steps that a rule warned of.
    pub(super) warnings: u64,
    /// Tokens sent, cached ones included.
    pub(super) input_tokens: u64,
    /// The part of them that came from a cache.
    pub(super) cached_tokens: u64,
    /// Tokens received.
    pub(super) output_tokens: u64,
    /// What they cost.
    #[serde(rename = "cost_nano_usd")]
    pub(super) cost: NanoUsd,
    /// Calls whose price is not known.
    pub(super) unpriced: u64,
}

/// Something that Sprag put an end to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Stop {
    /// The conversation, as its program knows it, or the command.
    pub(super) run: Option<String>,
    /// As refusals call it.
    pub(super) reason: String,
    /// What it rests on, in a sentence.
    pub(super) summary: Option<String>,
    /// The same in full.
    pub(super) proof: Option<serde_json::Value>,
}

/// All of it at one moment.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) sums: Sums,
    pub(super) stops: Vec<Stop>,
    /// Refused calls by reason.
    pub(super) refusals: BTreeMap<String, u64>,
    /// Secrets and personal data that were found, by kind.
    pub(super) hidden: BTreeMap<String, u64>,
    pub(super) models: BTreeSet<String>,
    /// Why not everything is handed over.
    pub(super) trouble: Option<String>,
}

impl Stop {
    /// What a kill says.
    pub(super) fn of(order: KillOrder) -> Stop {
        let run = match &order.scope {
            KillScope::Run { run, .. } => Some(run.for_caller().to_owned()),
            _ => None,
        };
        Stop { run, reason: order.reason, summary: summary_of(order.proof.as_ref()), proof: order.proof }
    }
}

/// The sentence in a proof.
fn summary_of(proof: Option<&serde_json::Value>) -> Option<String> {
    Some(show::proof_summary(proof)).filter(|summary| !summary.is_empty()).map(str::to_owned)
}

impl Tally {
    pub(super) fn new(command: RunId, handover: Handover) -> Tally {
        let inner = Inner {
            sums: Sums::default(),
            runs: BTreeMap::new(),
            stops: Vec::new(),
            refusals: BTreeMap::new(),
            hidden: BTreeMap::new(),
            models: BTreeSet::new(),
            handover: Some(handover),
            trouble: None,
        };
        Tally { command, inner: Mutex::new(inner), stop: watch::Sender::new(None) }
    }

    /// Takes note of an event.
    pub(super) fn take(&self, event: &Event) {
        let mut inner = self.lock();
        if let Some(handover) = &mut inner.handover
            && let Err(error) = handover.write(event)
        {
            inner.trouble.get_or_insert(error.to_string());
        }
        match &event.act {
            Some(act) => {
                let stop = inner.done(event.run.as_ref(), act);
                let ends = act.what == ActKind::Kill
                    && event.run.as_ref().is_none_or(|run| inner.is_the_commands(&self.command, &run.id));
                if let Some(stop) = stop.filter(|_| ends) {
                    self.must_end(stop);
                }
            }
            None => inner.call(event),
        }
    }

    /// Somebody else ends the command.
    pub(super) fn end(&self, stop: Stop) {
        self.note(stop.clone());
        self.must_end(stop);
    }

    /// Somebody else stops a part of it, or lets it wait. Said once, however often it is heard.
    pub(super) fn note(&self, stop: Stop) {
        self.lock().note(stop);
    }

    /// Whether a run is the command, or one of its conversations.
    pub(super) fn knows(&self, run: &RunId) -> bool {
        *run == self.command || self.lock().runs.contains_key(run)
    }

    /// Whether the command ends with a run that it knows.
    pub(super) fn ends_with(&self, run: &RunId) -> bool {
        self.knows(run) && self.lock().is_the_commands(&self.command, run)
    }

    /// Why the command must end, as soon as it must.
    pub(super) fn stops(&self) -> watch::Receiver<Option<Stop>> {
        self.stop.subscribe()
    }

    /// What there was so far.
    pub(super) fn seen(&self) -> Seen {
        let inner = self.lock();
        Seen {
            sums: inner.sums,
            stops: inner.stops.clone(),
            refusals: inner.refusals.clone(),
            hidden: inner.hidden.clone(),
            models: inner.models.clone(),
            trouble: inner.trouble.clone(),
        }
    }

    /// Lets what was written so far be taken by whoever has the data directory.
    pub(super) fn hand_over(&self) {
        let mut inner = self.lock();
        if let Some(Err(error)) = inner.handover.as_mut().map(Handover::close) {
            inner.trouble.get_or_insert(error.to_string());
        }
    }

    /// Ends handing over: everything that was written can be taken.
    pub(super) fn close(&self) {
        self.hand_over();
        self.lock().handover = None;
    }

    fn must_end(&self, stop: Stop) {
        self.stop.send_if_modified(|known| known.is_none() && known.replace(stop).is_none());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn call(&mut self, event: &Event) {
        let sums = &mut self.sums;
        if event.kind != EventKind::LlmCall {
            sums.other_requests += 1;
            return;
        }
        sums.steps += 1;
        sums.cost += event.cost.unwrap_or_default();
        sums.unpriced += u64::from(event.unpriced);
        if let Some(usage) = event.usage {
            sums.input_tokens = sums.input_tokens.saturating_add(usage.prompt_tokens());
            sums.cached_tokens = sums.cached_tokens.saturating_add(usage.cache_read);
            sums.output_tokens = sums.output_tokens.saturating_add(usage.output);
        }
        let has_failed = matches!(event.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        sums.failed += u64::from(has_failed);
        sums.warnings += u64::from(event.verdict.as_ref().is_some_and(|verdict| !verdict.action.stops()));
        if event.blocked {
            sums.refused += 1;
            let reason = event.block_reason.clone().unwrap_or_default();
            *self.refusals.entry(reason).or_default() += 1;
        }
        for sighting in event.dlp.iter().flat_map(|seen| &seen.list) {
            *self.hidden.entry(sighting.entity.clone()).or_default() += 1;
        }
        if let Some(model) = event.model.as_ref().filter(|_| self.models.len() < COMMAND_STOPS) {
            self.models.insert(model.clone());
        }
        if let Some(run) = &event.run
            && !self.runs.contains_key(&run.id)
        {
            self.sums.runs += 1;
            if self.runs.len() < COMMAND_RUNS {
                self.runs.insert(run.id.clone(), run.parent.clone());
            }
        }
    }

    /// Something was done: what of it the report tells.
    fn done(&mut self, run: Option<&RunRecord>, act: &Act) -> Option<Stop> {
        if !matches!(act.what, ActKind::Kill | ActKind::Pause | ActKind::Deactivate) {
            return None;
        }
        let stop = Stop {
            run: run.map(|run| run.id.for_caller().to_owned()),
            reason: act.reason.clone(),
            summary: summary_of(act.proof.as_ref()),
            proof: act.proof.clone(),
        };
        self.note(stop.clone());
        Some(stop)
    }

    fn note(&mut self, stop: Stop) {
        if self.stops.len() < COMMAND_STOPS && !self.stops.contains(&stop) {
            self.stops.push(stop);
        }
    }

    /// Whether a run is the command itself or a conversation of its own. A part of one may end while the others go on: the
    /// agent that started it hears of it.
    fn is_the_commands(&self, command: &RunId, run: &RunId) -> bool {
        match self.runs.get(run) {
            Some(Some(parent)) => parent == command,
            Some(None) | None => true,
        }
    }
}

#[cfg(test)]
mod tests;
