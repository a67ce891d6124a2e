//! Events into their table: many with one statement where all of them are new, else one at a time.
//!
//! The table has fourteen indexes. A statement opens all of them and finds its place in each from the root; with many rows
//! it does so once, and an event that follows another in time goes where that one went.

use rusqlite::{CachedStatement, Connection};
use sprag_core::event::Event;
use sprag_core::id::RunId;
use sprag_core::loops::StepEvidence;
use sprag_core::usage::Usage;

use super::rows::{COLUMNS, clamp, json};
use super::values::{Values, rows_of, word_in};

/// Rows of one statement. More gain nothing that can be measured, and the statement's room grows with them.
pub(super) const ROWS_AT_ONCE: usize = 32;

/// Values of one row: all columns but the row's number.
const VALUES: usize = 43;

/// Inserts the events of one transaction.
pub(super) struct Inserter<'c> {
    connection: &'c Connection,
    one: CachedStatement<'c>,
    /// Prepared when there are enough events for it.
    many: Option<CachedStatement<'c>>,
    word: Vec<u8>,
}

impl<'c> Inserter<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Inserter<'c>> {
        let one = connection.prepare_cached(&format!("{} ON CONFLICT (id) DO NOTHING", insert("INSERT", 1)))?;
        Ok(Inserter { connection, one, many: None, word: Vec::new() })
    }

    /// Inserts an event. False if its id is known already.
    pub(super) fn one(&mut self, event: &Event) -> rusqlite::Result<bool> {
        put_event(&mut Values::of(&mut self.one), event, &mut self.word)?;
        Ok(self.one.raw_execute()? == 1)
    }

    /// Inserts [`ROWS_AT_ONCE`] events that are new. If an id is known after all, the whole transaction is undone.
    pub(super) fn many(&mut self, events: &[Box<Event>; ROWS_AT_ONCE]) -> rusqlite::Result<()> {
        let statement = match &mut self.many {
            Some(statement) => statement,
            absent => absent.insert(self.connection.prepare_cached(&insert("INSERT OR ROLLBACK", ROWS_AT_ONCE))?),
        };
        let mut values = Values::of(statement);
        for event in events {
            put_event(&mut values, event, &mut self.word)?;
        }
        statement.raw_execute().map(drop)
    }
}

fn insert(how: &str, rows: usize) -> String {
    let columns = COLUMNS.trim_start_matches("seq, ");
    format!("{how} INTO events ({columns}) VALUES {}", rows_of(VALUES, rows))
}

/// Puts the columns of an event, in the order of [`COLUMNS`].
fn put_event(values: &mut Values<'_, '_>, event: &Event, word: &mut Vec<u8>) -> rusqlite::Result<()> {
    let run = event.run.as_ref();
    values.put(&event.id)?;
    values.put(event.at.0)?;
    values.put(word_in(word, &event.kind))?;
    values.put(event.agent.as_str())?;
    values.put(run.map(|run| run.id.as_str()))?;
    values.put(run.map(|run| run.step))?;
    values.put(run.and_then(|run| run.parent.as_ref()).map(RunId::as_str))?;
    values.put(run.map(|run| word_in(word, &run.origin)))?;
    values.put(&event.provider)?;
    values.put(word_in(word, &event.dialect))?;
    values.put(&event.path)?;
    values.put(&event.model)?;
    values.put(event.stream)?;
    values.put(event.status)?;
    values.put(word_in(word, &event.ending))?;
    values.put(event.total_ms)?;
    values.put(event.first_byte_ms)?;
    values.put(event.overhead_us)?;
    put_usage(values, event.usage.as_ref())?;
    values.put(event.cost.map(|cost| cost.0))?;
    values.put(event.unpriced)?;
    values.put(&event.finish)?;
    values.put(json((!event.tools.is_empty()).then_some(&event.tools)))?;
    values.put(event.blocked)?;
    values.put(&event.block_reason)?;
    values.put(&event.error)?;
    values.put(json(event.act.as_ref()))?;
    values.put(json(event.verdict.as_ref()))?;
    values.put(json(event.shadow.as_ref()))?;
    values.put(&event.key)?;
    values.put(json((!event.would_block.is_empty()).then_some(&event.would_block)))?;
    values.put(json(event.dlp.as_ref()))?;
    values.put(event.level.map(f64::from))?;
    values.put(event.evidence.as_ref().map(StepEvidence::as_bytes))?;
    values.put(event.saved.map(|saved| saved.0))
}

fn put_usage(values: &mut Values<'_, '_>, usage: Option<&Usage>) -> rusqlite::Result<()> {
    let counts = usage.map(|u| {
        let Usage {
            input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output, ..
        } = *u;
        [input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output].map(clamp)
    });
    for part in 0..8 {
        values.put(counts.map(|counts| counts[part]))?;
    }
    values.put(usage.map(|usage| usage.estimated))
}
