//! What rules and limits in shadow would have done in a stretch of time.

use serde::Deserialize;
use sprag_core::limits::{PAGE_ROWS, SHARED_SHADOW_EVENTS};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, WITHOUT_INDEX_OF_RUNS, sum_of};
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

/// How many notes of a kind there are, up to one more than are looked at, and the moment of the earliest of them.
#[derive(Deserialize)]
struct Notes {
    found: u64,
    found_from: i64,
    refused: u64,
    refused_from: i64,
}

/// Notes that a detector in shadow left, and those that limits in shadow did.
const FOUND: &str = "detector <> '' AND run_hash <> 0";
const REFUSED: &str = "would_block <> ''";

/// How far apart the clocks of nodes may be.
const SKEW_MS: i64 = 60_000;

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
        let Some(notes) = self.ask_one::<Notes>(&notes_sql(most), &question)? else {
            return Ok(ShadowReport::default());
        };
        question.set("found_from", notes.found_from);
        question.set("refused_from", notes.refused_from);
        let detectors = if notes.found > 0 {
            self.ask_with(&detectors_sql(most), WITHOUT_INDEX_OF_RUNS, &question)?
        } else {
            vec![]
        };
        let detector = |row: Detected| {
            let (runs, saved_steps, saved) = (row.runs, row.steps, NanoUsd(row.cost));
            ShadowDetector { detector: row.detector, runs, saved_steps, saved }
        };
        let limits = if notes.refused > 0 { self.ask(&limits_sql(most), &question)? } else { vec![] };
        let limit = |row: Limited| ShadowLimit {
            reason: row.reason,
            exceeded_limit: row.exceeded_limit,
            requests: row.requests,
            runs: row.runs,
            cost: NanoUsd(row.cost),
        };
        Ok(ShadowReport {
            detectors: detectors.into_iter().map(detector).collect(),
            limits: limits.into_iter().map(limit).collect(),
            is_partial: notes.found.max(notes.refused) > u64::from(most),
        })
    }
}

/// The latest notes of a kind since a moment.
fn latest(columns: &str, condition: &str, since: &str, most: u32) -> String {
    format!(
        "SELECT {columns} FROM notes WHERE {condition} AND at >= {{{since}:Int64}} AND at < {{until:Int64}}
         ORDER BY at DESC, id DESC LIMIT {most}"
    )
}

/// Notes lie in a part for each day, and to open all parts of a month takes longer than to read what is in them. So it is done once:
/// what follows begins where the latest notes do.
fn notes_sql(most: u32) -> String {
    let of = |condition: &str| {
        format!(
            "(SELECT (uniqExact(id), min(at)) FROM ({}))",
            latest("id, at", condition, "since", most.saturating_add(1))
        )
    };
    format!(
        "WITH {} AS founds, {} AS refusals SELECT tupleElement(founds, 1) AS found, tupleElement(founds, 2) AS found_from,
            tupleElement(refusals, 1) AS refused, tupleElement(refusals, 2) AS refused_from",
        of(FOUND),
        of(REFUSED)
    )
}

/// A run is taken to have ended where it would first have been stopped, even before the stretch of time. Nothing that a stop would
/// have saved is older than the first of its findings, but for clocks that differ.
fn detectors_sql(most: u32) -> String {
    let flagged = latest("run_hash", FOUND, "found_from", most);
    format!(
        "WITH (SELECT (groupArray(run_hash), groupArray(first_step), groupArray(rule), min(began) - {SKEW_MS}) FROM (
                SELECT run_hash, min(step) AS first_step, toString(argMin(noted.detector, step)) AS rule, min(at) AS began
                FROM notes AS noted WHERE noted.detector <> '' AND run_hash IN ({flagged}) GROUP BY run_hash)) AS stopped
         SELECT transform(run_hash, tupleElement(stopped, 1), tupleElement(stopped, 3), '') AS detector,
            uniqExact(run_hash) AS runs, count() AS steps, {} AS cost
         FROM (SELECT run_hash, step, any(call.cost_nano) AS cost_nano FROM events AS call
            WHERE call.run_hash IN (SELECT arrayJoin(tupleElement(stopped, 1)))
                AND call.at >= greatest({{since:Int64}}, tupleElement(stopped, 4)) AND call.at < {{until:Int64}}
            GROUP BY call.run_hash, call.at, call.step)
         WHERE step >= transform(run_hash, tupleElement(stopped, 1), tupleElement(stopped, 2), 4294967295)
         GROUP BY detector ORDER BY detector",
        sum_of("ifNull(cost_nano, 0)")
    )
}

/// A request counts once for a limit, at however many levels it would have met it.
fn limits_sql(most: u32) -> String {
    format!(
        "SELECT reason, exceeded_limit, count() AS requests, uniqExactIf(run_hash, run_hash <> 0) AS runs, {} AS cost
         FROM (SELECT DISTINCT id, run_hash, cost_nano, JSONExtractString(met, 'reason') AS reason,
                JSONExtract(met, 'exceeded_limit', 'Nullable(String)') AS exceeded_limit
            FROM (SELECT id, run_hash, cost_nano, arrayJoin(JSONExtractArrayRaw(would_block)) AS met FROM ({})))
         GROUP BY reason, exceeded_limit ORDER BY reason, exceeded_limit NULLS FIRST LIMIT {PAGE_ROWS}",
        sum_of("ifNull(cost_nano, 0)"),
        latest("id, run_hash, cost_nano, would_block", REFUSED, "refused_from", most)
    )
}
