//! A history that many nodes share, in ClickHouse.
//!
//! Every node goes on as it does alone: spool, then its own database, which counts each event once and remembers calls under
//! way. From there a thread sends events, and the sums that they changed, to the shared history (`forward`); readers ask
//! that one (`query`). So a server that is away costs nothing but fresh pages: what was recorded waits here, and catches up.
//!
//! What is sent twice counts once, because nothing that is sent is an amount to add: events have ids, and sums are whole
//! numbers of one node that replace the ones before (`batch`, `schema/002_sums.sql`).

mod address;
mod batch;
mod forward;
mod link;
mod pause;
mod position;
mod query;
mod recall;
mod schema;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use self::forward::{Forward, Order};
use self::link::Link;
use self::pause::Pause;
use self::position::Position;
use self::recall::Recall;
use super::complaint::Complaint;
use super::embedded::EmbeddedHistory;
use super::query::{PastRun, Spender};
use super::retention::Pruned;
use super::{HistorySettings, HistoryStatus};
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::run_key::RunKey;
use crate::shards::with_lock;
use crate::sqlite::open_reader;

pub use address::ClickHouseAddress;
pub use forward::ForwardStatus;
pub(super) use position::{give_up_oldest, start_over, waiting_events};

/// Which shared history, and how often something is sent there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickHouseSettings {
    /// The server.
    pub address: ClickHouseAddress,
    /// Most events that go at once.
    pub batch_events: u32,
    /// How long events wait for others to go with.
    pub batch_age: Duration,
    /// Longest time that an answer may take; inserts may take three times as long.
    pub patience: Duration,
}

/// What is waited for an answer, unless a test says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Calls that wait for what was spent wait so much shorter than pages.
const HURRY: u32 = 3;
/// How long they leave a server alone that did not tell them: as long as they are asked to wait before they try again.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// Events of all nodes in ClickHouse, and what this one has not sent yet. Dropping it sends that first, if the server is there.
pub struct ClickHouseHistory {
    embedded: EmbeddedHistory,
    reader: query::Reader,
    for_calls: Box<ForCalls>,
    status: Arc<Mutex<ForwardStatus>>,
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
    patience: Duration,
    /// This node's own database.
    database: PathBuf,
}

/// The same history for calls, which cannot wait long.
struct ForCalls {
    reader: query::Reader,
    pause: Pause,
    recall: Recall,
}

impl ClickHouseHistory {
    pub(super) fn open(
        dir: Arc<DataDir>,
        settings: HistorySettings,
        clickhouse: ClickHouseSettings,
    ) -> Result<ClickHouseHistory, StoreError> {
        let patience = clickhouse.patience;
        let recall = Recall::new(clickhouse.address.clone());
        let hurried = Arc::new(Link::with_patience(clickhouse.address.clone(), patience / HURRY));
        let link = Arc::new(Link::with_patience(clickhouse.address, patience));
        let database = dir.path().join("sprag.db");
        let path = dir.path().to_owned();
        let embedded = EmbeddedHistory::open(dir, settings.clone())?;
        let status = Arc::new(Mutex::new(ForwardStatus::default()));
        let mut forward = Forward {
            database: database.clone(),
            link: Arc::clone(&link),
            settings,
            batch_events: clickhouse.batch_events.max(1),
            batch_age: clickhouse.batch_age,
            status: Arc::clone(&status),
            complaint: Complaint::default(),
            notes: None,
            is_prepared: false,
        };
        let (orders, received) = channel();
        let thread = thread::Builder::new()
            .name("forward".to_owned())
            .spawn(move || {
                // A server that is away must not keep the program from starting.
                let _ = forward.send_caught();
                forward.work(&received);
            })
            .map_err(StoreError::file(&path))?;
        Ok(ClickHouseHistory {
            embedded,
            reader: query::Reader::new(link),
            for_calls: Box::new(ForCalls { reader: query::Reader::new(hurried), pause: Pause::of(LEFT_ALONE), recall }),
            status,
            orders,
            thread: Some(thread),
            patience,
            database,
        })
    }

    /// What is recorded goes into this node's own files first.
    pub(super) fn own(&self) -> &EmbeddedHistory {
        &self.embedded
    }

    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.flush_within(self.patience)
    }

    fn flush_within(&self, patience: Duration) -> Result<(), StoreError> {
        self.embedded.flush()?;
        let (reply, answer) = channel();
        self.orders.send(Order::Flush(reply)).map_err(|_| StoreError::WriterGone)?;
        answer.recv_timeout(patience).map_err(|why| match why {
            RecvTimeoutError::Disconnected => StoreError::WriterGone,
            RecvTimeoutError::Timeout => StoreError::Database {
                action: "take all events in",
                message: "the shared history did not take them in time; they wait on this node".to_owned(),
                may_pass: true,
            },
        })?
    }

    /// What this node has spent, from its own database, and what others have sent of theirs: right also while events of this
    /// node wait. A server that gave no answer is not asked again for a moment.
    pub(super) fn spent(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        self.embedded.flush()?;
        let failed = StoreError::database("be read");
        let node = open_reader(&self.database).and_then(|own| Position::read(&own)).map_err(failed)?.node;
        let ask = || self.for_calls.reader.spent_but_by(Some(&node), of, since);
        let elsewhere = self.for_calls.pause.around(|| {
            ask().or_else(|error| match &error {
                // Right after a first start the tables may still be on their way.
                StoreError::Database { may_pass: false, .. } if !self.has_problem() => {
                    self.flush_within(self.patience / HURRY).and_then(|()| ask())
                }
                _ => Err(error),
            })
        })?;
        let own = self.embedded.reader().spent(of, since)?;
        Ok(NanoUsd(own.0.saturating_add(elsewhere.0)))
    }

    fn has_problem(&self) -> bool {
        with_lock(&self.status, |status| status.problem.is_some())
    }

    /// What this node has spent, whatever others have.
    pub(super) fn spent_here(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        self.embedded.flush()?;
        self.embedded.reader().spent(of, since)
    }

    /// What is on record about a run that a call names.
    pub(super) fn recall(&self, key: &RunKey) -> Result<Option<PastRun>, StoreError> {
        self.for_calls.recall.of(key, || self.embedded.reader().recall(key))
    }

    /// What recorded events need to survive: this node's own disk.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        self.embedded.flush()
    }

    pub(super) fn prune(&self, now: Timestamp) -> Result<Pruned, StoreError> {
        self.embedded.prune(now)
    }

    pub(super) fn status(&self) -> HistoryStatus {
        let shared = with_lock(&self.status, |status| status.clone());
        HistoryStatus { shared: Some(shared), ..self.embedded.status() }
    }

    pub(super) fn lost_calls(&self) -> u64 {
        self.embedded.lost_calls()
    }

    pub(super) fn reader(&self) -> &query::Reader {
        &self.reader
    }
}

impl Drop for ClickHouseHistory {
    fn drop(&mut self) {
        let _ = self.embedded.flush();
        let _ = self.orders.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
