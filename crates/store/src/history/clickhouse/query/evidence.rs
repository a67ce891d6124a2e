//! What detection saw in the requests of a run.

use serde::Deserialize;
use sprag_core::event::Ending;
use sprag_core::limits::TRIED_REQUESTS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::Reader;
use super::event_row::evidence;
use super::question::Question;
use crate::error::StoreError;
use crate::history::query::StepRow;
use crate::run_key::RunKey;

#[derive(Deserialize)]
struct Row {
    id: String,
    step: u32,
    at: i64,
    ending: Ending,
    blocked: bool,
    cost_nano: Option<i64>,
    level: Option<f32>,
    evidence_hex: String,
}

impl Reader {
    /// The requests of a run, oldest first; the last ones where there are too many.
    pub(in crate::history) fn evidence(&self, key: &RunKey) -> Result<Vec<StepRow>, StoreError> {
        let mut question = Question::default();
        question.of_run(key);
        question.only("is_act = 0");
        let sql = format!(
            "SELECT id, step, at, ending, blocked, cost_nano, level, hex(evidence) AS evidence_hex
             FROM events {} ORDER BY at DESC, id DESC LIMIT {TRIED_REQUESTS}",
            question.filter()
        );
        let mut found: Vec<Row> = self.ask(&sql, &question)?;
        found.dedup_by(|one, other| one.id == other.id);
        let step = |row: Row| StepRow {
            step: row.step,
            at: Timestamp(row.at),
            ending: row.ending,
            blocked: row.blocked,
            cost: row.cost_nano.map(NanoUsd),
            level: row.level,
            evidence: evidence(&row.evidence_hex),
        };
        Ok(found.into_iter().rev().map(step).collect())
    }
}
