//! What was stopped lately.

use serde::Deserialize;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;

use super::event_row::json;
use super::question::Question;
use super::{Reader, page_rows};
use crate::error::StoreError;
use crate::history::query::{RecentStop, latest_stops};

#[derive(Deserialize)]
struct Row {
    agent: AgentName,
    run_id: String,
    at: i64,
    reason: String,
    by: String,
    proof: String,
}

/// Runs whose latest act is a stop. Which act that is comes from narrow columns; its words are read for those alone that are told.
const STOPPED_RUNS: &str = "SELECT agent, run_id, at, reason, by, proof FROM run_acts
    WHERE (agent, run_hash, at, id) IN (
        SELECT agent, run_hash, tupleElement(latest, 1), tupleElement(latest, 2) FROM (
            SELECT agent, run_hash, max((at, id)) AS latest, argMax(status, (at, id)) AS stands FROM run_acts
            GROUP BY agent, run_hash, run_id)
        WHERE stands IN ('killed', 'paused') ORDER BY latest DESC LIMIT {most:UInt32})
    ORDER BY at DESC, id DESC LIMIT 1 BY agent, run_hash, run_id";
const SWITCHED_AGENTS: &str = "SELECT agent, '' AS run_id, at, JSONExtractString(act, 'reason') AS reason,
    JSONExtractString(act, 'by') AS by, JSONExtractRaw(act, 'proof') AS proof FROM events
    WHERE kind = 'kill_switch' ORDER BY at DESC, id DESC LIMIT {most:UInt32}";
/// The findings of detection stand in the verdict.
const REFUSED: &str = "SELECT agent, run_id, at, ifNull(block_reason, '') AS reason, 'sprag' AS by,
    JSONExtractRaw(verdict, 'proof') AS proof FROM events";

/// Where so many refusals are not found in the last hour or in a day and a half, all of them are looked at.
const RECENT: [&str; 3] = [
    "blocked = 1 AND at >= (SELECT max(at) FROM events) - 3600000",
    "blocked = 1 AND at >= (SELECT max(at) FROM events) - 36 * 3600000",
    "blocked = 1",
];

impl Reader {
    /// The latest stops. Refusals are looked for among so many of the latest ones: a storm of them costs no more.
    pub(in crate::history) fn recent_stops(&self, limit: u32) -> Result<Vec<RecentStop>, StoreError> {
        let limit = page_rows(limit);
        let mut question = Question::default();
        question.set("most", limit);
        let mut lasting: Vec<RecentStop> = Vec::new();
        for sql in [STOPPED_RUNS, SWITCHED_AGENTS] {
            lasting.extend(self.ask::<Row>(sql, &question)?.into_iter().map(|row| row.stop(true)));
        }
        let mut refused = Vec::new();
        for condition in RECENT {
            let sql = format!("{REFUSED} WHERE {condition} ORDER BY at DESC, id DESC LIMIT {PAGE_ROWS}");
            refused = self.ask::<Row>(&sql, &Question::default())?;
            if refused.len() == PAGE_ROWS as usize {
                break;
            }
        }
        Ok(latest_stops(lasting, refused.into_iter().map(|row| row.stop(false)), limit))
    }
}

impl Row {
    fn stop(self, is_lasting: bool) -> RecentStop {
        RecentStop {
            at: Timestamp(self.at),
            agent: self.agent,
            run: RunId::parse(&self.run_id).ok(),
            reason: self.reason,
            by: self.by,
            proof: json(&self.proof),
            is_lasting,
        }
    }
}
