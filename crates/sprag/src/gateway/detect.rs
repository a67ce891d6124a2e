//! Looking for loops: what is new in a request goes past the detectors before it is forwarded, and its answer after.
//!
//! A detector must never be the outage: one that fails lets the request pass, is counted and said once a minute.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use http::request::Parts;
use sprag_core::event::{Ending, Event, RunOrigin};
use sprag_core::id::AgentName;
use sprag_core::loops::{
    AgentWatch, Arrival, Decision, Departure, Finding, Mode, PromptScope, Rules, RunWatch, StepEvidence, Strikes,
    decide, fingerprint, read_turn,
};
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, History, Reply};
use sprag_store::RunKey;
use xxhash_rust::xxh3::xxh3_64;

use super::plain;
use super::route::Route;
use super::trail::Leg;
use crate::app::App;

/// Failures of detection, told at most once a minute.
#[derive(Debug, Default)]
pub struct DetectionFailures {
    number: AtomicU64,
    /// When one was told last, in milliseconds; 0 for never.
    told_at: AtomicI64,
}

impl DetectionFailures {
    /// How many there were.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Counts one. True when it is time to tell.
    fn count(&self, now: Timestamp) -> bool {
        const MINUTE_MS: i64 = 60_000;
        self.number.fetch_add(1, Ordering::Relaxed);
        let told_at = self.told_at.load(Ordering::Relaxed);
        let is_due = told_at == 0 || now.0 - told_at >= MINUTE_MS;
        is_due && self.told_at.compare_exchange(told_at, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// A request as detection sees it.
pub(crate) struct Seen<'a> {
    pub(crate) agent: &'a AgentName,
    /// None outside any run.
    pub(crate) run: Option<SeenRun<'a>>,
    pub(crate) now: Timestamp,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a [u8],
}

/// Its place in its run.
#[derive(Clone, Copy)]
pub(crate) struct SeenRun<'a> {
    pub(crate) key: &'a RunKey,
    pub(crate) step: u32,
    pub(crate) origin: RunOrigin,
    pub(crate) history: Option<&'a History>,
}

/// Where a request goes, and by what its limits tell it from others. Asked only where it matters.
pub(crate) struct Way<'a> {
    pub(crate) route: &'a Route<'a>,
    pub(crate) told_apart: &'a dyn Fn() -> Vec<(String, String)>,
    /// What came of counting it among identical requests of all nodes; absent where only this node counts.
    pub(crate) repeated: Option<Option<Finding>>,
}

/// What detection found in a request, and what goes on record of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) decision: Decision,
    pub(crate) level: Option<f32>,
    pub(crate) evidence: Option<StepEvidence>,
    /// How long it took.
    pub(crate) leg: Option<Leg>,
}

/// Lets all detectors look at a request, and decides what follows.
pub(crate) fn arrive(app: &App, rules: &Rules, call: Option<&Call<'_>>, seen: &Seen<'_>, way: &Way<'_>) -> Looked {
    let began = Instant::now();
    let looked =
        guarded(&app.detection_failures, seen.now, || inspect(app, rules, call, seen, way)).unwrap_or_else(|| {
            // What it had collected may be what made it fail.
            if let Some(run) = seen.run {
                app.state.watch(run.key, RunWatch::forget);
            }
            Looked::default()
        });
    Looked { leg: Some(Leg::since(began)), ..looked }
}

/// Lets all detectors look at a call that is over.
pub(crate) fn depart(app: &App, rules: &Rules, key: &RunKey, event: &Event, reply: &Reply, now: Timestamp) {
    let Some(run) = &event.run else { return };
    let departure = Departure {
        step: run.step,
        now: app.common_time(now),
        reply,
        is_answered: event.ending == Ending::Complete,
        cost: event.cost,
        tokens: event.usage.map_or(0, |usage| usage.total_tokens()),
    };
    guarded(&app.detection_failures, now, || {
        if event.ending == Ending::Refused {
            app.state.watch(key, |watch| watch.refused(run.step));
            return;
        }
        app.state.watch(key, |watch| watch.depart(&departure));
        if rules.watches_agents() {
            app.state.watch_agent(&key.agent, now, |watch| watch.depart(key.number(), &departure, rules));
        }
    });
}

fn inspect(app: &App, rules: &Rules, call: Option<&Call<'_>>, seen: &Seen<'_>, way: &Way<'_>) -> Looked {
    let now = seen.now;
    let (mut findings, mut looked) = (Vec::new(), Looked::default());
    if rules.repeat.common.mode != Mode::Off {
        let here = app.state.count_repeat(identity(seen, way), now, &rules.repeat);
        findings.extend(way.repeated.clone().unwrap_or(here));
    }
    // Texts to be embedded are no prompts.
    let run = seen.run.zip(call.filter(|call| call.dialect.has_assistant()));
    if let Some((SeenRun { key, step, origin, history }, call)) = run {
        let turn = read_turn(call, rules.prompt_scope == PromptScope::LastUserMessage);
        let end = history.map(|history| history.end);
        let is_declared = origin == RunOrigin::Declared;
        let arrival = Arrival { step, now: app.common_time(now), end, turn: &turn, is_declared };
        let look = |watch: &mut RunWatch| (watch.arrive(&arrival, rules), watch.is_retry());
        let (found, is_retry) = app.state.watch(key, look).unwrap_or_default();
        (looked.level, looked.evidence) = (found.level, found.evidence);
        findings.extend(found.findings);
        if rules.watches_agents() {
            let look = |watch: &mut AgentWatch| watch.arrive(key.number(), is_retry, &arrival, rules);
            findings.extend(app.state.watch_agent(&key.agent, now, look));
        }
    }
    if findings.is_empty() {
        return looked;
    }
    plain::proofs(&app.settings.load().dlp.scanner, &mut findings);
    looked.decision = match run {
        Some((run, _)) => {
            let decided = app.state.watch(run.key, |watch| decide(findings, rules, watch.strikes(), run.step));
            decided.unwrap_or_default()
        }
        None => decide(findings, rules, &mut Strikes::default(), 0),
    };
    looked
}

/// What makes two requests the same, byte for byte: where they go, what they hold, and who they are for their limits.
pub(crate) fn identity(seen: &Seen<'_>, way: &Way<'_>) -> u64 {
    let carried = (way.told_apart)();
    let own = [("agent", seen.agent.as_str()), ("upstream", &*way.route.provider.name)];
    let carried = carried.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    // Limits may go by the agent too: what is said twice says nothing more.
    let descriptors: Vec<(&str, &str)> = own.into_iter().chain(carried.filter(|(key, _)| *key != "agent")).collect();
    let query = seen.head.uri.query().unwrap_or_default();
    fingerprint(seen.head.method.as_str(), way.route.path, query, Some(xxh3_64(seen.body)), &descriptors)
}

/// Does something that may fail, and says so if it does.
fn guarded<T>(failures: &DetectionFailures, now: Timestamp, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() && failures.count(now) {
        let number = failures.number();
        tracing::error!(number, "loop detection failed; requests pass unchecked. Please report this");
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_counted_and_told_once_a_minute() {
        let failures = DetectionFailures::default();
        let due: Vec<bool> = [1, 2, 60_000, 60_001, 60_002].map(|at| failures.count(Timestamp(at))).to_vec();
        assert_eq!(due, [true, false, false, true, false]);
        assert_eq!(failures.number(), 5);
    }

    #[test]
    fn a_detector_that_fails_gives_nothing() {
        let failures = DetectionFailures::default();
        assert_eq!(guarded(&failures, Timestamp(1), || 5), Some(5));
        let failed: Option<u32> = guarded(&failures, Timestamp(1), || panic!("a detector fails"));
        assert_eq!((failed, failures.number()), (None, 1));
    }
}
