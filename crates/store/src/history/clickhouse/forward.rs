//! The one thread that sends: from this node's own database to the shared one, in batches by size and age.
//!
//! Whatever fails is tried again, later each time, from where it stood. Nothing that is sent can count twice, so there is no need to
//! know how far a failed attempt came.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use sprag_core::limits::CLICKHOUSE_BATCH_BYTES;
use sprag_core::time::Timestamp;

use super::batch::{self, EVENT_COLUMNS, Lines, SUMS};
use super::link::{Link, Refused};
use super::position::{self, Position};
use super::schema;
use crate::error::StoreError;
use crate::history::HistorySettings;
use crate::history::complaint::Complaint;
use crate::shards::with_lock;
use crate::sqlite::{HISTORY, open_reader, open_writer};

const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);

/// What the thread is asked to do before its time.
pub(super) enum Order {
    /// Send all that waits now, and say how it went.
    Flush(Sender<Result<(), StoreError>>),
    /// Send all that waits and end.
    Stop,
}

/// How far the shared history has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardStatus {
    /// Why nothing arrives there; absent while it does.
    pub problem: Option<String>,
    /// Events that arrived since the start.
    pub sent: u64,
    /// Events that wait on this node.
    pub waiting: u64,
    /// When the oldest of them happened.
    pub oldest_waiting: Option<Timestamp>,
    /// Events whose detail was given up, because too many waited; their money arrives all the same.
    pub dropped: u64,
}

pub(super) struct Forward {
    pub(super) database: PathBuf,
    pub(super) link: Arc<Link>,
    pub(super) settings: HistorySettings,
    pub(super) batch_events: u32,
    pub(super) batch_age: Duration,
    pub(super) status: Arc<Mutex<ForwardStatus>>,
    pub(super) complaint: Complaint,
    /// Notes how far it came; absent until the database can be opened.
    pub(super) notes: Option<Connection>,
    /// The tables are there and the server knows this node.
    pub(super) is_prepared: bool,
}

/// Why a batch did not arrive.
enum Failure {
    Here(StoreError),
    There(Refused),
}

impl Forward {
    /// Works until told to stop, or until nobody can tell it anything any more.
    pub(super) fn work(mut self, orders: &Receiver<Order>) {
        let mut failures: u32 = 0;
        loop {
            match orders.recv_timeout(back_off(self.batch_age, failures)) {
                Ok(Order::Flush(reply)) => {
                    let outcome = self.send_caught();
                    failures = if outcome.is_ok() { 0 } else { failures.saturating_add(1) };
                    let _ = reply.send(outcome);
                }
                Err(RecvTimeoutError::Timeout) => {
                    failures = if self.send_caught().is_ok() { 0 } else { failures.saturating_add(1) };
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    // What cannot be sent now is sent after the next start.
                    if failures == 0 {
                        let _ = self.send_caught();
                    }
                    return;
                }
            }
        }
    }

    /// Sends all that waits, leaves the outcome in the status, and takes a panic for a failure.
    pub(super) fn send_caught(&mut self) -> Result<(), StoreError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.send_all())).unwrap_or_else(|_| {
            Err(StoreError::Database {
                action: "take events in",
                message: "the thread that sends them panicked".to_owned(),
                may_pass: true,
            })
        });
        let problem = outcome.as_ref().err().map(ToString::to_string);
        if let Some(problem) = &problem
            && self.complaint.is_due()
        {
            tracing::error!(error = %problem, "events wait on this node for the shared history");
        }
        let is_recovered = with_lock(&self.status, |status| {
            let was_failing = status.problem.is_some();
            status.problem.clone_from(&problem);
            was_failing && problem.is_none()
        });
        if is_recovered {
            tracing::info!("events reach the shared history again");
        }
        self.count_waiting();
        outcome
    }

    fn send_all(&mut self) -> Result<(), StoreError> {
        self.try_send_all().map_err(|failure| match failure {
            Failure::Here(error) => error,
            Failure::There(refused) => {
                // A server that lost its tables, or was replaced, is set up anew.
                self.is_prepared &= refused.code.is_none();
                self.link.error("take events in", &refused)
            }
        })
    }

    fn try_send_all(&mut self) -> Result<(), Failure> {
        if self.notes.is_none() {
            self.notes = Some(open_writer(&self.database, HISTORY).map_err(Failure::Here)?);
        }
        let Some(notes) = &self.notes else { return Ok(()) };
        if !self.is_prepared {
            schema::prepare(&self.link, &self.settings).map_err(Failure::There)?;
            introduce(&self.link, notes)?;
            self.is_prepared = true;
        }
        let reader = open_reader(&self.database)?;
        if Position::read(notes)?.is_whole_due {
            self.send_whole(notes, &reader)?;
        }
        while self.send_batch(notes, &reader)? {}
        Ok(())
    }

    /// Sends one batch. True when another may follow.
    fn send_batch(&self, notes: &Connection, reader: &Connection) -> Result<bool, Failure> {
        // One look at the database: sums and events fit each other.
        let look = reader.unchecked_transaction()?;
        let at = Position::read(&look)?;
        let (events, last) = batch::events(&look, &at.node, at.sent, at.sending, self.batch_events)?;
        if last <= at.sent {
            return Ok(false);
        }
        let version = position::begin(notes, last)?;
        let sums = SUMS.iter().map(|table| {
            let lines = table.changed(&look, (&at.node, version), (at.sent, last))?;
            Ok((table.name, lines))
        });
        let sums = sums.collect::<rusqlite::Result<Vec<_>>>()?;
        // Sending may take long, and while somebody looks SQLite cannot make its log shorter.
        drop(look);
        for (table, lines) in &sums {
            self.insert(&format!("INSERT INTO {table} FORMAT JSONEachRow"), lines, None)?;
        }
        let name = format!("{}-{}-{last}", at.node, at.sent);
        self.insert(&format!("INSERT INTO events ({EVENT_COLUMNS}) FORMAT JSONEachRow"), &events, Some(&name))?;
        position::arrived(notes, last)?;
        with_lock(&self.status, |status| status.sent += events.rows);
        // New events come all the time: what is less than a batch waits for its age.
        let is_again = at.sending > at.sent;
        let is_full = events.rows >= u64::from(self.batch_events) || events.text.len() >= CLICKHOUSE_BATCH_BYTES;
        Ok(is_again || is_full)
    }

    /// Sends every sum: to a server that is new to this node, or after events were given up.
    fn send_whole(&self, notes: &Connection, reader: &Connection) -> Result<(), Failure> {
        let at = Position::read(notes)?;
        let version = position::begin(notes, at.sending)?;
        for table in &SUMS {
            let statement = format!("INSERT INTO {} FORMAT JSONEachRow", table.name);
            table.whole(reader, (&at.node, version), |lines| self.insert(&statement, lines, None))?;
        }
        position::whole_arrived(notes)?;
        Ok(())
    }

    fn insert(&self, statement: &str, lines: &Lines, name: Option<&str>) -> Result<(), Failure> {
        if lines.rows == 0 {
            return Ok(());
        }
        self.link.insert(statement, &lines.text, name).map_err(Failure::There)
    }

    fn count_waiting(&self) {
        let Some(notes) = &self.notes else { return };
        let counted = Position::read(notes).and_then(|at| Ok((at.waiting(notes)?, at.dropped)));
        if let Ok((waiting, dropped)) = counted {
            with_lock(&self.status, |status| {
                status.waiting = waiting.events;
                status.oldest_waiting = waiting.oldest_at.map(Timestamp);
                status.dropped = dropped;
            });
        }
    }
}

/// Makes the node known to the server. One that does not know it has lost what it had, or is another: it gets everything.
fn introduce(link: &Link, notes: &Connection) -> Result<(), Failure> {
    let at = Position::read(notes)?;
    let known =
        link.number(&format!("SELECT count() FROM nodes WHERE node = '{}'", at.node)).map_err(Failure::There)?;
    if known == 0 {
        position::start_over(notes)?;
    }
    let line = format!(
        "{{\"node\":\"{}\",\"started_at\":{},\"build\":\"{}\"}}",
        at.node,
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis(),
        env!("CARGO_PKG_VERSION")
    );
    link.insert("INSERT INTO nodes FORMAT JSONEachRow", line.as_bytes(), None).map_err(Failure::There)
}

/// The usual interval, doubled for each failure in a row.
fn back_off(interval: Duration, failures: u32) -> Duration {
    if failures == 0 {
        return interval;
    }
    interval.saturating_mul(1 << failures.min(16)).min(LONGEST_BACK_OFF.max(interval))
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Here(StoreError::database("be read for the shared history")(error))
    }
}
