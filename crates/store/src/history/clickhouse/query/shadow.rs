//! What rules and limits in shadow would have done in a stretch of time.

use serde::Deserialize;
use sprag_core::limits::{PAGE_ROWS, SHARED_SHADOW_EVENTS};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, sum_of};
use crate::error::StoreError;
use crate::history::query::{ShadowDetector, ShadowLimit, ShadowReport};

#[derive(Deserialize)]
struct Detected {
    detector: String,
    runs: u64,
    steps: u64,
    cost: i64,
}

#[derive(Deserialize)]
struct Limited {
    reason: String,
    exceeded_limit: Option<String>,
    requests: u64,
    runs: u64,
    cost: i64,
}

#[derive(Deserialize)]
struct Notes {
    number: u64,
}

/// How far apart the clocks of nodes may be.
const SKEW_MS: i64 = 60_000;

/// Many runs at once are looked for in all events of the time; to ask the index of runs for each of them costs more.
const WITHOUT_INDEX: &str = ", ignore_data_skipping_indices = 'of_run'";

impl Reader {
    /// Sums of what would not have happened between two moments, from at most so many findings, the latest.
    pub(in crate::history) fn shadow_report(
        &self,
        since: Timestamp,
        until: Timestamp,
        most: u32,
    ) -> Result<ShadowReport, StoreError> {
        let most = most.min(SHARED_SHADOW_EVENTS);
        let mut question = Question::default();
        question.set("since", since.0);
        question.set("until", until.0);
        let latest = |columns: &str, condition: &str, most: u64| {
            format!(
                "SELECT {columns} FROM notes WHERE {condition} AND at >= {{since:Int64}} AND at < {{until:Int64}}
                 ORDER BY at DESC, id DESC LIMIT {most}"
            )
        };
        const FOUND: &str = "detector <> '' AND run_hash <> 0";
        const REFUSED: &str = "would_block <> ''";
        let flagged = latest("run_hash", FOUND, u64::from(most));
        // Nothing that a stop would have saved is older than the first of them, but for clocks that differ.
        let began = format!("SELECT min(at) - {SKEW_MS} FROM notes WHERE detector <> '' AND run_hash IN ({flagged})");
        // A run is taken to have ended where it would first have been stopped, even before the stretch of time.
        let sql = format!(
            "SELECT rule AS detector, uniqExact(run_hash) AS runs, count() AS steps, {} AS cost
             FROM (SELECT run_hash, step, any(call.cost_nano) AS cost_nano FROM events AS call
                WHERE call.run_hash IN ({flagged}) AND call.at >= greatest({{since:Int64}}, ({began}))
                    AND call.at < {{until:Int64}}
                GROUP BY call.run_hash, call.at, call.step) AS calls
             JOIN (SELECT run_hash, min(noted.step) AS first_step, argMin(noted.detector, noted.step) AS rule
                FROM notes AS noted WHERE noted.detector <> '' AND noted.run_hash IN ({flagged})
                GROUP BY noted.run_hash) AS stopped USING (run_hash)
             WHERE calls.step >= stopped.first_step GROUP BY rule ORDER BY rule",
            sum_of("ifNull(calls.cost_nano, 0)")
        );
        let detectors = self.ask_with::<Detected>(&sql, WITHOUT_INDEX, &question)?.into_iter().map(|row| {
            let (runs, saved_steps, saved) = (row.runs, row.steps, NanoUsd(row.cost));
            ShadowDetector { detector: row.detector, runs, saved_steps, saved }
        });
        let detectors = detectors.collect();
        // A request counts once for a limit, at however many levels it would have met it.
        let sql = format!(
            "SELECT reason, exceeded_limit, count() AS requests, uniqExactIf(run_hash, run_hash <> 0) AS runs, {} AS cost
             FROM (SELECT DISTINCT id, run_hash, cost_nano, JSONExtractString(met, 'reason') AS reason,
                    JSONExtract(met, 'exceeded_limit', 'Nullable(String)') AS exceeded_limit
                FROM (SELECT id, run_hash, cost_nano, arrayJoin(JSONExtractArrayRaw(would_block)) AS met FROM ({})))
             GROUP BY reason, exceeded_limit ORDER BY reason, exceeded_limit NULLS FIRST LIMIT {PAGE_ROWS}",
            sum_of("ifNull(cost_nano, 0)"),
            latest("id, run_hash, cost_nano, would_block", REFUSED, u64::from(most))
        );
        let limits = self.ask::<Limited>(&sql, &question)?.into_iter().map(|row| ShadowLimit {
            reason: row.reason,
            exceeded_limit: row.exceeded_limit,
            requests: row.requests,
            runs: row.runs,
            cost: NanoUsd(row.cost),
        });
        let limits = limits.collect();
        let number =
            |condition: &str| format!("(SELECT uniqExact(id) FROM ({}))", latest("id", condition, u64::from(most) + 1));
        let sql = format!("SELECT greatest({}, {}) AS number", number(FOUND), number(REFUSED));
        let found = self.ask_one::<Notes>(&sql, &question)?.map_or(0, |notes| notes.number);
        Ok(ShadowReport { detectors, limits, is_partial: found > u64::from(most) })
    }
}
