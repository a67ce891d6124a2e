//! What several suites need: events, and a history in a directory of its own.
#![allow(dead_code, unused_imports, reason = "each suite uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

#[path = "../../src/history/samples.rs"]
mod samples;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sprag_core::event::Event;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_store::history::{EventFilter, History, HistorySettings, OpenCall};
use sprag_store::{DataDir, RunKey};

pub(crate) use samples::{request, step};

/// Nothing reaches the database before a flush, so tests decide when.
pub(crate) fn patient() -> HistorySettings {
    HistorySettings { flush_interval: Duration::from_secs(3600), ..HistorySettings::default() }
}

pub(crate) fn open(path: &Path, settings: HistorySettings) -> History {
    History::open_embedded(Arc::new(DataDir::open(path).unwrap()), settings).unwrap()
}

/// A run of the agent that the samples are of.
pub(crate) fn key(id: &str) -> RunKey {
    key_of("tester", id)
}

pub(crate) fn key_of(agent: &str, id: &str) -> RunKey {
    RunKey { agent: AgentName::parse(agent).unwrap(), id: RunId::parse(id).unwrap() }
}

/// The beginning of a call whose event is this one.
pub(crate) fn opening(event: &Event, reserved: i64) -> OpenCall {
    OpenCall {
        id: event.id.clone(),
        at: event.at,
        agent: event.agent.clone(),
        key: event.key.clone(),
        run: event.run.clone(),
        provider: event.provider.clone(),
        dialect: event.dialect,
        path: event.path.clone(),
        model: event.model.clone(),
        reserved: NanoUsd(reserved),
    }
}

/// Every event that a filter lets through, page by page.
pub(crate) fn all_events(history: &History, filter: &EventFilter) -> Vec<Event> {
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let page = history.events(filter, cursor.as_deref(), 500).unwrap();
        events.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return events,
        }
    }
}

/// Numbers that look random, the same ones each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
