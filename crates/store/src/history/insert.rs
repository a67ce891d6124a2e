//! Events into their table: many with one statement where all of them are new, else one at a time.
//!
//! The table has fourteen indexes. A statement opens all of them and finds its place in each from the root; with many rows
//! it does so once, and an event that follows another in time goes where that one went.

use rusqlite::{CachedStatement, Connection};
use sprag_core::event::Event;
use sprag_core::id::RunId;
use sprag_core::loops::StepEvidence;
use sprag_core::usage::Usage;

use super::rows::{COLUMNS, clamp};
use super::values::{Row, Values, rows_of};

/// Rows of one statement. More gain nothing that can be measured, and the statement's room grows with them.
const ROWS_AT_ONCE: usize = 32;

/// One row. SQLite numbers it; with the number among them the columns are those of the table, in its order, and none is copied on the way.
fn row() -> String {
    format!("NULL{}", ", ?".repeat(VALUES))
}

/// Values of one row: all columns but the row's number.
const VALUES: usize = 43;

/// Inserts the events of one transaction.
pub(super) struct Inserter<'c> {
    connection: &'c Connection,
    one: CachedStatement<'c>,
    /// These two are prepared when there are events for them.
    one_new: Option<CachedStatement<'c>>,
    many: Option<CachedStatement<'c>>,
    /// The events whose values `many` holds. Usually most of them are those of the next ones too, and need not be bound again.
    #[expect(clippy::vec_box, reason = "they come in boxes, and an event is large: it is not moved again")]
    held: Vec<Box<Event>>,
    word: Vec<u8>,
}

impl<'c> Inserter<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Inserter<'c>> {
        let one = connection.prepare_cached(&format!("{} ON CONFLICT (id) DO NOTHING", insert("INSERT", 1)))?;
        Ok(Inserter { connection, one, one_new: None, many: None, held: Vec::new(), word: Vec::new() })
    }

    /// Inserts an event. False if its id is known already.
    pub(super) fn one(&mut self, event: &Event) -> rusqlite::Result<bool> {
        put_event(&mut Values::of(&mut self.one), event, None, &mut self.word)?;
        Ok(self.one.raw_execute()? == 1)
    }

    /// Inserts events that are new. If an id is known after all, the whole transaction is undone.
    pub(super) fn many(&mut self, events: impl IntoIterator<Item = Box<Event>>) -> rusqlite::Result<()> {
        let mut events = events.into_iter().peekable();
        while events.peek().is_some() {
            let rows: Vec<Box<Event>> = events.by_ref().take(ROWS_AT_ONCE).collect();
            if rows.len() == ROWS_AT_ONCE {
                self.rows(rows)?;
            } else {
                self.row_by_row(&rows)?;
            }
        }
        Ok(())
    }

    fn row_by_row(&mut self, events: &[Box<Event>]) -> rusqlite::Result<()> {
        let statement = match &mut self.one_new {
            Some(statement) => statement,
            absent => absent.insert(self.connection.prepare_cached(&insert("INSERT OR ROLLBACK", 1))?),
        };
        let mut held = None;
        for event in events {
            put_event(&mut Values::of(statement), event, held, &mut self.word)?;
            statement.raw_execute()?;
            held = Some(event.as_ref());
        }
        Ok(())
    }

    #[expect(clippy::vec_box, reason = "as above")]
    fn rows(&mut self, events: Vec<Box<Event>>) -> rusqlite::Result<()> {
        let statement = match &mut self.many {
            Some(statement) => statement,
            absent => absent.insert(self.connection.prepare_cached(&insert("INSERT OR ROLLBACK", ROWS_AT_ONCE))?),
        };
        // Taken out, so that after a failure in between nothing is relied on.
        let held = std::mem::take(&mut self.held);
        let mut values = Values::of(statement);
        for (place, event) in events.iter().enumerate() {
            put_event(&mut values, event, held.get(place).map(Box::as_ref), &mut self.word)?;
        }
        statement.raw_execute()?;
        self.held = events;
        Ok(())
    }
}

fn insert(how: &str, rows: usize) -> String {
    format!("{how} INTO events ({COLUMNS}) VALUES {}", rows_of(&row(), rows))
}

/// Puts the columns of an event, in the order of [`COLUMNS`]. `held` is the event whose values the statement holds in these places.
fn put_event<'e>(
    values: &mut Values<'_, '_>,
    event: &'e Event,
    held: Option<&'e Event>,
    word: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    let mut row = Row::new(values, event, held, word);
    row.put(|e| &e.id)?;
    row.put(|e| e.at.0)?;
    row.put_word(|e| Some(e.kind))?;
    row.put(|e| e.agent.as_str())?;
    row.put(|e| e.run.as_ref().map(|run| run.id.as_str()))?;
    row.put(|e| e.run.as_ref().map(|run| run.step))?;
    row.put(|e| e.run.as_ref().and_then(|run| run.parent.as_ref()).map(RunId::as_str))?;
    row.put_word(|e| e.run.as_ref().map(|run| run.origin))?;
    row.put(|e| &e.provider)?;
    row.put_word(|e| Some(e.dialect))?;
    row.put(|e| &e.path)?;
    row.put(|e| &e.model)?;
    row.put(|e| e.stream)?;
    row.put(|e| e.status)?;
    row.put_word(|e| Some(e.ending))?;
    row.put(|e| e.total_ms)?;
    row.put(|e| e.first_byte_ms)?;
    row.put(|e| e.overhead_us)?;
    put_usage(&mut row)?;
    row.put(|e| e.cost.map(|cost| cost.0))?;
    row.put(|e| e.unpriced)?;
    row.put(|e| &e.finish)?;
    row.put_json(|e| (!e.tools.is_empty()).then_some(&e.tools))?;
    row.put(|e| e.blocked)?;
    row.put(|e| &e.block_reason)?;
    row.put(|e| &e.error)?;
    row.put_json(|e| e.act.as_ref())?;
    row.put_json(|e| e.verdict.as_ref())?;
    row.put_json(|e| e.shadow.as_ref())?;
    row.put(|e| &e.key)?;
    row.put_json(|e| (!e.would_block.is_empty()).then_some(&e.would_block))?;
    row.put_json(|e| e.dlp.as_ref())?;
    row.put(|e| e.level.map(f64::from))?;
    row.put(|e| e.evidence.as_ref().map(StepEvidence::as_bytes))?;
    row.put(|e| e.saved.map(|saved| saved.0))
}

fn put_usage(row: &mut Row<'_, '_, '_, '_, Event>) -> rusqlite::Result<()> {
    let parts: [fn(&Usage) -> u64; 8] = [
        |u| u.input,
        |u| u.cache_read,
        |u| u.cache_write,
        |u| u.cache_write_1h,
        |u| u.output,
        |u| u.reasoning,
        |u| u.audio_input,
        |u| u.audio_output,
    ];
    for part in parts {
        row.put(|e| e.usage.as_ref().map(|usage| clamp(part(usage))))?;
    }
    row.put(|e| e.usage.map(|usage| usage.estimated))
}
