//! What several suites need: events, and a history in a directory of its own.
#![allow(dead_code, unused_imports, unused_macros, reason = "each suite uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

#[path = "../../src/history/samples.rs"]
mod samples;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sprag_core::event::Event;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_store::history::{ClickHouseAddress, ClickHouseSettings, EventFilter, History, HistorySettings, OpenCall};
use sprag_store::{DataDir, RunKey};
use sprag_testkit::ClickHouseServer;
use tempfile::TempDir;

pub(crate) use samples::{request, step};

/// Nothing reaches the database before a flush, so tests decide when.
pub(crate) fn patient() -> HistorySettings {
    HistorySettings { flush_interval: Duration::from_secs(3600), ..HistorySettings::default() }
}

pub(crate) fn open(path: &Path, settings: HistorySettings) -> History {
    History::open(Arc::new(DataDir::open(path).unwrap()), settings).unwrap()
}

/// Where one test keeps its history: a directory of its own, and for some a database of its own in ClickHouse.
pub(crate) struct Home {
    dir: TempDir,
    url: Option<String>,
}

impl Home {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Nothing reaches the database before a flush.
    pub(crate) fn open(&self) -> History {
        self.open_with(patient())
    }

    pub(crate) fn open_with(&self, settings: HistorySettings) -> History {
        open(self.path(), self.settings(settings))
    }

    /// The settings for this home. Events of tests are years old, and a server forgets by its own clock.
    pub(crate) fn settings(&self, settings: HistorySettings) -> HistorySettings {
        lasting(settings, self.url.as_deref().map(clickhouse_settings))
    }
}

pub(crate) fn lasting(settings: HistorySettings, clickhouse: Option<ClickHouseSettings>) -> HistorySettings {
    if clickhouse.is_none() {
        return settings;
    }
    HistorySettings {
        clickhouse,
        retention_days: 36_500,
        run_retention_days: 36_500,
        spend_retention_days: 36_500,
        minute_retention_days: 36_500,
        ..settings
    }
}

/// Names the directory for a process that a test starts and kills, what its events are called, and its ClickHouse.
const CHILD_DIR: &str = "SPRAG_TEST_CHILD_DIR";
const CHILD_NAME: &str = "SPRAG_TEST_CHILD_NAME";
const CHILD_CLICKHOUSE: &str = "SPRAG_TEST_CHILD_CLICKHOUSE";

impl Home {
    /// Starts a process that runs one test, `child`, on this home. Its name is the whole one, with its module.
    pub(crate) fn start_child(&self, child: &str, name: &str) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", child, "--nocapture"]).env(CHILD_DIR, self.path()).env(CHILD_NAME, name);
        if let Some(url) = &self.url {
            command.env(CHILD_CLICKHOUSE, url);
        }
        command.stdout(Stdio::piped()).spawn().unwrap()
    }
}

/// The history of a process that a test started, and the name that it goes by; none in the test itself. It moves events often and
/// in small batches, so that the end comes in the middle of everything.
pub(crate) fn open_as_child() -> Option<(History, String)> {
    let (dir, name) = (std::env::var(CHILD_DIR).ok()?, std::env::var(CHILD_NAME).ok()?);
    let settings = HistorySettings {
        flush_interval: Duration::from_millis(2),
        segment_bytes: 16 << 10,
        ..HistorySettings::default()
    };
    let url = std::env::var(CHILD_CLICKHOUSE).ok();
    let clickhouse = url.map(|url| ClickHouseSettings {
        batch_events: 200,
        batch_age: Duration::from_millis(2),
        ..clickhouse_settings(&url)
    });
    Some((open(Path::new(&dir), lasting(settings, clickhouse)), name))
}

pub(crate) fn on_sqlite(contract: fn(&Home)) {
    contract(&Home { dir: tempfile::tempdir().unwrap(), url: None });
}

/// Does nothing where there is no ClickHouse; testkit says so.
pub(crate) fn on_clickhouse(contract: fn(&Home)) {
    let Some(server) = ClickHouseServer::shared() else { return };
    contract(&Home { dir: tempfile::tempdir().unwrap(), url: Some(server.url(&new_database())) });
}

/// Nothing is sent before a flush.
pub(crate) fn clickhouse_settings(url: &str) -> ClickHouseSettings {
    ClickHouseSettings {
        address: ClickHouseAddress::parse(url).unwrap(),
        batch_events: 1000,
        batch_age: Duration::from_secs(3600),
        // Of a machine that has much else to do.
        patience: Duration::from_secs(100),
    }
}

pub(crate) fn new_database() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Makes each contract a test over every kind of history.
macro_rules! on_every_history {
    ($($contract:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $contract() { crate::common::on_sqlite(super::$contract); })+
        }
        mod clickhouse {
            $(#[test] fn $contract() { crate::common::on_clickhouse(super::$contract); })+
        }
    };
}
pub(crate) use on_every_history;

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
