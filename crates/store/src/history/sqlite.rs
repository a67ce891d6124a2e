//! From a closed file of the spool into the database: one transaction, every event once.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use sprag_core::event::Event;

use super::insert::{Inserter, ROWS_AT_ONCE};
use super::line::{Line, read_line};
use super::open_calls::Journal;
use super::pauses::Pauses;
use super::saved;
use super::segment::for_each_line;
use super::tally::Tally;
use crate::error::StoreError;

/// What came out of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ingested {
    /// Events that are now in the database for the first time.
    pub(super) new: u64,
    /// Events whose id was known.
    pub(super) known: u64,
    /// Lines that are neither events nor beginnings of calls.
    pub(super) unreadable: u64,
}

/// How events are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The cheap way, which fails where an id is known.
    ManyAtOnce,
    OneByOne,
}

/// Where the lines of a file come from.
enum Source<'a> {
    Memory(Vec<Line>),
    File(&'a Path),
}

/// Where it went wrong.
enum Failed {
    File(StoreError),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed::Database(error)
    }
}

/// Inserts a file's events and adds the new ones to the totals, all or nothing. May be repeated. With its `lines` at hand the file is not read.
pub(super) fn ingest_file(
    connection: &mut Connection,
    path: &Path,
    lines: Option<Vec<Line>>,
    pauses: &Pauses,
) -> Result<Ingested, StoreError> {
    let source = lines.map_or(Source::File(path), Source::Memory);
    let taken = match take_in(connection, source, Pace::ManyAtOnce, pauses) {
        // A file that was read before, or an event that was handed over twice.
        Err(Failed::Database(error)) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            take_in(connection, Source::File(path), Pace::OneByOne, pauses)
        }
        taken => taken,
    };
    taken.map_err(|failed| match failed {
        Failed::File(error) => error,
        Failed::Database(error) => StoreError::database("take events in")(error),
    })
}

fn take_in(connection: &mut Connection, source: Source<'_>, pace: Pace, pauses: &Pauses) -> Result<Ingested, Failed> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut batch = Batch::begin(&transaction, pace)?;
    match source {
        Source::Memory(lines) => lines.into_iter().try_for_each(|line| batch.take(line))?,
        Source::File(path) => {
            let mut outcome = Ok(());
            for_each_line(path, |line| {
                if outcome.is_ok() {
                    outcome = batch.read(line);
                    // Reading takes as long as writing, and the database knows nothing of it.
                    pauses.pause_if_due();
                }
            })
            .map_err(Failed::File)?;
            outcome?;
        }
    }
    let ingested = batch.finish()?;
    transaction.commit()?;
    Ok(ingested)
}

/// What one transaction takes in.
struct Batch<'t> {
    transaction: &'t Transaction<'t>,
    pace: Pace,
    insert: Inserter<'t>,
    /// Events that wait until one statement takes them all.
    #[expect(clippy::vec_box, reason = "they come in boxes, and an event is large: it is not moved again")]
    waiting: Vec<Box<Event>>,
    journal: Journal,
    tally: Tally,
    ingested: Ingested,
}

impl<'t> Batch<'t> {
    fn begin(transaction: &'t Transaction<'t>, pace: Pace) -> rusqlite::Result<Batch<'t>> {
        Ok(Batch {
            transaction,
            pace,
            insert: Inserter::new(transaction)?,
            waiting: Vec::with_capacity(ROWS_AT_ONCE),
            journal: Journal::begin(transaction)?,
            tally: Tally::default(),
            ingested: Ingested::default(),
        })
    }

    fn read(&mut self, line: &[u8]) -> rusqlite::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(line) = read_line(line) {
            return self.take(line);
        }
        self.ingested.unreadable += 1;
        Ok(())
    }

    fn take(&mut self, line: Line) -> rusqlite::Result<()> {
        match line {
            Line::Event(event) => {
                self.journal.close(&event.id);
                self.insert(event)
            }
            Line::Open(call) => {
                self.journal.open(*call);
                Ok(())
            }
        }
    }

    fn insert(&mut self, event: Box<Event>) -> rusqlite::Result<()> {
        if self.pace == Pace::OneByOne || saved::concerns(&event) {
            self.insert_waiting()?;
            return self.insert_one(event);
        }
        self.waiting.push(event);
        if let Ok(events) = self.waiting.as_slice().try_into() {
            self.insert.many(events)?;
            for event in self.waiting.drain(..) {
                self.tally.add(&event);
            }
            self.ingested.new += ROWS_AT_ONCE as u64;
        }
        Ok(())
    }

    fn insert_waiting(&mut self) -> rusqlite::Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..).try_for_each(|event| self.insert_one(event))?;
        self.waiting = waiting;
        Ok(())
    }

    fn insert_one(&mut self, mut event: Box<Event>) -> rusqlite::Result<()> {
        if !self.insert.one(&event)? {
            self.ingested.known += 1;
            return Ok(());
        }
        saved::count(self.transaction, &mut event)?;
        self.tally.add(&event);
        self.ingested.new += 1;
        Ok(())
    }

    fn finish(mut self) -> rusqlite::Result<Ingested> {
        self.insert_waiting()?;
        self.tally.apply(self.transaction)?;
        self.journal.apply(self.transaction)?;
        Ok(self.ingested)
    }
}
