//! The runs that rules in shadow would have stopped, where, and how they ended without it.

use std::collections::HashMap;

use serde::Deserialize;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::loops::Verdict;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, sum_of};
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
}

#[derive(Deserialize)]
struct Saved {
    run_hash: u64,
    steps: u64,
    cost: i64,
}

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
        let mut question = Question::default();
        question.only("detector <> '' AND run_hash <> 0");
        question.and("at >= {since:Int64}", "since", since.0);
        question.and("at < {until:Int64}", "until", until.0);
        let sql = format!(
            "SELECT run_hash, any(agent) AS whose, any(noted.run_id) AS run_id, max(noted.at) AS latest FROM (
                SELECT run_hash, agent, run_id, at FROM notes {} ORDER BY at DESC, id DESC LIMIT {looked_at}) AS noted
             GROUP BY run_hash ORDER BY latest DESC, run_hash LIMIT {}",
            question.filter(),
            most.min(PAGE_ROWS)
        );
        let flagged = self.ask::<Flagged>(&sql, &question)?;
        self.stops_of(flagged)
    }

    /// Where each of some runs would have been stopped, in their order.
    fn stops_of(&self, flagged: Vec<Flagged>) -> Result<Vec<ShadowRun>, StoreError> {
        if flagged.is_empty() {
            return Ok(Vec::new());
        }
        let mut question = Question::default();
        question.set_list("hashes", &flagged.iter().map(|run| run.run_hash).collect::<Vec<_>>());
        let sql = format!(
            "SELECT run_hash, minIf(step, has_shadow) AS first_step, argMinIf(shadow, step, has_shadow) AS verdict,
                tupleElement(argMaxIf(tuple(finish), (at, id), NOT is_act), 1) AS finish,
                argMaxIf(tools <> '', (at, id), NOT is_act)::Bool AS has_tools,
                argMaxIf(events.blocked, (at, id), NOT is_act) AS blocked,
                argMaxIf(events.status, (at, id), NOT is_act) AS status
             FROM events WHERE {OF_RUNS} GROUP BY run_hash"
        );
        let stops = self.ask::<Stop>(&sql, &question)?;
        question.set_list("stopped", &stops.iter().map(|stop| stop.run_hash).collect::<Vec<_>>());
        question.set_list("steps", &stops.iter().map(|stop| stop.first_step).collect::<Vec<_>>());
        let sql = format!(
            "SELECT run_hash, count() AS steps, {} AS cost FROM (
                SELECT run_hash, any(call.step) AS step, any(call.cost_nano) AS cost_nano FROM events AS call WHERE {OF_RUNS}
                GROUP BY call.run_hash, call.id)
             WHERE step >= transform(run_hash, JSONExtract({{stopped:String}}, 'Array(UInt64)'),
                JSONExtract({{steps:String}}, 'Array(UInt32)'), 4294967295) GROUP BY run_hash",
            sum_of("ifNull(cost_nano, 0)")
        );
        let saved: HashMap<u64, Saved> =
            self.ask::<Saved>(&sql, &question)?.into_iter().map(|saved| (saved.run_hash, saved)).collect();
        let mut stops: HashMap<u64, Stop> = stops.into_iter().map(|stop| (stop.run_hash, stop)).collect();
        let run = |flagged: Flagged| {
            let stop = stops.remove(&flagged.run_hash)?;
            // A verdict of another version cannot be shown.
            let verdict: Verdict = serde_json::from_str(&stop.verdict).ok()?;
            let (saved_steps, cost) = saved.get(&flagged.run_hash).map_or((0, 0), |saved| (saved.steps, saved.cost));
            let finish = stop.finish;
            Some(ShadowRun {
                run: RunKey { agent: flagged.whose, id: flagged.run_id },
                would: WouldStop { step: stop.first_step, verdict, saved_steps, saved: NanoUsd(cost) },
                ended_well: is_natural_end(finish.as_deref(), stop.has_tools, stop.blocked, stop.status),
                finish,
            })
        };
        Ok(flagged.into_iter().filter_map(run).collect())
    }
}
