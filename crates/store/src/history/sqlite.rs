//! From a closed file of the spool into the database: one transaction, every event once.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use sprag_core::event::Event;

use super::insert::Inserter;
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

/// Events that are put in order before they are inserted. Calls end in another order than they begin in, but most within fewer.
const SORTED_AT_ONCE: usize = 1024;

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
    /// Events that wait until there are enough to be put in order.
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
            waiting: Vec::new(),
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
                self.journal.open(call);
                Ok(())
            }
        }
    }

    fn insert(&mut self, event: Box<Event>) -> rusqlite::Result<()> {
        if self.pace == Pace::OneByOne || saved::concerns(&event) {
            self.insert_waiting()?;
            return self.insert_one(event);
        }
        self.tally.add(&event);
        self.ingested.new += 1;
        self.waiting.push(event);
        if self.waiting.len() == SORTED_AT_ONCE {
            self.insert_waiting()?;
        }
        Ok(())
    }

    /// Inserts those that wait by time: then an index by time grows at its end, where there is nothing to look for. Events of the same time stay in
    /// their order, by which listings tell them apart.
    fn insert_waiting(&mut self) -> rusqlite::Result<()> {
        self.waiting.sort_by_key(|event| event.at);
        self.insert.many(self.waiting.drain(..))
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

#[cfg(test)]
mod tests {
    use sprag_core::dlp::Sightings;
    use sprag_core::event::{Ending, EventKind, RunOrigin, RunRecord, WouldBlock};
    use sprag_core::id::{AgentName, RunId};
    use sprag_core::loops::{Action, Detector, Finding, Mode, Proof, StepEvidence, Verdict};
    use sprag_core::money::NanoUsd;
    use sprag_core::time::Timestamp;
    use sprag_core::usage::Usage;
    use sprag_core::wire::Dialect;

    use super::*;
    use crate::history::rows;
    use crate::history::samples::{request, step};
    use crate::sqlite::{HISTORY, open_writer};

    fn taken_in(batches: &[&[Event]]) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
        for events in batches {
            let lines = events.iter().map(|event| Line::Event(Box::new(event.clone()))).collect();
            let taken = ingest_file(&mut connection, dir.path(), Some(lines), &Pauses::default()).unwrap();
            assert_eq!(taken, Ingested { new: events.len() as u64, ..Ingested::default() });
        }
        (dir, connection)
    }

    /// An event with a value or none in every column, for each in an order of its own.
    fn varied(n: u32) -> Event {
        let has = |every: u32| n.is_multiple_of(every);
        let word = |name: &str, many: u32| format!("{name}-{}", n % many);
        let number = |many: u32| u64::from(n % many);
        let (loop_type, proof) = (word("loop", 3), Proof::default());
        let finding = Finding {
            detector: Detector::Exact,
            mode: Mode::Shadow,
            loop_type,
            confidence: 1.0,
            score: 4.0,
            count: n,
            proof,
        };
        let verdict = Verdict { finding, action: Action::Warn, strike: 1, retry_seconds: has(2).then_some(n) };
        let run = RunRecord {
            id: RunId::parse(&format!("run-{n}")).unwrap(),
            step: if has(13) { 2 } else { 1 },
            parent: has(5).then(|| RunId::parse(&word("above", 2)).unwrap()),
            origin: if has(7) { RunOrigin::Declared } else { RunOrigin::Session },
        };
        Event {
            at: Timestamp(1_700_000_000_000 + i64::from(n * 37 % 50)),
            kind: if has(3) { EventKind::Request } else { EventKind::LlmCall },
            agent: AgentName::parse(&word("agent", 2)).unwrap(),
            key: has(4).then(|| word("key", 3)),
            run: (!has(11)).then_some(run),
            provider: word("provider", 2),
            dialect: if has(4) { Dialect::OpenaiChat } else { Dialect::Opaque },
            path: word("path", 3),
            model: (!has(3)).then(|| word("model", 5)),
            stream: has(5),
            status: 200 + (n % 3) as u16,
            ending: if has(6) { Ending::TimedOut } else { Ending::Complete },
            total_ms: n % 4,
            first_byte_ms: has(2).then_some(n % 3),
            overhead_us: n % 5,
            usage: (!has(3)).then(|| Usage {
                input: number(7),
                cache_read: number(2),
                cache_write: number(3),
                cache_write_1h: number(4),
                output: number(5),
                reasoning: number(6),
                audio_input: number(8),
                audio_output: number(9),
                estimated: has(10),
            }),
            cost: has(2).then_some(NanoUsd(i64::from(n % 6))),
            unpriced: has(9),
            finish: has(3).then(|| word("finish", 2)),
            tools: if has(6) { vec![word("tool", 5)] } else { Vec::new() },
            blocked: has(8),
            block_reason: has(8).then(|| word("reason", 3)),
            verdict: has(5).then(|| verdict.clone()),
            shadow: has(6).then_some(verdict),
            would_block: if has(7) {
                vec![WouldBlock { reason: word("reason", 2), exceeded_limit: None, message: word("message", 5) }]
            } else {
                Vec::new()
            },
            dlp: has(9).then(|| Sightings { total: n.into(), ..Sightings::default() }),
            level: has(2).then_some((n % 3) as f32 / 4.0),
            evidence: has(3).then(|| StepEvidence::from_bytes(&[16, 0, (n % 4) as u8]).unwrap()),
            saved: has(10).then_some(NanoUsd(i64::from(n % 4))),
            error: has(4).then(|| word("error", 3)),
            act: None,
            ..request(&format!("{n:04}"))
        }
    }

    fn events(connection: &Connection) -> Vec<Event> {
        let mut statement = connection.prepare(&format!("SELECT {} FROM events ORDER BY id", rows::COLUMNS)).unwrap();
        statement.query_map([], |row| Ok(rows::read(row)?.1)).unwrap().map(Result::unwrap).collect()
    }

    /// All of a table but its row numbers, as text.
    fn dump(connection: &Connection, table: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = statement.column_names().iter().map(|&name| name.to_owned()).collect();
        let row = |row: &rusqlite::Row<'_>| {
            let parts = columns.iter().filter(|name| *name != "seq");
            Ok(parts
                .map(|name| format!("{name} {:?}", row.get_ref(name.as_str()).unwrap()))
                .collect::<Vec<_>>()
                .join(", "))
        };
        let mut rows: Vec<String> = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        rows.sort();
        rows
    }

    #[test]
    fn what_many_rows_of_a_statement_have_in_common_is_not_mixed_up() {
        let all: Vec<Event> = (0..400).map(varied).collect();
        let (_dir, at_once) = taken_in(&[&all]);
        assert_eq!(events(&at_once), all);
        let each: Vec<&[Event]> = all.chunks(1).collect();
        let (_dir, one_by_one) = taken_in(&each);
        for table in ["events", "runs", "agent_totals", "spend", "key_spend", "minute_totals"] {
            assert_eq!(dump(&at_once, table), dump(&one_by_one, table), "{table}");
        }
    }

    #[test]
    fn events_are_numbered_by_time_and_those_of_the_same_time_as_they_came() {
        let at = |id: &str, at: i64| Event { at: Timestamp(at), ..step(id, "r", 1) };
        let (_dir, connection) = taken_in(&[&[at("d", 3), at("a", 2), at("c", 1), at("b", 2)]]);
        let ids: String = connection
            .query_row("SELECT group_concat(id, '') FROM (SELECT id FROM events ORDER BY seq)", [], |row| row.get(0))
            .unwrap();
        assert_eq!(ids, "cabd");
    }

    #[test]
    fn events_past_what_is_put_in_order_at_once_are_all_there() {
        let many: Vec<Event> = (0..=SORTED_AT_ONCE).map(|n| step(&format!("{n:05}"), "r", 1)).collect();
        let (_dir, connection) = taken_in(&[&many]);
        assert_eq!(events(&connection).len(), many.len());
        let steps: u32 = connection.query_row("SELECT steps FROM runs", [], |row| row.get(0)).unwrap();
        assert_eq!(steps as usize, many.len());
    }

    #[test]
    fn a_known_event_among_few_or_many_counts_once() {
        for many in [3, ROWS] {
            let dir = tempfile::tempdir().unwrap();
            let mut connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
            let path = dir.path().join("lines");
            let mut text = Vec::new();
            let mut line = Vec::new();
            for n in 0..many {
                assert!(crate::history::line::write_event(&mut line, &step(&n.to_string(), "r", 1)));
                text.extend_from_slice(&line);
            }
            // The first one once more, as the last.
            assert!(crate::history::line::write_event(&mut line, &step("0", "r", 1)));
            text.extend_from_slice(&line);
            std::fs::write(&path, text).unwrap();
            let taken = ingest_file(&mut connection, &path, None, &Pauses::default()).unwrap();
            assert_eq!(taken, Ingested { new: many, known: 1, unreadable: 0 });
            let steps: u32 = connection.query_row("SELECT steps FROM runs", [], |row| row.get(0)).unwrap();
            assert_eq!(u64::from(steps), many);
        }
    }

    /// More than one statement takes.
    const ROWS: u64 = 100;
}
