//! Runs as they stand on record.

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{PAGE_ROWS, RUN_TREE_DEPTH};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::{Conditions, Cursor};
use super::{Page, Reader, RunFilter, page, page_rows, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::run_key::RunKey;
use crate::state::RunTotals;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RunStatus {
    /// It may go on.
    Running,
    /// It ended by itself.
    Finished,
    /// It was stopped for good.
    Killed,
    /// It waits for a person.
    Paused,
    /// It was left alone for too long.
    Expired,
}

/// A run with its sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// Whose run it is.
    pub agent: AgentName,
    /// Its id.
    pub id: RunId,
    /// The run that it is a part of.
    pub parent: Option<RunId>,
    /// How it was recognised.
    pub origin: RunOrigin,
    /// Where it stands.
    pub status: RunStatus,
    /// The provider of the last call.
    pub provider: String,
    /// The model of the last call.
    pub model: Option<String>,
    /// Calls on record.
    pub steps: u64,
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// The part of them that came from a cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// What it cost, without its children.
    pub cost: NanoUsd,
    /// Calls whose cost is not known.
    pub unpriced_steps: u64,
    /// Calls whose tokens Sprag counted itself.
    pub estimated_steps: u64,
    /// Calls that were refused.
    pub blocked: u64,
    /// Calls that failed upstream.
    pub errors: u64,
    /// When its first call arrived.
    pub first_at: Timestamp,
    /// When its last call ended.
    pub last_at: Timestamp,
    /// What stopping it has saved, counted only from proven repeats.
    pub saved: NanoUsd,
    /// Why it is killed or paused; absent while it is not.
    pub stopped: Option<RunStopped>,
}

impl RunRow {
    /// What names it.
    #[must_use]
    pub fn key(&self) -> RunKey {
        RunKey { agent: self.agent.clone(), id: self.id.clone() }
    }
}

/// What is on record about a run that is not in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRun {
    /// Its sums.
    pub totals: RunTotals,
    /// The run that it is a part of.
    pub parent: Option<RunId>,
}

/// Why a run may not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunStopped {
    /// Why.
    pub reason: String,
    /// Who stopped it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it may go on by itself.
    pub expires_at: Option<Timestamp>,
    /// What the stop rests on.
    pub proof: Option<Value>,
    /// The run above it that was stopped, where it was not stopped itself.
    pub through: Option<RunId>,
}

const COLUMNS: &str = "seq, agent, run_id, parent, origin, status, provider, model, steps, input_tokens, \
    cached_tokens, output_tokens, cost_nano, unpriced_steps, estimated_steps, blocked, errors, first_at, last_at, \
    kill_reason, kill_by, kill_at, kill_expires_at, kill_proof, saved_nano";

impl Reader {
    /// Runs by last activity. A run that becomes active while its listing is paged through moves to the front.
    pub(in crate::history) fn runs(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<RunRow>, StoreError> {
        let mut conditions = filter.conditions();
        if let Some(cursor) = cursor {
            conditions.beyond("(last_at, seq) < (?, ?)", Cursor::parse(cursor)?);
        }
        let sql = runs_sql(&conditions, limit);
        let found = self.list(&sql, conditions, read)?;
        Ok(page(found, limit, |seq, run: &RunRow| Cursor { at: run.last_at.0, seq }))
    }

    pub(in crate::history) fn run(&self, key: &RunKey) -> Result<Option<RunRow>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("agent = ?", key.agent.as_str().to_owned());
        conditions.and("run_id = ?", key.id.as_str().to_owned());
        let sql = format!("SELECT {COLUMNS} FROM runs {}", conditions.sql());
        Ok(self.list(&sql, conditions, read)?.pop().map(|(_, run)| run))
    }

    /// The runs that are directly a part of this one, oldest first, at most a page of them.
    pub(in crate::history) fn children(&self, key: &RunKey) -> Result<Vec<RunRow>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("agent = ?", key.agent.as_str().to_owned());
        conditions.and("parent = ?", key.id.as_str().to_owned());
        let sql = format!("SELECT {COLUMNS} FROM runs {} ORDER BY first_at, seq LIMIT {PAGE_ROWS}", conditions.sql());
        Ok(self.list(&sql, conditions, read)?.into_iter().map(|(_, run)| run).collect())
    }

    /// What run state starts from when a run comes back after it was forgotten.
    pub(in crate::history) fn run_totals(&self, key: &RunKey) -> Result<Option<RunTotals>, StoreError> {
        let Some(run) = self.run(key)? else { return Ok(None) };
        let mut tree = Conditions::default();
        tree.values.extend([key.agent.as_str().to_owned().into(), key.id.as_str().to_owned().into()]);
        let sql = format!(
            "WITH RECURSIVE tree (run_id, depth) AS (
                SELECT ?2, 0
                UNION SELECT runs.run_id, depth + 1 FROM tree JOIN runs ON runs.agent = ?1 AND runs.parent = tree.run_id
                WHERE depth < {RUN_TREE_DEPTH})
             SELECT coalesce(sum(steps), 0), coalesce(sum(blocked), 0), sum(cost_nano >> 20), sum(cost_nano & 1048575)
             FROM runs WHERE agent = ?1 AND run_id IN (SELECT run_id FROM tree)"
        );
        let read = |row: &Row<'_>| Ok((rows::count(row, 0)?, rows::count(row, 1)?, NanoUsd(sum_of_halves(row, 2)?)));
        let sums = self.list(&sql, tree, read)?;
        let (tree_steps, tree_refused, tree_cost) = sums.first().copied().unwrap_or((run.steps, run.blocked, run.cost));
        let steps = run.steps.max(self.last_step(key)?);
        Ok(Some(RunTotals {
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            cost: run.cost,
            tree_steps: u32::try_from(tree_steps.max(steps)).unwrap_or(u32::MAX),
            tree_cost,
            tree_refused: u32::try_from(tree_refused).unwrap_or(u32::MAX),
            input_tokens: run.input_tokens,
            output_tokens: run.output_tokens,
            unpriced_steps: u32::try_from(run.unpriced_steps).unwrap_or(u32::MAX),
            failed_steps: u32::try_from(run.errors).unwrap_or(u32::MAX),
            first_at: run.first_at,
            last_at: run.last_at,
        }))
    }

    /// The sums of a run that is not in memory, and the run above it.
    pub(in crate::history) fn recall(&self, key: &RunKey) -> Result<Option<PastRun>, StoreError> {
        let Some(run) = self.run(key)? else { return Ok(None) };
        Ok(self.run_totals(key)?.map(|totals| PastRun { totals, parent: run.parent }))
    }

    /// The highest number that a step of the run bears: more than there are steps on record when some were cut short
    /// by the end of the process.
    fn last_step(&self, key: &RunKey) -> Result<u64, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("agent = ?", key.agent.as_str().to_owned());
        conditions.and("run_id = ?", key.id.as_str().to_owned());
        // Steps are numbered as they arrive, so the latest ones suffice.
        let sql = format!(
            "SELECT coalesce(max(step), 0) FROM
                (SELECT step FROM events {} ORDER BY at DESC, seq DESC LIMIT {PAGE_ROWS})",
            conditions.sql()
        );
        Ok(self.list(&sql, conditions, |row| rows::count(row, 0))?.pop().unwrap_or(0))
    }
}

fn runs_sql(conditions: &Conditions, limit: u32) -> String {
    let rows = page_rows(limit) + 1;
    format!("SELECT {COLUMNS} FROM runs {} ORDER BY last_at DESC, seq DESC LIMIT {rows}", conditions.sql())
}

fn read(row: &Row<'_>) -> rusqlite::Result<(i64, RunRow)> {
    let run = RunRow {
        agent: rows::agent_name(row, 1)?,
        id: rows::run_id(row, 2)?,
        parent: rows::optional_run_id(row, 3)?,
        origin: rows::from_word(row, 4)?,
        status: rows::from_word(row, 5)?,
        provider: row.get(6)?,
        model: row.get(7)?,
        steps: rows::count(row, 8)?,
        input_tokens: rows::count(row, 9)?,
        cached_tokens: rows::count(row, 10)?,
        output_tokens: rows::count(row, 11)?,
        cost: NanoUsd(row.get(12)?),
        unpriced_steps: rows::count(row, 13)?,
        estimated_steps: rows::count(row, 14)?,
        blocked: rows::count(row, 15)?,
        errors: rows::count(row, 16)?,
        first_at: Timestamp(row.get(17)?),
        last_at: Timestamp(row.get(18)?),
        saved: NanoUsd(row.get(24)?),
        stopped: read_stopped(row)?,
    };
    Ok((row.get(0)?, run))
}

fn read_stopped(row: &Row<'_>) -> rusqlite::Result<Option<RunStopped>> {
    let Some(reason) = row.get(19)? else { return Ok(None) };
    let proof: Option<String> = row.get(23)?;
    Ok(Some(RunStopped {
        reason,
        by: row.get(20)?,
        at: Timestamp(row.get(21)?),
        expires_at: row.get::<_, Option<i64>>(22)?.map(Timestamp),
        proof: proof.and_then(|text| serde_json::from_str(&text).ok()),
        through: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn listings_walk_an_index_and_sort_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let _writer = open_writer(&path, HISTORY).unwrap();
        let any = RunFilter::default;
        let agent = || Some(AgentName::default());
        let cases = [
            (any(), "runs_newest"),
            (RunFilter { status: Some(RunStatus::Killed), ..any() }, "runs_newest"),
            (RunFilter { model: Some("m".into()), min_cost: Some(NanoUsd(1)), ..any() }, "runs_newest"),
            (RunFilter { id_prefix: Some("r".into()), ..any() }, "runs_newest"),
            (RunFilter { agent: agent(), ..any() }, "runs_of_agent"),
            (RunFilter { agent: agent(), status: Some(RunStatus::Paused), ..any() }, "runs_of_agent"),
        ];
        for (filter, index) in cases {
            let mut conditions = filter.conditions();
            conditions.beyond("(last_at, seq) < (?, ?)", Cursor { at: 1, seq: 1 });
            let sql = format!("EXPLAIN QUERY PLAN {}", runs_sql(&conditions, 10));
            let plan = Reader::new(&path).list(&sql, conditions, |row| row.get::<_, String>(3)).unwrap();
            assert!(plan.len() == 1 && plan[0].contains(&format!("USING INDEX {index} ")), "{filter:?}: {plan:?}");
        }
    }
}
