//! Sums of runs, written many with one statement.

use rusqlite::{CachedStatement, Transaction};
use sprag_core::event::{Event, RunRecord};
use sprag_core::id::{AgentName, RunId};

use super::Sums;
use crate::history::values::{Row, Values, rows_of};

/// Rows of one statement: see [`crate::history::insert`].
const RUNS_AT_ONCE: usize = 16;
/// One row, of all columns in the order of the table: see [`crate::history::insert`].
const ROW: &str = "NULL, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL, ?";

/// What a batch adds to a run.
pub(super) struct RunSums {
    sums: Sums,
    record: RunRecord,
    provider: String,
    model: Option<String>,
    /// When the call that `provider` and `model` come from arrived.
    latest_at: i64,
    /// The first step of the run is among these: it has hardly a row yet.
    is_beginning: bool,
}

impl RunSums {
    pub(super) fn new(record: &RunRecord) -> RunSums {
        RunSums {
            sums: Sums::default(),
            record: record.clone(),
            provider: String::new(),
            model: None,
            latest_at: i64::MIN,
            is_beginning: false,
        }
    }

    pub(super) fn add(&mut self, event: &Event, record: &RunRecord, sums: &Sums) {
        self.sums.add(sums);
        self.is_beginning |= record.step == 1;
        if event.at.0 >= self.latest_at {
            self.latest_at = event.at.0;
            if !event.provider.is_empty() {
                self.provider.clone_from(&event.provider);
            }
            if event.model.is_some() {
                self.model.clone_from(&event.model);
            }
        }
        if self.record.parent.is_none() {
            self.record.parent.clone_from(&record.parent);
        }
    }
}

/// Adds sums to the rows of runs.
///
/// Runs that begin are tried as rows that nobody has: an upsert that says what became of each row takes twice the time.
pub(super) struct RunUpsert<'t> {
    one: CachedStatement<'t>,
    many: CachedStatement<'t>,
    many_new: CachedStatement<'t>,
    newest: CachedStatement<'t>,
    row_of: CachedStatement<'t>,
    word: Vec<u8>,
}

impl<'t> RunUpsert<'t> {
    pub(super) fn new(transaction: &'t Transaction<'_>) -> rusqlite::Result<RunUpsert<'t>> {
        let upsert = |rows: usize| transaction.prepare_cached(&format!("INSERT {INTO} {} {ADD}", rows_of(ROW, rows)));
        let many_new = format!("INSERT OR IGNORE {INTO} {}", rows_of(ROW, RUNS_AT_ONCE));
        Ok(RunUpsert {
            one: upsert(1)?,
            many: upsert(RUNS_AT_ONCE)?,
            many_new: transaction.prepare_cached(&many_new)?,
            newest: transaction.prepare_cached("SELECT max(seq) FROM runs")?,
            row_of: transaction.prepare_cached("SELECT seq FROM runs WHERE agent = ?1 AND run_id = ?2")?,
            word: Vec::new(),
        })
    }

    /// Writes the runs of an agent, which come in the order of their ids, and says how many had no step before.
    pub(super) fn write<'a>(
        &mut self,
        agent: &AgentName,
        runs: impl Iterator<Item = &'a RunSums>,
    ) -> rusqlite::Result<i64> {
        let (mut beginning, going_on): (Vec<&RunSums>, Vec<&RunSums>) = runs.partition(|run| run.is_beginning);
        // Two of the indexes are by this time, and grow at their end.
        beginning.sort_by_key(|run| run.sums.last_at);
        let mut new = 0;
        let (chunks, rest) = beginning.as_chunks::<RUNS_AT_ONCE>();
        let mut held = None;
        for chunk in chunks {
            new += self.insert(agent, chunk, held)?;
            held = Some(chunk);
        }
        for run in rest {
            new += upsert(&mut self.one, agent, &[run], &mut self.word)?;
        }
        let (chunks, rest) = going_on.as_chunks::<RUNS_AT_ONCE>();
        for chunk in chunks {
            new += upsert(&mut self.many, agent, chunk, &mut self.word)?;
        }
        for run in rest {
            new += upsert(&mut self.one, agent, &[run], &mut self.word)?;
        }
        Ok(new)
    }

    /// Inserts runs, and adds to those that have a row after all: a name that is used again, or a run that was killed before its first step.
    /// `held` are those that the statement was used for just before.
    fn insert(
        &mut self,
        agent: &AgentName,
        runs: &[&RunSums; RUNS_AT_ONCE],
        held: Option<&[&RunSums; RUNS_AT_ONCE]>,
    ) -> rusqlite::Result<i64> {
        let mut values = Values::of(&mut self.many_new);
        for (place, run) in runs.iter().enumerate() {
            put_run(&mut values, agent, run, held.map(|held| held[place]), &mut self.word)?;
        }
        let inserted = self.many_new.raw_execute()?;
        let mut new = i64::try_from(inserted).unwrap_or(i64::MAX);
        if inserted < RUNS_AT_ONCE {
            // Numbers of rows grow one by one, so those that were inserted just now have the last ones.
            let newest: i64 = self.newest.query_row([], |row| row.get(0))?;
            let before = newest - new;
            for run in runs {
                let of_run = (agent.as_str(), run.record.id.as_str());
                let seq: i64 = self.row_of.query_row(of_run, |row| row.get(0))?;
                if seq <= before {
                    new += upsert(&mut self.one, agent, &[run], &mut self.word)?;
                }
            }
        }
        Ok(new)
    }
}

/// Puts the columns of a run. `held` is a run of the same agent, whose values the statement holds in these places.
fn put_run<'r>(
    values: &mut Values<'_, '_>,
    agent: &AgentName,
    run: &'r RunSums,
    held: Option<&'r RunSums>,
    word: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    let mut row = Row::new(values, run, held, word);
    row.put(|_| agent.as_str())?;
    row.put(|run| run.record.id.as_str())?;
    row.put(|run| run.record.parent.as_ref().map(RunId::as_str))?;
    row.put_word(|run| Some(run.record.origin))?;
    row.put(|run| &run.provider)?;
    row.put(|run| &run.model)?;
    row.put(|run| run.sums.steps)?;
    row.put(|run| run.sums.input)?;
    row.put(|run| run.sums.cached)?;
    row.put(|run| run.sums.output)?;
    row.put(|run| run.sums.cost_nano)?;
    row.put(|run| run.sums.unpriced)?;
    row.put(|run| run.sums.estimated)?;
    row.put(|run| run.sums.blocked)?;
    row.put(|run| run.sums.errors)?;
    row.put(|run| run.sums.first_at)?;
    row.put(|run| run.sums.last_at)?;
    row.put(|run| run.sums.saved_nano)
}

/// Says how many had no step before.
fn upsert(
    statement: &mut CachedStatement<'_>,
    agent: &AgentName,
    runs: &[&RunSums],
    word: &mut Vec<u8>,
) -> rusqlite::Result<i64> {
    let mut values = Values::of(statement);
    for run in runs {
        put_run(&mut values, agent, run, None, word)?;
    }
    let mut written = statement.raw_query();
    let mut new = 0;
    while let Some(row) = written.next()? {
        // They come back in no particular order.
        let id = row.get_ref(0)?.as_str()?;
        let place = runs.binary_search_by(|run| run.record.id.as_str().cmp(id));
        // A known run had a step, unless it was killed before its first one.
        let had_none = place.is_ok_and(|place| row.get(1) == Ok(runs[place].sums.steps));
        new += i64::from(had_none);
    }
    Ok(new)
}

const INTO: &str = "
INTO runs (seq, agent, run_id, parent, origin, status, provider, model, steps, input_tokens, cached_tokens, output_tokens,
    cost_nano, unpriced_steps, estimated_steps, blocked, errors, first_at, last_at, kill_reason, kill_by, kill_at,
    kill_expires_at, kill_proof, saved_nano) VALUES";

// For `min` see the other sums.
const ADD: &str = "
ON CONFLICT (agent, run_id) DO UPDATE SET
    parent = coalesce(parent, excluded.parent),
    provider = iif(excluded.last_at >= last_at AND excluded.provider <> '', excluded.provider, provider),
    model = iif(excluded.last_at >= last_at, coalesce(excluded.model, model), model),
    steps = steps + excluded.steps,
    input_tokens = min(input_tokens + excluded.input_tokens, 9223372036854775807),
    cached_tokens = min(cached_tokens + excluded.cached_tokens, 9223372036854775807),
    output_tokens = min(output_tokens + excluded.output_tokens, 9223372036854775807),
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807),
    unpriced_steps = unpriced_steps + excluded.unpriced_steps,
    estimated_steps = estimated_steps + excluded.estimated_steps,
    blocked = blocked + excluded.blocked,
    errors = errors + excluded.errors,
    first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at),
    saved_nano = min(saved_nano + excluded.saved_nano, 9223372036854775807)
RETURNING run_id, steps";
