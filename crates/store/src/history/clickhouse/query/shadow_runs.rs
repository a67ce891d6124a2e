//! The runs that rules in shadow would have stopped, where, and how they ended without it.

use std::collections::HashMap;

use serde::Deserialize;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::loops::Verdict;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{MOST, Reader};
use crate::error::StoreError;
use crate::history::query::{ShadowRun, WouldStop, is_natural_end};
use crate::run_key::RunKey;

#[derive(Deserialize)]
struct Flagged {
    run_hash: u64,
    whose: AgentName,
    run_id: RunId,
}

/// Where a run would have ended, and how its last request did.
#[derive(Deserialize)]
struct Stop {
    run_hash: u64,
    first_step: u32,
    verdict: String,
    finish: Option<String>,
    has_tools: bool,
    blocked: bool,
    status: u16,
    saved_steps: u64,
    saved: i64,
}

/// Where so many runs are not found so far back, all of the time is looked at.
const LATE_MS: i64 = 36 * 3_600_000;

/// Narrows to some runs by their hashes. The index over them finds their events.
const OF_RUNS: &str = "run_hash IN (SELECT arrayJoin(JSONExtract({hashes:String}, 'Array(UInt64)')))";

impl Reader {
    pub(in crate::history) fn would_stop(&self, key: &RunKey) -> Result<Option<WouldStop>, StoreError> {
        let mut question = Question::default();
        question.of_run(key);
        question.only("detector <> ''");
        let sql = format!("SELECT run_hash, agent AS whose, run_id FROM notes {} LIMIT 1", question.filter());
        let flagged = self.ask::<Flagged>(&sql, &question)?;
        Ok(self.stops_of(flagged)?.pop().map(|run| run.would))
    }

    /// Runs with findings in shadow between two moments, the latest first, at most so many.
    pub(in crate::history) fn shadow_runs(
        &self,
        (since, until): (Timestamp, Timestamp),
        most: u32,
        looked_at: u32,
    ) -> Result<Vec<ShadowRun>, StoreError> {
        let most = most.min(PAGE_ROWS);
        let late = Timestamp(until.0.saturating_sub(LATE_MS)).max(since);
        let mut flagged = Vec::new();
        for since in [late, since] {
            let mut question = Question::default();
            question.only("detector <> '' AND run_hash <> 0");
            question.and("at >= {since:Int64}", "since", since.0);
            question.and("at < {until:Int64}", "until", until.0);
            let sql = format!(
                "SELECT run_hash, any(agent) AS whose, any(noted.run_id) AS run_id, max(noted.at) AS latest FROM (
                    SELECT run_hash, agent, run_id, at FROM notes {} ORDER BY at DESC, id DESC LIMIT {looked_at}) AS noted
                 GROUP BY run_hash ORDER BY latest DESC, run_hash LIMIT {most}",
                question.filter(),
            );
            flagged = self.ask::<Flagged>(&sql, &question)?;
            if flagged.len() >= most as usize {
                break;
            }
        }
        self.stops_of(flagged)
    }

    /// Where each of some runs would have been stopped, in their order.
    fn stops_of(&self, flagged: Vec<Flagged>) -> Result<Vec<ShadowRun>, StoreError> {
        if flagged.is_empty() {
            return Ok(Vec::new());
        }
        let mut question = Question::default();
        question.set_list("hashes", &flagged.iter().map(|run| run.run_hash).collect::<Vec<_>>());
        // An event that was sent twice stands there twice, and counts once.
        let spared = "arrayFilter(call -> tupleElement(call, 2) >= first_step, groupUniqArray((cityHash64(id), step, ifNull(cost_nano, 0))))";
        let sql = format!(
            "SELECT run_hash, minIf(step, has_shadow) AS first_step, argMinIf(shadow, step, has_shadow) AS verdict,
                tupleElement(argMaxIf(tuple(finish), (at, id), NOT is_act), 1) AS finish,
                argMaxIf(tools <> '', (at, id), NOT is_act)::Bool AS has_tools,
                argMaxIf(events.blocked, (at, id), NOT is_act) AS blocked,
                argMaxIf(events.status, (at, id), NOT is_act) AS status,
                {spared} AS spared, length(spared) AS saved_steps,
                toInt64(least(arraySum(call -> toInt128(tupleElement(call, 3)), spared), {MOST})) AS saved
             FROM events WHERE {OF_RUNS} GROUP BY run_hash"
        );
        let sql = format!("SELECT * EXCEPT spared FROM ({sql})");
        let stops = self.ask::<Stop>(&sql, &question)?;
        let mut stops: HashMap<u64, Stop> = stops.into_iter().map(|stop| (stop.run_hash, stop)).collect();
        let run = |flagged: Flagged| {
            let stop = stops.remove(&flagged.run_hash)?;
            // A verdict of another version cannot be shown.
            let verdict: Verdict = serde_json::from_str(&stop.verdict).ok()?;
            let finish = stop.finish;
            Some(ShadowRun {
                run: RunKey { agent: flagged.whose, id: flagged.run_id },
                would: WouldStop {
                    step: stop.first_step,
                    verdict,
                    saved_steps: stop.saved_steps,
                    saved: NanoUsd(stop.saved),
                },
                ended_well: is_natural_end(finish.as_deref(), stop.has_tools, stop.blocked, stop.status),
                finish,
            })
        };
        Ok(flagged.into_iter().filter_map(run).collect())
    }
}
