//! Runs as they stand on record, put together from what each node has counted of them.

use std::collections::HashMap;

use serde::Deserialize;
use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::event_row::json;
use super::question::Question;
use super::{Reader, sum_of};
use crate::error::StoreError;
use crate::history::query::{RunRow, RunStatus, RunStopped};
use crate::run_key::RunKey;

#[derive(Deserialize)]
struct Row {
    agent: AgentName,
    run_id: RunId,
    above: String,
    how: RunOrigin,
    provider: String,
    model: Option<String>,
    steps: u64,
    input: i64,
    cached: i64,
    output: i64,
    cost: i64,
    unpriced: u64,
    estimated: u64,
    refused: u64,
    failed: u64,
    began: i64,
    ended: i64,
    saved: i64,
}

/// What was last done about a run.
#[derive(Deserialize)]
struct Act {
    agent: AgentName,
    run_id: RunId,
    status: RunStatus,
    reason: String,
    by: String,
    at: i64,
    expires_at: Option<i64>,
    proof: String,
}

impl Reader {
    pub(in crate::history) fn run(&self, key: &RunKey) -> Result<Option<RunRow>, StoreError> {
        let mut question = Question::default();
        question.of_run(key);
        Ok(self.run_rows(&question, "")?.pop())
    }

    /// The runs that are directly a part of this one, oldest first, at most a page of them.
    pub(in crate::history) fn children(&self, key: &RunKey) -> Result<Vec<RunRow>, StoreError> {
        let mut question = Question::default();
        question.and("agent = {agent:String}", "agent", &key.agent);
        question.and(
            "run_hash IN (SELECT run_hash FROM node_runs WHERE agent = {agent:String} AND parent = {parent:String})",
            "parent",
            &key.id,
        );
        let order = format!("HAVING above = {{parent:String}} ORDER BY began, run_id LIMIT {PAGE_ROWS}");
        self.run_rows(&question, &order)
    }

    /// The runs that conditions on agent, run and its hash leave, with where they stand.
    pub(super) fn run_rows(&self, question: &Question, order: &str) -> Result<Vec<RunRow>, StoreError> {
        let found: Vec<Row> = self.ask(&rows_sql(question, order), question)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT agent, run_id, status, reason, by, at, expires_at, proof FROM run_acts {}
             ORDER BY at DESC, id DESC LIMIT 1 BY agent, run_hash, run_id",
            question.filter()
        );
        let acts: Vec<Act> = self.ask(&sql, question)?;
        let mut acts: HashMap<(AgentName, RunId), Act> =
            acts.into_iter().map(|act| ((act.agent.clone(), act.run_id.clone()), act)).collect();
        Ok(found
            .into_iter()
            .map(|row| {
                let act = acts.remove(&(row.agent.clone(), row.run_id.clone()));
                row.stands(act)
            })
            .collect())
    }
}

/// The latest word of each node about each run, summed over nodes. A node that only stopped a run has counted no step of it: its
/// row tells of no activity where others have some.
fn rows_sql(question: &Question, order: &str) -> String {
    format!(
        "SELECT counted.agent AS agent, counted.run_id AS run_id, max(counted.parent) AS above,
            argMin(counted.origin, (counted.first_at, counted.node)) AS how,
            argMaxIf(counted.provider, (counted.last_at, counted.node), counted.provider <> '') AS provider,
            argMaxIf(counted.model, (counted.last_at, counted.node), counted.model IS NOT NULL) AS model,
            sum(counted.steps) AS steps, {} AS input, {} AS cached, {} AS output, {} AS cost, {} AS saved,
            sum(counted.unpriced_steps) AS unpriced, sum(counted.estimated_steps) AS estimated, sum(counted.blocked) AS refused,
            sum(counted.errors) AS failed, min(counted.first_at) AS began,
            if(max(counted.steps) = 0, min(counted.last_at), maxIf(counted.last_at, counted.steps > 0)) AS ended
         FROM (SELECT *, run_hash FROM node_runs {} ORDER BY version DESC LIMIT 1 BY agent, run_hash, run_id, node) AS counted
         GROUP BY counted.agent, counted.run_hash, counted.run_id {order}",
        sum_of("counted.input_tokens"),
        sum_of("counted.cached_tokens"),
        sum_of("counted.output_tokens"),
        sum_of("counted.cost_nano"),
        sum_of("counted.saved_nano"),
        question.filter()
    )
}

impl Row {
    fn stands(self, act: Option<Act>) -> RunRow {
        let status = act.as_ref().map_or(RunStatus::Running, |act| act.status);
        let is_stopped = matches!(status, RunStatus::Killed | RunStatus::Paused);
        let stopped = act.filter(|_| is_stopped).map(|act| RunStopped {
            reason: act.reason,
            by: act.by,
            at: Timestamp(act.at),
            expires_at: act.expires_at.map(Timestamp),
            proof: json(&act.proof),
            through: None,
        });
        RunRow {
            agent: self.agent,
            id: self.run_id,
            parent: RunId::parse(&self.above).ok(),
            origin: self.how,
            status,
            provider: self.provider,
            model: self.model,
            steps: self.steps,
            input_tokens: self.input.unsigned_abs(),
            cached_tokens: self.cached.unsigned_abs(),
            output_tokens: self.output.unsigned_abs(),
            cost: NanoUsd(self.cost),
            unpriced_steps: self.unpriced,
            estimated_steps: self.estimated,
            blocked: self.refused,
            errors: self.failed,
            first_at: Timestamp(self.began),
            last_at: Timestamp(self.ended),
            saved: NanoUsd(self.saved),
            stopped,
        }
    }
}
