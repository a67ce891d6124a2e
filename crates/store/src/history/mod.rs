//! Every event, and the totals of runs, agents and money.
//!
//! [`History::record`] puts an event on disk before it returns (`spool`); a thread of its own moves events into the
//! database in batches (`ingest`), where they are counted exactly once; readers never wait for either (`query`).
//! [`History::opened`] does the same with the beginning of a call, so that what was set aside for it outlives a crash.
//! Nothing here decides anything, and nothing here holds a prompt, an answer or a key.

mod clickhouse;
mod complaint;
mod elsewhere;
mod embedded;
mod handover;
mod ingest;
mod insert;
mod line;
mod open_calls;
mod pauses;
mod query;
mod retention;
mod rows;
#[cfg(test)]
mod samples;
mod saved;
mod segment;
mod spent;
mod spool;
mod sqlite;
mod tally;
mod values;

use std::sync::Arc;
use std::time::Duration;

use sprag_core::event::Event;
use sprag_core::id::AgentName;
use sprag_core::limits::{FINDING_CALLS, SHADOW_EVENTS, SPENDERS, SPOOL_BYTES, SPOOL_SEGMENT_BYTES};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::run_key::RunKey;
use crate::state::RunTotals;

pub use clickhouse::{ClickHouseAddress, ClickHouseHistory, ClickHouseSettings, ForwardStatus, PATIENCE};
pub use elsewhere::HistoryElsewhere;
pub use embedded::EmbeddedHistory;
pub use handover::{HandedOver, Handover};
pub use ingest::IngestStatus;
pub use open_calls::OpenCall;
pub use query::{
    AgentBucket, AgentRow, AgentShare, Bucket, EventFilter, FindingCount, FindingsReport, Page, PastRun, RecentStop,
    RunFilter, RunRow, RunStatus, RunStopped, Series, ShadowDetector, ShadowLimit, ShadowReport, ShadowRun, Span,
    Spender, SpentByAll, StepRow, TopBy, Totals, WouldStop,
};
pub use retention::Pruned;
use spool::When;
pub use spool::{Recorded, SpoolStatus};

/// Where events are kept.
pub enum History {
    /// In one SQLite file of the data directory.
    Sqlite(EmbeddedHistory),
    /// In ClickHouse, with those of other nodes.
    ClickHouse(ClickHouseHistory),
}

/// How events are kept.
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// How often recorded events are moved into the database.
    pub flush_interval: Duration,
    /// Bytes of events that may wait on disk; beyond it only money is recorded.
    pub spool_bytes: u64,
    /// Size of one file of the spool, and so of one transaction.
    pub segment_bytes: u64,
    /// Days that events are kept.
    pub retention_days: u32,
    /// Days that a run is kept after its last activity.
    pub run_retention_days: u32,
    /// Days that sums of money are kept.
    pub spend_retention_days: u32,
    /// Days that sums by the minute are kept: a chart of the last hour needs no more.
    pub minute_retention_days: u32,
    /// Size of the database above which the oldest events go, whatever their age.
    pub max_db_bytes: Option<u64>,
    /// The history that this node shares with others; its own database then only holds what it needs itself.
    pub clickhouse: Option<ClickHouseSettings>,
}

/// How recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryStatus {
    /// The way to the disk.
    pub spool: SpoolStatus,
    /// The way into the database.
    pub ingest: IngestStatus,
    /// The way to a history that many nodes share, where there is one.
    pub shared: Option<ForwardStatus>,
}

impl Default for HistorySettings {
    fn default() -> HistorySettings {
        HistorySettings {
            flush_interval: Duration::from_millis(500),
            spool_bytes: SPOOL_BYTES,
            segment_bytes: SPOOL_SEGMENT_BYTES,
            retention_days: 30,
            run_retention_days: 90,
            spend_retention_days: 400,
            minute_retention_days: 2,
            max_db_bytes: None,
            clickhouse: None,
        }
    }
}

impl History {
    /// Opens the history that the settings name: a shared one, or this node's own.
    ///
    /// # Errors
    /// Those of [`History::open_embedded`]. A shared one that is away is none: what is recorded waits for it.
    pub fn open(dir: Arc<DataDir>, settings: HistorySettings) -> Result<History, StoreError> {
        match settings.clickhouse.clone() {
            Some(clickhouse) => ClickHouseHistory::open(dir, settings, clickhouse).map(History::ClickHouse),
            None => History::open_embedded(dir, settings),
        }
    }

    /// Opens the embedded history, after moving what an earlier process left in the spool into the database. Calls that
    /// it left under way are charged what was set aside for them ([`History::lost_calls`]).
    ///
    /// # Errors
    /// When the directory or the database cannot be used, or the database comes from a newer version.
    pub fn open_embedded(dir: Arc<DataDir>, settings: HistorySettings) -> Result<History, StoreError> {
        EmbeddedHistory::open(dir, settings).map(History::Sqlite)
    }

    /// Puts down that a call is under way and what is set aside for it, before it is forwarded. [`History::record`] of an
    /// event of the same id ends it; if the process dies before, the next one charges it what was set aside. When more is
    /// set aside later, the call is put down again with the larger amount.
    ///
    /// True when it survives the end of the process. False when there is no room or the disk takes nothing: the call may
    /// go on, only a crash would lose its money.
    pub fn opened(&self, call: &OpenCall) -> bool {
        self.own().opened(call.clone(), When::Now)
    }

    /// The same, but true before it is so: it survives the end of the process from the next [`History::write_out`] on, which the caller
    /// sees to. Calls that go side by side share one write.
    pub fn note_opened(&self, call: OpenCall) -> bool {
        self.own().opened(call, When::Together)
    }

    /// Calls that earlier processes left under way, charged since this one started.
    #[must_use]
    pub fn lost_calls(&self) -> u64 {
        match self {
            History::Sqlite(history) => history.lost_calls(),
            History::ClickHouse(history) => history.lost_calls(),
        }
    }

    /// Records an event. When it returns [`Recorded::Whole`], the event survives the end of the process.
    pub fn record(&self, event: &Event) -> Recorded {
        self.own().record(event, When::Now)
    }

    /// The same, from the next [`History::write_out`] on, which the caller sees to before anybody relies on it.
    pub fn note(&self, event: &Event) -> Recorded {
        self.own().record(event, When::Together)
    }

    /// Writes what was noted, by whomever. What the disk does not take is held or dropped, as [`Recorded`] says.
    pub fn write_out(&self) {
        self.own().write_out();
    }

    /// The files of this node, through which everything goes.
    fn own(&self) -> &EmbeddedHistory {
        match self {
            History::Sqlite(history) => history,
            History::ClickHouse(history) => history.own(),
        }
    }

    /// Waits until everything recorded so far can be read.
    ///
    /// # Errors
    /// When it cannot be put into the database now; it is kept, and tried again later.
    pub fn flush(&self) -> Result<(), StoreError> {
        match self {
            History::Sqlite(history) => history.flush(),
            History::ClickHouse(history) => history.flush(),
        }
    }

    /// Waits until everything recorded so far is where the next start finds it: in this node's own database. A shared history may
    /// get it later.
    ///
    /// # Errors
    /// When the disk does not take it now.
    pub fn settle(&self) -> Result<(), StoreError> {
        match self {
            History::Sqlite(history) => history.flush(),
            History::ClickHouse(history) => history.settle(),
        }
    }

    /// Deletes everything that is too old at `now`. Happens by itself too, in small pieces.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn prune(&self, now: Timestamp) -> Result<Pruned, StoreError> {
        match self {
            History::Sqlite(history) => history.prune(now),
            History::ClickHouse(history) => history.prune(now),
        }
    }

    /// How recording goes.
    #[must_use]
    pub fn status(&self) -> HistoryStatus {
        match self {
            History::Sqlite(history) => history.status(),
            History::ClickHouse(history) => history.status(),
        }
    }

    /// Other nodes record here too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, History::ClickHouse(_))
    }

    /// Events, newest first unless the filter says otherwise. Pages stay stable while events are added.
    ///
    /// # Errors
    /// When the cursor is not one of this listing, or the database cannot be read.
    pub fn events(&self, filter: &EventFilter, cursor: Option<&str>, limit: u32) -> Result<Page<Event>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().events(filter, cursor, limit),
            History::ClickHouse(history) => history.reader().events(filter, cursor, limit),
        }
    }

    /// Runs, the most recently active first. A run that becomes active during paging moves to the front.
    ///
    /// # Errors
    /// When the cursor is not one of this listing, or the database cannot be read.
    pub fn runs(&self, filter: &RunFilter, cursor: Option<&str>, limit: u32) -> Result<Page<RunRow>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().runs(filter, cursor, limit),
            History::ClickHouse(history) => history.reader().runs(filter, cursor, limit),
        }
    }

    /// One run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run(&self, key: &RunKey) -> Result<Option<RunRow>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().run(key),
            History::ClickHouse(history) => history.reader().run(key),
        }
    }

    /// The runs that are directly a part of one, oldest first, at most a page of them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn children(&self, key: &RunKey) -> Result<Vec<RunRow>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().children(key),
            History::ClickHouse(history) => history.reader().children(key),
        }
    }

    /// What run state starts from when a run comes back after it was forgotten.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_totals(&self, key: &RunKey) -> Result<Option<RunTotals>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().run_totals(key),
            History::ClickHouse(history) => history.reader().run_totals(key),
        }
    }

    /// What a call needs to know of a run that is not in memory. A shared history that does not answer at once is not waited for:
    /// then it is what this node has recorded of the run.
    ///
    /// # Errors
    /// When this node's own database cannot be read either.
    pub fn recall(&self, key: &RunKey) -> Result<Option<PastRun>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().recall(key),
            History::ClickHouse(history) => history.recall(key),
        }
    }

    /// Where rules in shadow would have stopped a run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn would_stop(&self, key: &RunKey) -> Result<Option<WouldStop>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().would_stop(key),
            History::ClickHouse(history) => history.reader().would_stop(key),
        }
    }

    /// What detection saw in the requests of each of some runs, oldest first; the last ones where there are very many.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn evidence(&self, runs: &[RunRow]) -> Result<Vec<Vec<StepRow>>, StoreError> {
        match self {
            History::Sqlite(history) => runs.iter().map(|run| history.reader().evidence(&run.key())).collect(),
            History::ClickHouse(history) => history.reader().evidence(runs),
        }
    }

    /// What rules in shadow would have stopped between two moments, by detector.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn shadow_report(&self, since: Timestamp, until: Timestamp) -> Result<ShadowReport, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().shadow_report(since, until, SHADOW_EVENTS),
            History::ClickHouse(history) => history.reader().shadow_report(since, until, SHADOW_EVENTS),
        }
    }

    /// The runs that rules in shadow would have stopped between two moments, the latest first, at most so many.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn shadow_runs(&self, span: (Timestamp, Timestamp), most: u32) -> Result<Vec<ShadowRun>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().shadow_runs(span, most, SHADOW_EVENTS),
            History::ClickHouse(history) => history.reader().shadow_runs(span, most, SHADOW_EVENTS),
        }
    }

    /// How often secrets and personal data were found since a moment, by kind.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn findings(&self, since: Timestamp) -> Result<FindingsReport, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().findings(since, FINDING_CALLS),
            History::ClickHouse(history) => history.reader().findings(since, FINDING_CALLS),
        }
    }

    /// Calls in which secrets or personal data were found, the latest first.
    ///
    /// # Errors
    /// When the cursor is none of this listing, or the database cannot be read.
    pub fn calls_with_findings(&self, cursor: Option<&str>, limit: u32) -> Result<Page<Event>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().calls_with_findings(cursor, limit),
            History::ClickHouse(history) => history.reader().calls_with_findings(cursor, limit),
        }
    }

    /// What an agent did from one moment to another, in buckets of so many quarters of an hour, empty ones too.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn agent_series(
        &self,
        agent: &AgentName,
        span: (Timestamp, Timestamp),
        quarters: u32,
    ) -> Result<Vec<AgentBucket>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().agent_series(agent, span, quarters),
            History::ClickHouse(history) => history.reader().agent_series(agent, span, quarters),
        }
    }

    /// Sums of everything since the quarter of an hour in which `since` lies, of one agent or of all.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn totals(&self, since: Timestamp, agent: Option<&AgentName>) -> Result<Totals, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().totals(since, agent),
            History::ClickHouse(history) => history.reader().totals(since, agent),
        }
    }

    /// What happened in the last hour, day or month, in even steps, of one agent or of all.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn series(&self, span: Span, now: Timestamp, agent: Option<&AgentName>) -> Result<Series, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().series(span, now, agent),
            History::ClickHouse(history) => history.reader().series(span, now, agent),
        }
    }

    /// The agents that spent the most, or were stopped the most, in the last hour, day or month.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn top_agents(&self, span: Span, now: Timestamp, by: TopBy, limit: u32) -> Result<Vec<AgentShare>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().top_agents(span, now, by, limit),
            History::ClickHouse(history) => history.reader().top_agents(span, now, by, limit),
        }
    }

    /// What was stopped last, the latest first, each run and agent once.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn recent_stops(&self, limit: u32) -> Result<Vec<RecentStop>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().recent_stops(limit),
            History::ClickHouse(history) => history.reader().recent_stops(limit),
        }
    }

    /// Money since a moment, of every agent, of every virtual key and of everybody together.
    ///
    /// # Errors
    /// Those of [`History::spent`].
    pub fn spent_by_all(&self, since: Timestamp) -> Result<SpentByAll, StoreError> {
        self.flush()?;
        match self {
            History::Sqlite(history) => history.reader().spent_by_all(since, SPENDERS),
            History::ClickHouse(history) => history.reader().spent_by_all(since, SPENDERS),
        }
    }

    /// One agent.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn agent(&self, name: &AgentName) -> Result<Option<AgentRow>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().agent(name),
            History::ClickHouse(history) => history.reader().agent(name),
        }
    }

    /// The agents on record whose name has a part in it, whatever its case, the latest seen first. An agent that calls
    /// during paging moves to the front.
    ///
    /// # Errors
    /// When the cursor is not one of this listing, or the database cannot be read.
    pub fn agents(&self, name_part: &str, cursor: Option<&str>, limit: u32) -> Result<Page<AgentRow>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().agents(name_part, cursor, limit),
            History::ClickHouse(history) => history.reader().agents(name_part, cursor, limit),
        }
    }

    /// The names of the agents that were seen last, at most so many.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn agent_names(&self, most: u32) -> Result<Vec<AgentName>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().agent_names(most),
            History::ClickHouse(history) => history.reader().agent_names(most),
        }
    }

    /// Those of some agents that are on record, in no order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn seen_of(&self, names: &[AgentName]) -> Result<Vec<AgentName>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().seen_of(names),
            History::ClickHouse(history) => history.reader().seen_of(names),
        }
    }

    /// What each of some agents spent since the quarter of an hour in which `since` lies, of what can be read now. Who made
    /// no request is left out.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn spent_by(&self, names: &[AgentName], since: Timestamp) -> Result<Vec<(AgentName, NanoUsd)>, StoreError> {
        match self {
            History::Sqlite(history) => history.reader().spent_by(names, since),
            History::ClickHouse(history) => history.reader().spent_by(names, since),
        }
    }
}
