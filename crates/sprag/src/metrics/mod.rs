//! What is counted of every call, and `/metrics`, where it is read.
//!
//! - `meters`, `durations`, `known`: counters that a call adds to when it settles; no lock, no memory
//! - `page`: all of them as text, together with what others keep (`gauges`, `links`, `process`), which is read when somebody
//!   asks and kept nowhere twice
//! - `sheet`: one family of metrics on the page; `text`: the older of the two formats
//!
//! Labels come from fixed lists, from the configuration and from the list of prices. A model is called as that list
//! calls it, an agent only where the operator wants it and only so many: nothing that a caller writes makes a series
//! otherwise. Never a run, a key, a prompt.

mod durations;
mod gauges;
mod known;
mod links;
mod meters;
mod page;
mod process;
mod sheet;
mod text;

#[cfg(test)]
mod cost;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sprag_core::dlp::{Direction, Sightings};
use sprag_core::event::Event;
use sprag_core::limits::{METERED_AGENTS, METERED_FINDINGS, METERED_UPSTREAMS};
use sprag_core::loops::{Action, Detector};
use sprag_core::wire::Reason;

use self::durations::{Durations, OWN};
use self::known::Known;
use self::meters::{AgentMeters, Findings, UpstreamMeters};
pub(crate) use self::page::{Format, page};
use crate::gateway::Trail;
use crate::serve::Connections;

type Counter = AtomicU64;

/// What is counted since the start.
#[derive(Debug)]
pub struct Metrics {
    upstreams: Known<UpstreamMeters>,
    agents: Known<AgentMeters>,
    /// By the place of the reason in [`Reason::ALL`].
    stops: [Counter; Reason::ALL.len()],
    shadow_stops: [Counter; Reason::ALL.len()],
    loops: [[Counter; ACTIONS.len()]; Detector::ALL.len()],
    unpriced: Counter,
    overhead: Durations,
    detection: Durations,
    dlp_request: Durations,
    dlp_answer: Durations,
    findings: Known<Findings>,
    /// Connections of the listener that agents talk to.
    pub proxy_connections: Connections,
    /// Connections of the admin listener.
    pub admin_connections: Connections,
    started: SystemTime,
}

const ACTIONS: [Action; 7] = [
    Action::Warn,
    Action::Nudge,
    Action::Throttle,
    Action::Reject,
    Action::Pause,
    Action::KillRun,
    Action::DeactivateAgent,
];

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            upstreams: Known::new(METERED_UPSTREAMS, UpstreamMeters::new),
            agents: Known::new(METERED_AGENTS, AgentMeters::default),
            stops: Default::default(),
            shadow_stops: Default::default(),
            loops: Default::default(),
            unpriced: Counter::default(),
            overhead: Durations::new(OWN),
            detection: Durations::new(OWN),
            dlp_request: Durations::new(OWN),
            dlp_answer: Durations::new(OWN),
            findings: Known::new(METERED_FINDINGS, Findings::default),
            proxy_connections: Connections::default(),
            admin_connections: Connections::default(),
            started: SystemTime::now(),
        }
    }
}

impl Metrics {
    /// Makes meters for upstreams before the first call to them. Those of upstreams that are gone stay: counters only grow.
    pub(crate) fn expect_upstreams<'a>(&self, names: impl Iterator<Item = &'a str>) {
        names.for_each(|name| self.upstreams.with(name, |_| ()));
    }

    /// Counts a call that has settled.
    pub(crate) fn count(&self, event: &Event, trail: &Trail, by_agent: bool) {
        self.upstreams.with(&event.provider, |meters| meters.count(event, trail));
        if by_agent {
            self.agents.with(event.agent.as_str(), |meters| meters.count(event));
        }
        self.count_stops(event);
        if event.unpriced {
            add(&self.unpriced, 1);
        }
        if let Some(took) = trail.overhead() {
            self.overhead.add(took);
        }
        if let Some(leg) = trail.detected {
            self.detection.add(leg.took);
        }
        if let Some(leg) = trail.inspected {
            self.dlp_request.add(leg.took);
        }
        if let Some(leg) = trail.answer_inspected {
            self.dlp_answer.add(leg.took);
        }
        if let Some(sightings) = &event.dlp {
            self.count_findings(sightings);
        }
    }

    fn count_stops(&self, event: &Event) {
        if let Some(stopped) = event.block_reason.as_deref().filter(|_| event.blocked) {
            count_reason(&self.stops, stopped);
        }
        for would in &event.would_block {
            count_reason(&self.shadow_stops, &would.reason);
        }
        if event.shadow.is_some() {
            count_reason(&self.shadow_stops, Reason::LoopDetected.as_str());
        }
        if let Some(verdict) = &event.verdict {
            let detector = Detector::ALL.iter().position(|known| *known == verdict.finding.detector);
            let action = ACTIONS.iter().position(|known| *known == verdict.action);
            if let Some(counter) = detector.zip(action).and_then(|(row, column)| self.loops.get(row)?.get(column)) {
                add(counter, 1);
            }
        }
    }

    fn count_findings(&self, sightings: &Sightings) {
        for sighting in &sightings.list {
            self.findings.with(&sighting.entity, |findings| findings.count(sighting.outcome));
        }
        // Only the first ones of a call are told one by one.
        let unlisted = sightings.total.saturating_sub(sightings.list.len() as u64);
        self.findings.with_other(|findings| findings.count_unlisted(unlisted));
    }

    fn dlp(&self) -> [(Direction, &Durations); 2] {
        [(Direction::Request, &self.dlp_request), (Direction::Answer, &self.dlp_answer)]
    }
}

fn add(counter: &Counter, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &Counter) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn count_reason(counters: &[Counter; Reason::ALL.len()], reason: &str) {
    let place = Reason::ALL.iter().position(|known| known.as_str() == reason);
    if let Some(counter) = place.and_then(|place| counters.get(place)) {
        add(counter, 1);
    }
}
