//! What rules in shadow would have done to a run, and to all runs of a stretch of time.

use rusqlite::types::Type;
use serde::Serialize;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::loops::Verdict;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Reader, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::run_key::RunKey;

/// Where a run would have been stopped, and what that would have saved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WouldStop {
    /// The first step that would have been refused.
    pub step: u32,
    /// Why.
    pub verdict: Verdict,
    /// Calls from that one on.
    pub saved_steps: u64,
    /// What they cost.
    pub saved: NanoUsd,
}

/// What rules in shadow would have done in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShadowReport {
    /// By the detector that would have stopped a run first.
    pub detectors: Vec<ShadowDetector>,
    /// By the limit that would have refused requests.
    pub limits: Vec<ShadowLimit>,
    /// There were more events than a report looks at; the older ones are left out.
    pub is_partial: bool,
}

/// What one detector would have stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShadowDetector {
    /// Its name.
    pub detector: String,
    /// Runs that it would have stopped.
    pub runs: u64,
    /// Their calls from there on.
    pub saved_steps: u64,
    /// What these cost.
    pub saved: NanoUsd,
}

/// What one limit would have refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShadowLimit {
    /// The reason, as refusals call it.
    pub reason: String,
    /// Which limit.
    pub exceeded_limit: Option<String>,
    /// Requests that it would have refused.
    pub requests: u64,
    /// Runs that these belong to.
    pub runs: u64,
    /// What these requests cost.
    pub cost: NanoUsd,
}

const FOUND: &str = "SELECT agent, run_id FROM events
    WHERE shadow IS NOT NULL AND run_id IS NOT NULL AND at >= ?1 AND at < ?2 ORDER BY at DESC";
const REFUSED: &str = "SELECT seq, agent, run_id, cost_nano, would_block FROM events
    WHERE would_block IS NOT NULL AND at >= ?1 AND at < ?2 ORDER BY at DESC";

impl Reader {
    pub(in crate::history) fn would_stop(&self, key: &RunKey) -> Result<Option<WouldStop>, StoreError> {
        let of_run = || {
            let mut conditions = Conditions::default();
            conditions.and("agent = ?", key.agent.as_str().to_owned());
            conditions.and("run_id = ?", key.id.as_str().to_owned());
            conditions
        };
        let mut conditions = of_run();
        conditions.only("shadow IS NOT NULL");
        let sql = format!("SELECT step, shadow FROM events {} ORDER BY step LIMIT 1", conditions.sql());
        let first = self.list(&sql, conditions, |row| {
            let verdict: Verdict = serde_json::from_str(row.get_ref(1)?.as_str()?)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, Box::new(error)))?;
            Ok((row.get::<_, u32>(0)?, verdict))
        })?;
        let Some((step, verdict)) = first.into_iter().next() else { return Ok(None) };
        let mut conditions = of_run();
        conditions.and("step >= ?", i64::from(step));
        // A plain sum is an error in SQLite once it passes the largest integer.
        let sql = format!(
            "SELECT count(*), coalesce(sum(cost_nano >> 20), 0), coalesce(sum(cost_nano & 1048575), 0) FROM events {}",
            conditions.sql()
        );
        let sums = self.list(&sql, conditions, |row| Ok((rows::count(row, 0)?, NanoUsd(sum_of_halves(row, 1)?))))?;
        let (saved_steps, saved) = sums.first().copied().unwrap_or_default();
        Ok(Some(WouldStop { step, verdict, saved_steps, saved }))
    }

    /// Sums of what would not have happened between two moments, from at most so many findings, the latest.
    pub(in crate::history) fn shadow_report(
        &self,
        since: Timestamp,
        until: Timestamp,
        most: u32,
    ) -> Result<ShadowReport, StoreError> {
        let span = || {
            let mut conditions = Conditions::default();
            conditions.values.extend([since.0.into(), until.0.into()]);
            conditions
        };
        // A run is taken to have ended where it would first have been stopped, even before the stretch of time.
        let sql = format!(
            "WITH flagged AS (SELECT DISTINCT agent, run_id FROM ({FOUND} LIMIT {most})),
                stopped AS (
                    SELECT flagged.agent, flagged.run_id, min(step) AS step, json_extract(shadow, '$.detector') AS rule
                    FROM flagged JOIN events USING (agent, run_id) WHERE shadow IS NOT NULL
                    GROUP BY flagged.agent, flagged.run_id)
             SELECT rule, count(DISTINCT stopped.agent || '/' || stopped.run_id), count(*),
                coalesce(sum(cost_nano >> 20), 0), coalesce(sum(cost_nano & 1048575), 0)
             FROM stopped JOIN events USING (agent, run_id)
             WHERE events.step >= stopped.step AND at >= ?1 AND at < ?2 GROUP BY rule ORDER BY rule"
        );
        let detectors = self.list(&sql, span(), |row| {
            Ok(ShadowDetector {
                detector: row.get(0)?,
                runs: rows::count(row, 1)?,
                saved_steps: rows::count(row, 2)?,
                saved: NanoUsd(sum_of_halves(row, 3)?),
            })
        })?;
        // A request counts once for a limit, at however many levels it would have met it.
        let sql = format!(
            "WITH refused AS (
                SELECT DISTINCT seq, agent, run_id, cost_nano, json_extract(value, '$.reason') AS reason,
                    json_extract(value, '$.exceeded_limit') AS exceeded_limit
                FROM ({REFUSED} LIMIT {most}), json_each(would_block))
             SELECT reason, exceeded_limit, count(*), count(DISTINCT agent || '/' || run_id),
                coalesce(sum(cost_nano >> 20), 0), coalesce(sum(cost_nano & 1048575), 0)
             FROM refused GROUP BY reason, exceeded_limit ORDER BY reason, exceeded_limit LIMIT {PAGE_ROWS}"
        );
        let limits = self.list(&sql, span(), |row| {
            Ok(ShadowLimit {
                reason: row.get(0)?,
                exceeded_limit: row.get(1)?,
                requests: rows::count(row, 2)?,
                runs: rows::count(row, 3)?,
                cost: NanoUsd(sum_of_halves(row, 4)?),
            })
        })?;
        let mut is_partial = false;
        for findings in [FOUND, REFUSED] {
            let sql = format!("SELECT count(*) FROM ({findings} LIMIT {most} + 1)");
            let found = self.list(&sql, span(), |row| rows::count(row, 0))?.pop().unwrap_or(0);
            is_partial |= found > u64::from(most);
        }
        Ok(ShadowReport { detectors, limits, is_partial })
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::{Event, WouldBlock};
    use sprag_core::loops::{Action, Detector, Finding, Mode, Proof};

    use super::*;
    use crate::history::samples::step;
    use crate::sqlite::{HISTORY, open_writer};

    fn flagged(event: Event, detector: Detector) -> Event {
        let (loop_type, proof) = (String::new(), Proof::default());
        let finding = Finding { detector, mode: Mode::Shadow, loop_type, confidence: 1.0, score: 4.0, count: 4, proof };
        let shadow = Verdict { finding, action: Action::KillRun, strike: 1, retry_seconds: None };
        Event { shadow: Some(shadow), ..event }
    }

    fn reader(events: &[Event]) -> (tempfile::TempDir, Reader) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let writer = open_writer(&path, HISTORY).unwrap();
        for event in events {
            assert!(rows::insert(&writer, event).unwrap());
        }
        (dir, Reader::new(&path))
    }

    fn at(event: Event, at: i64) -> Event {
        Event { at: Timestamp(at), ..event }
    }

    #[test]
    fn each_run_counts_for_the_rule_that_would_have_stopped_it_first() {
        let events = [
            at(step("1", "a", 1), 1),
            at(flagged(step("2", "a", 2), Detector::Progress), 2),
            at(flagged(step("3", "a", 3), Detector::Exact), 3),
            at(step("4", "a", 4), 4),
            at(flagged(step("5", "b", 1), Detector::Exact), 5),
            at(step("6", "healthy", 1), 6),
        ];
        let (_dir, reader) = reader(&events);
        let report = |since, until, most| {
            let report = reader.shadow_report(Timestamp(since), Timestamp(until), most).unwrap();
            let row = |of: &ShadowDetector| (of.detector.clone(), of.runs, of.saved_steps, of.saved.0);
            (report.detectors.iter().map(row).collect::<Vec<_>>(), report.is_partial)
        };
        let (exact, progress) = (("exact".to_owned(), 1, 1, 1000), ("progress".to_owned(), 1, 3, 3000));
        assert_eq!(report(0, 10, 3), (vec![exact.clone(), progress], false), "as many as it looks at");
        assert_eq!(report(0, 10, 1), (vec![exact], true), "one past what it looks at");
        let later = ("progress".to_owned(), 1, 2, 2000);
        assert_eq!(report(3, 5, 3), (vec![later], false), "only the money of the stretch of time");
        assert_eq!(report(6, 10, 3), (vec![], false));
    }

    #[test]
    fn a_report_walks_over_no_other_events() {
        let (_dir, reader) = reader(&[]);
        for (findings, index) in [(FOUND, "events_shadow_newest"), (REFUSED, "events_would_block")] {
            let mut span = Conditions::default();
            span.values.extend([0.into(), 1.into()]);
            let plan =
                reader.list(&format!("EXPLAIN QUERY PLAN {findings}"), span, |row| row.get::<_, String>(3)).unwrap();
            assert!(plan.len() == 1 && plan[0].contains(&format!("USING INDEX {index} ")), "{plan:?}");
        }
    }

    fn refused(event: Event, limits: &[(&str, Option<&str>)]) -> Event {
        let would = |&(reason, limit): &(&str, Option<&str>)| WouldBlock {
            reason: reason.into(),
            exceeded_limit: limit.map(str::to_owned),
            message: "too much".into(),
        };
        Event { would_block: limits.iter().map(would).collect(), ..event }
    }

    #[test]
    fn requests_count_once_for_every_limit_that_they_would_have_met() {
        let (daily, hours) = (("budget_exceeded", Some("daily")), ("outside_allowed_hours", None));
        let outside = Event { run: None, cost: None, ..step("4", "x", 1) };
        let events = [
            at(refused(step("1", "a", 1), &[daily, daily]), 1),
            at(refused(step("2", "a", 2), &[hours, daily]), 2),
            at(refused(step("3", "b", 1), &[daily, ("budget_exceeded", Some("monthly"))]), 3),
            at(refused(outside, &[hours]), 4),
            at(step("5", "healthy", 1), 5),
        ];
        let (_dir, reader) = reader(&events);
        let report = |since, until, most| {
            let report = reader.shadow_report(Timestamp(since), Timestamp(until), most).unwrap();
            let row = |of: &ShadowLimit| {
                let name = of.exceeded_limit.as_ref().unwrap_or(&of.reason);
                format!("{name}: {} in {} runs for {}", of.requests, of.runs, of.cost.0)
            };
            (report.limits.iter().map(row).collect::<Vec<_>>().join(", "), report.is_partial)
        };
        let all = "daily: 3 in 2 runs for 3000, monthly: 1 in 1 runs for 1000, \
                   outside_allowed_hours: 2 in 1 runs for 1000";
        assert_eq!(report(0, 10, 4), (all.to_owned(), false), "as many as it looks at");
        let latest = "daily: 1 in 1 runs for 1000, monthly: 1 in 1 runs for 1000, \
                      outside_allowed_hours: 1 in 0 runs for 0";
        assert_eq!(report(0, 10, 2), (latest.to_owned(), true), "past what it looks at");
        assert_eq!(report(1, 2, 4).0, "daily: 1 in 1 runs for 1000");
        assert_eq!(report(5, 10, 4), (String::new(), false));
    }
}
