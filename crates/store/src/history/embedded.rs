//! The embedded history: spool, writer thread and readers of one data directory.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use sprag_core::event::Event;
use sprag_core::time::Timestamp;

use super::clickhouse;
use super::complaint::Complaint;
use super::ingest::{self, Haste, Ingest, IngestStatus, Order};
use super::open_calls::OpenCall;
use super::pauses::Pauses;
use super::query::Reader;
use super::retention::Pruned;
use super::spool::{Recorded, Spool, When};
use super::{HistorySettings, HistoryStatus};
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::shards::with_lock;

/// Events in one SQLite file. Dropping it moves what was recorded into the database first.
pub struct EmbeddedHistory {
    spool: Arc<Spool>,
    reader: Reader,
    ingest_status: Arc<Mutex<IngestStatus>>,
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
    /// Those of the thread.
    pauses: Arc<Pauses>,
    /// Keeps other processes out for as long as the files are in use.
    _dir: Arc<DataDir>,
}

impl EmbeddedHistory {
    pub(super) fn open(dir: Arc<DataDir>, settings: HistorySettings) -> Result<EmbeddedHistory, StoreError> {
        let database = dir.path().join("sprag.db");
        let pauses = Arc::new(Pauses::default());
        let connection = match ingest::open(&database, &pauses) {
            Ok(connection) => Some(connection),
            // A full disk stops recording and nothing else: the writer opens the database when it can.
            Err(StoreError::Database { may_pass: true, .. }) => None,
            Err(error) => return Err(error),
        };
        if let (Some(connection), None) = (&connection, &settings.clickhouse) {
            // A full disk is told by the writer.
            let _ = clickhouse::start_over(connection);
        }
        let spool_dir = dir.path().join("spool");
        let spool = Arc::new(Spool::open(&spool_dir, settings.spool_bytes, settings.segment_bytes)?);
        let ingest_status = Arc::new(Mutex::new(IngestStatus::default()));
        let mut ingest = Ingest {
            database: database.clone(),
            connection,
            spool: Arc::clone(&spool),
            settings,
            status: Arc::clone(&ingest_status),
            complaint: Complaint::default(),
            pauses: Arc::clone(&pauses),
            is_past_settled: false,
        };
        // What cannot be moved now waits in its files, and the status says so.
        let _ = ingest.cycle_caught(Haste::AtOnce);
        let (orders, received) = channel();
        let thread = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || ingest.work(&received))
            .map_err(StoreError::file(dir.path()))?;
        Ok(EmbeddedHistory {
            spool,
            reader: Reader::new(&database),
            ingest_status,
            orders,
            thread: Some(thread),
            pauses,
            _dir: dir,
        })
    }

    pub(super) fn opened(&self, call: OpenCall, when: When) -> bool {
        let (is_open, is_file_closed) = self.spool.open_call(call, when);
        self.wake_if(is_file_closed);
        is_open
    }

    pub(super) fn record(&self, event: &Event, when: When) -> Recorded {
        let (recorded, is_file_closed) = self.spool.record(event, when);
        self.wake_if(is_file_closed);
        recorded
    }

    pub(super) fn write_out(&self) {
        self.wake_if(self.spool.write_out());
    }

    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let _waiting = self.pauses.wait();
        let (reply, answer) = channel();
        self.orders.send(Order::Flush(reply)).map_err(|_| StoreError::WriterGone)?;
        answer.recv().map_err(|_| StoreError::WriterGone)?
    }

    pub(super) fn prune(&self, now: Timestamp) -> Result<Pruned, StoreError> {
        let _waiting = self.pauses.wait();
        let (reply, answer) = channel();
        self.orders.send(Order::Prune(now, reply)).map_err(|_| StoreError::WriterGone)?;
        answer.recv().map_err(|_| StoreError::WriterGone)?
    }

    pub(super) fn status(&self) -> HistoryStatus {
        HistoryStatus {
            spool: self.spool.status(),
            ingest: with_lock(&self.ingest_status, |status| status.clone()),
            shared: None,
        }
    }

    pub(super) fn lost_calls(&self) -> u64 {
        with_lock(&self.ingest_status, |status| status.lost_calls)
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    fn wake_if(&self, is_file_closed: bool) {
        if is_file_closed {
            // One of them may be in hand with long pauses.
            if self.spool.is_behind() {
                self.pauses.hurry(true);
            }
            // Without the thread the events stay in the spool for the next start.
            let _ = self.orders.send(Order::Wake);
        }
    }
}

impl Drop for EmbeddedHistory {
    fn drop(&mut self) {
        self.pauses.hurry(true);
        let _ = self.orders.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
