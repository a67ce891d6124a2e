//! What detection saw in the requests of runs.

use std::collections::HashMap;

use serde::Deserialize;
use sprag_core::event::Ending;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::TRIED_REQUESTS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::event_row::evidence;
use super::question::Question;
use super::{Reader, WITHOUT_INDEX_OF_RUNS};
use crate::error::StoreError;
use crate::history::query::{RunRow, StepRow};
use crate::run_key::RunKey;

#[derive(Deserialize)]
struct Row {
    agent: AgentName,
    run_id: RunId,
    id: String,
    step: u32,
    at: i64,
    ending: Ending,
    blocked: bool,
    cost_nano: Option<i64>,
    level: Option<f32>,
    evidence_hex: String,
}

/// Narrows to some runs.
const OF_RUNS: &str = "run_hash IN (SELECT arrayJoin(arrayMap((agent, run) -> cityHash64(agent, run),
    JSONExtract({agents:String}, 'Array(String)'), JSONExtract({runs:String}, 'Array(String)'))))";

impl Reader {
    /// The requests of each of some runs, oldest first; the last ones of a run where there are too many. The answer grows with the
    /// steps of all of them.
    pub(in crate::history) fn evidence(&self, runs: &[RunRow]) -> Result<Vec<Vec<StepRow>>, StoreError> {
        let (first, last) = (runs.iter().map(|run| run.first_at.0).min(), runs.iter().map(|run| run.last_at.0).max());
        let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
        let mut question = Question::default();
        question.only("is_act = 0");
        // Sums of a run are there before its events. Events are ordered by time, so this leaves the fewest to be looked at.
        question.and("at >= {first:Int64}", "first", first);
        question.and("at <= {last:Int64}", "last", last);
        let settings = match runs {
            [run] => {
                question.of_run(&run.key());
                ""
            }
            _ => {
                question.only(OF_RUNS);
                question.set_list("agents", &runs.iter().map(|run| run.agent.as_str()).collect::<Vec<_>>());
                question.set_list("runs", &runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>());
                WITHOUT_INDEX_OF_RUNS
            }
        };
        let sql = format!(
            "SELECT agent, run_id, id, step, at, ending, blocked, cost_nano, level, hex(evidence) AS evidence_hex
             FROM events {} ORDER BY at DESC, id DESC LIMIT {TRIED_REQUESTS} BY run_hash",
            question.filter()
        );
        let mut found: Vec<Row> = self.ask_with(&sql, settings, &question)?;
        found.dedup_by(|one, other| one.id == other.id);
        let mut steps: HashMap<RunKey, Vec<StepRow>> = HashMap::new();
        for row in found.into_iter().rev() {
            let step = StepRow {
                step: row.step,
                at: Timestamp(row.at),
                ending: row.ending,
                blocked: row.blocked,
                cost: row.cost_nano.map(NanoUsd),
                level: row.level,
                evidence: evidence(&row.evidence_hex),
            };
            steps.entry(RunKey { agent: row.agent, id: row.run_id }).or_default().push(step);
        }
        Ok(runs.iter().map(|run| steps.remove(&run.key()).unwrap_or_default()).collect())
    }
}
