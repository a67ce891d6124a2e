//! The one thread that writes the database: empties the spool now and then, and deletes what is old.
//!
//! When the database refuses, the files stay and the thread tries again, later each time. Nothing here is on the
//! path of a request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use sprag_core::time::Timestamp;

use super::HistorySettings;
use super::complaint::Complaint;
use super::open_calls::settle_lost;
use super::pauses::{Pauses, take_time};
use super::retention::{Pruned, prune_batch};
use super::spool::Spool;
use super::sqlite::ingest_file;
use crate::error::StoreError;
use crate::shards::with_lock;
use crate::sqlite::{HISTORY, open_writer};

const LONGEST_BACK_OFF: Duration = Duration::from_secs(5);
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// How long deleting may keep events waiting.
const PRUNE_SLICE: Duration = Duration::from_millis(50);

/// What the thread is asked to do before its time.
pub(super) enum Order {
    /// A file was closed.
    Wake,
    /// Empty the spool now and say how it went.
    Flush(Sender<Result<(), StoreError>>),
    /// Delete all that is too old at the given time.
    Prune(Timestamp, Sender<Result<Pruned, StoreError>>),
    /// Empty the spool and end.
    Stop,
}

/// How far the database has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestStatus {
    /// Why events do not reach the database; absent while they do.
    pub problem: Option<String>,
    /// Everything recorded before this moment is in the database; absent until that was so once.
    pub caught_up_at: Option<Instant>,
    /// Events that reached it since the start.
    pub ingested: u64,
    /// Lines of the spool that could not be read.
    pub unreadable: u64,
    /// Calls that an earlier process did not live to see the end of; each was charged what was set aside for it.
    pub lost_calls: u64,
}

/// Whether calls are served meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// They are: also where a page waits for the work.
    WithPauses,
    /// Sprag starts or stops.
    AtOnce,
}

pub(super) struct Ingest {
    pub(super) database: PathBuf,
    /// Absent until the database can be opened.
    pub(super) connection: Option<Connection>,
    pub(super) spool: Arc<Spool>,
    pub(super) settings: HistorySettings,
    pub(super) status: Arc<Mutex<IngestStatus>>,
    pub(super) complaint: Complaint,
    pub(super) pauses: Arc<Pauses>,
    /// Calls that were under way when an earlier process died are charged.
    pub(super) is_past_settled: bool,
}

impl Ingest {
    /// Works until told to stop, or until nobody can tell it anything any more.
    pub(super) fn work(mut self, orders: &Receiver<Order>) {
        take_time();
        let mut failures = 0;
        let mut prune_at = Instant::now() + PRUNE_EVERY;
        loop {
            let wait = back_off(self.settings.flush_interval, failures);
            match orders.recv_timeout(wait) {
                Ok(Order::Prune(now, reply)) => {
                    let _ = reply.send(self.prune_all(now));
                    continue;
                }
                Ok(Order::Flush(reply)) => {
                    let outcome = self.cycle_caught(Haste::WithPauses);
                    failures = if outcome.is_ok() { 0 } else { failures + 1 };
                    let _ = reply.send(outcome);
                }
                Ok(Order::Wake) | Err(RecvTimeoutError::Timeout) => {
                    failures = if self.cycle_caught(Haste::WithPauses).is_ok() { 0 } else { failures + 1 };
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    let _ = self.cycle_caught(Haste::AtOnce);
                    return;
                }
            }
            if failures == 0 && Instant::now() >= prune_at && !self.prune_slice() {
                prune_at = Instant::now() + PRUNE_EVERY;
            }
        }
    }

    /// Puts everything recorded so far into the database.
    fn cycle(&mut self, haste: Haste) -> Result<(), StoreError> {
        let recording = self.spool.recover();
        // While the database is away the current file is left to grow to its full size: fewer files.
        self.empty_closed(haste)?;
        self.spool.close_current();
        self.empty_closed(haste)?;
        recording
    }

    /// A cycle that leaves its outcome in the status, and whose panic is only a failure.
    pub(super) fn cycle_caught(&mut self, haste: Haste) -> Result<(), StoreError> {
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.cycle(haste))).unwrap_or_else(|_| {
            Err(StoreError::Database {
                action: "take events in",
                message: "the writer panicked".to_owned(),
                may_pass: true,
            })
        });
        let problem = match &outcome {
            // The spool speaks for itself.
            Ok(()) | Err(StoreError::NotRecording(_)) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = &problem
            && self.complaint.is_due()
        {
            tracing::error!(error = %problem, "events wait in the spool");
        }
        with_lock(&self.status, |status| {
            if outcome.is_ok() {
                status.caught_up_at = Some(begun);
            }
            status.problem = problem;
        });
        outcome
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            absent => Ok(absent.insert(open(&self.database, &self.pauses)?)),
        }
    }

    fn empty_closed(&mut self, haste: Haste) -> Result<(), StoreError> {
        loop {
            let oldest = self.spool.oldest_closed();
            self.pauses.hurry(self.spool.is_behind() || haste == Haste::AtOnce);
            // Between the last line of earlier processes and the first of this one: then all that is open is lost.
            if !self.is_past_settled && oldest.as_ref().is_none_or(|(segment, _)| !self.spool.is_inherited(*segment)) {
                self.settle_past()?;
            }
            let Some((segment, path)) = oldest else { return Ok(()) };
            let (pauses, lines) = (Arc::clone(&self.pauses), self.spool.take_lines(segment));
            let ingested = ingest_file(self.connection()?, &path, lines, &pauses)?;
            if ingested.unreadable > 0 {
                tracing::warn!(lines = ingested.unreadable, path = %path.display(), "skipped lines that are not events");
            }
            with_lock(&self.status, |status| {
                status.ingested += ingested.new;
                status.unreadable += ingested.unreadable;
            });
            self.spool.remove(segment);
        }
    }

    fn settle_past(&mut self) -> Result<(), StoreError> {
        let lost = settle_lost(self.connection()?).map_err(StoreError::database("charge calls that were cut short"))?;
        self.is_past_settled = true;
        if lost > 0 {
            tracing::warn!(
                calls = lost,
                "calls were under way when Sprag ended; each is charged what was reserved for it"
            );
            with_lock(&self.status, |status| status.lost_calls += lost);
        }
        Ok(())
    }

    fn prune_all(&mut self, now: Timestamp) -> Result<Pruned, StoreError> {
        self.pauses.hurry(true);
        let mut pruned = Pruned::default();
        while self.prune_batch(now, &mut pruned)? {}
        Ok(pruned)
    }

    fn prune_batch(&mut self, now: Timestamp, pruned: &mut Pruned) -> Result<bool, StoreError> {
        let settings = self.settings.clone();
        prune_batch(self.connection()?, &settings, now, pruned).map_err(StoreError::database("delete what is old"))
    }

    /// Deletes for a moment. True if there is more.
    fn prune_slice(&mut self) -> bool {
        self.pauses.hurry(false);
        let start = Instant::now();
        let mut pruned = Pruned::default();
        while start.elapsed() < PRUNE_SLICE {
            match self.prune_batch(wall_clock(), &mut pruned) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    tracing::warn!(%error, "cannot delete what is old; trying again in a minute");
                    return false;
                }
            }
        }
        true
    }
}

/// Opens the database for writing, with pauses.
pub(super) fn open(database: &Path, pauses: &Arc<Pauses>) -> Result<Connection, StoreError> {
    let connection = open_writer(database, HISTORY)?;
    pauses.interrupt(&connection).map_err(StoreError::database("be prepared"))?;
    Ok(connection)
}

/// The usual interval, doubled for each failure in a row.
fn back_off(interval: Duration, failures: u32) -> Duration {
    if failures == 0 {
        return interval;
    }
    interval.saturating_mul(1 << failures.min(16)).min(LONGEST_BACK_OFF.max(interval))
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::samples::step;
    use crate::history::spool::When;

    /// One with a spool in a folder, and its database beside it.
    fn ingest_in(dir: &Path) -> Ingest {
        let settings = HistorySettings::default();
        let spool = Spool::open(dir, settings.spool_bytes, settings.segment_bytes).unwrap();
        Ingest {
            database: dir.join("sprag.db"),
            connection: None,
            spool: Arc::new(spool),
            settings,
            status: Arc::default(),
            complaint: Complaint::default(),
            pauses: Arc::default(),
            is_past_settled: false,
        }
    }

    #[test]
    fn what_is_old_goes_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let mut ingest = ingest_in(dir.path());
        let mut fresh = step("fresh", "r", 2);
        fresh.at = wall_clock();
        ingest.spool.record(&step("old", "r", 1), When::Now);
        ingest.spool.record(&fresh, When::Now);
        ingest.cycle_caught(Haste::AtOnce).unwrap();
        assert!(!ingest.prune_slice(), "all done within a slice");
        let left: String =
            ingest.connection().unwrap().query_row("SELECT group_concat(id) FROM events", [], |r| r.get(0)).unwrap();
        assert_eq!(left, "fresh");
    }

    #[test]
    fn what_is_behind_can_be_told_from_what_has_caught_up() {
        let dir = tempfile::tempdir().unwrap();
        // A folder is no database.
        let database = dir.path().join("sprag.db");
        std::fs::create_dir(&database).unwrap();
        let mut ingest = ingest_in(dir.path());
        ingest.spool.record(&step("a", "r", 1), When::Now);
        assert!(ingest.cycle_caught(Haste::AtOnce).is_err());
        let caught_up_at = |ingest: &Ingest| with_lock(&ingest.status, |status| status.caught_up_at);
        assert_eq!(caught_up_at(&ingest), None);
        std::fs::remove_dir(&database).unwrap();
        let before = Instant::now();
        ingest.cycle_caught(Haste::AtOnce).unwrap();
        assert!(caught_up_at(&ingest).is_some_and(|at| at >= before));
    }

    #[test]
    fn pauses_are_for_the_time_while_calls_are_served_and_it_keeps_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut ingest = ingest_in(dir.path());
        let record = |ingest: &Ingest, id| {
            ingest.spool.record(&step(id, "r", 1), When::Now);
            ingest.spool.close_current();
        };
        record(&ingest, "a");
        ingest.cycle_caught(Haste::WithPauses).unwrap();
        assert!(ingest.pauses.are_taken());
        ingest.cycle_caught(Haste::AtOnce).unwrap();
        assert!(!ingest.pauses.are_taken());
        // Two files wait, and the database takes neither.
        record(&ingest, "b");
        record(&ingest, "c");
        ingest.connection = None;
        let database = std::mem::replace(&mut ingest.database, dir.path().to_owned());
        assert!(ingest.cycle_caught(Haste::WithPauses).is_err());
        assert!(!ingest.pauses.are_taken(), "it is behind");
        ingest.database = database;
        ingest.cycle_caught(Haste::WithPauses).unwrap();
        assert!(ingest.pauses.are_taken(), "it has caught up");
    }

    #[test]
    fn backs_off_up_to_a_bound() {
        let interval = Duration::from_millis(500);
        assert_eq!(back_off(interval, 0), interval);
        assert_eq!(back_off(interval, 1), Duration::from_secs(1));
        assert_eq!(back_off(interval, 3), Duration::from_secs(4));
        assert_eq!(back_off(interval, u32::MAX), LONGEST_BACK_OFF);
    }
}
