//! From a closed file of the spool into the database: one transaction, every event once.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::line::{Line, read_line};
use super::open_calls::Journal;
use super::rows;
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

/// Inserts a file's events and adds the new ones to the totals, all or nothing. May be repeated.
pub(super) fn ingest_file(connection: &mut Connection, path: &Path) -> Result<Ingested, StoreError> {
    let failed = |error| StoreError::database("take events in")(error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let mut ingested = Ingested::default();
    let mut tally = Tally::default();
    let mut journal = Journal::begin(&transaction).map_err(failed)?;
    let mut outcome = Ok(());
    for_each_line(path, |line| {
        if line.is_empty() || outcome.is_err() {
            return;
        }
        let mut event = match read_line(line) {
            Some(Line::Event(event)) => event,
            Some(Line::Open(call)) => return journal.open(*call),
            None => {
                ingested.unreadable += 1;
                return;
            }
        };
        journal.close(&event.id);
        let inserted = rows::insert(&transaction, &event)
            .and_then(|is_new| if is_new { saved::count(&transaction, &mut event).map(|()| true) } else { Ok(false) });
        match inserted {
            Ok(true) => {
                ingested.new += 1;
                tally.add(&event);
            }
            Ok(false) => ingested.known += 1,
            Err(error) => outcome = Err(error),
        }
    })?;
    outcome
        .and_then(|()| tally.apply(&transaction))
        .and_then(|()| journal.apply(&transaction))
        .and_then(|()| transaction.commit())
        .map_err(failed)?;
    Ok(ingested)
}
