//! What happened over time, in even steps, and who led.

use rusqlite::Row;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use sprag_core::id::AgentName;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Reader, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::history::tally::{DAY_MS, MINUTE_MS, SLOT_MS};

/// How far back a chart looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Span {
    /// The last hour by the minute; of one agent by the quarter.
    #[default]
    Hour,
    /// The last 24 hours by the quarter of an hour.
    Day,
    /// The last 30 days by the day in UTC.
    Month,
}

/// What happened, in even steps without gaps, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// Length of a step.
    pub bucket_ms: i64,
    /// The steps. The last one is not over yet.
    pub buckets: Vec<Bucket>,
}

/// One step of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// When it began.
    pub at: Timestamp,
    /// Requests of all kinds.
    pub requests: u64,
    /// Those that were refused.
    pub blocked: u64,
    /// Those that failed upstream.
    pub errors: u64,
    /// What was spent.
    pub cost: NanoUsd,
}

/// What agents are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopBy {
    /// What they spent.
    #[default]
    Cost,
    /// Requests that were refused.
    Stops,
}

/// An agent's part of what happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentShare {
    /// Its name.
    pub name: AgentName,
    /// Its requests.
    pub requests: u64,
    /// Those that were refused.
    pub blocked: u64,
    /// What it spent.
    pub cost: NanoUsd,
}

/// Where the rows of a series come from: a table, its column of time and the length of one row.
type Source = (&'static str, &'static str, i64);

impl Span {
    /// Length and number of the steps.
    fn steps(self, is_of_agent: bool) -> (i64, i64) {
        match self {
            // One more than an hour has: the last one has only begun.
            Span::Hour if is_of_agent => (SLOT_MS, 5),
            Span::Hour => (MINUTE_MS, 60),
            Span::Day => (SLOT_MS, 96),
            Span::Month => (DAY_MS, 30),
        }
    }

    fn source(self, is_of_agent: bool) -> Source {
        match self {
            _ if is_of_agent => ("spend", "slot", SLOT_MS),
            Span::Hour => ("minute_totals", "minute", MINUTE_MS),
            Span::Day | Span::Month => ("slot_totals", "slot", SLOT_MS),
        }
    }
}

impl Series {
    /// The steps of a span in which nothing has happened.
    pub(in crate::history) fn empty(span: Span, now: Timestamp, is_of_agent: bool) -> Series {
        let (bucket_ms, count) = span.steps(is_of_agent);
        let first = now.0.div_euclid(bucket_ms) - (count - 1);
        let bucket = |n: i64| Bucket { at: Timestamp((first + n).saturating_mul(bucket_ms)), ..Bucket::default() };
        Series { bucket_ms, buckets: (0..count).map(bucket).collect() }
    }

    /// When the first step begins.
    pub(in crate::history) fn first_at(&self) -> i64 {
        self.buckets.first().map_or(0, |bucket| bucket.at.0)
    }

    /// Adds what happened in a part of a step.
    pub(in crate::history) fn add(&mut self, part: &Bucket) {
        let place = part.at.0.div_euclid(self.bucket_ms) - self.first_at().div_euclid(self.bucket_ms);
        // What lies in the future came from a clock that was wrong.
        let Some(bucket) = usize::try_from(place).ok().and_then(|place| self.buckets.get_mut(place)) else { return };
        bucket.requests = bucket.requests.saturating_add(part.requests);
        bucket.blocked = bucket.blocked.saturating_add(part.blocked);
        bucket.errors = bucket.errors.saturating_add(part.errors);
        bucket.cost = NanoUsd(bucket.cost.0.saturating_add(part.cost.0));
    }
}

impl Reader {
    pub(in crate::history) fn series(
        &self,
        span: Span,
        now: Timestamp,
        agent: Option<&AgentName>,
    ) -> Result<Series, StoreError> {
        let mut series = Series::empty(span, now, agent.is_some());
        let (sql, conditions, row_ms) = series_sql(span, series.first_at(), agent);
        let found = self.list(&sql, conditions, |row| {
            Ok(Bucket {
                at: Timestamp(row.get::<_, i64>(0)?.saturating_mul(row_ms)),
                requests: rows::count(row, 1)?,
                blocked: rows::count(row, 2)?,
                errors: rows::count(row, 3)?,
                cost: NanoUsd(row.get(4)?),
            })
        })?;
        for bucket in &found {
            series.add(bucket);
        }
        Ok(series)
    }

    pub(in crate::history) fn top_agents(
        &self,
        span: Span,
        now: Timestamp,
        by: TopBy,
        limit: u32,
    ) -> Result<Vec<AgentShare>, StoreError> {
        let first_at = Series::empty(span, now, false).first_at();
        let (sql, conditions) = top_sql(span, first_at, by, limit);
        self.list(&sql, conditions, |row: &Row<'_>| {
            Ok(AgentShare {
                name: rows::agent_name(row, 0)?,
                requests: rows::count(row, 1)?,
                blocked: rows::count(row, 2)?,
                cost: NanoUsd(sum_of_halves(row, 3)?),
            })
        })
    }
}

fn series_sql(span: Span, first_at: i64, agent: Option<&AgentName>) -> (String, Conditions, i64) {
    let (table, time, row_ms) = span.source(agent.is_some());
    let mut conditions = Conditions::default();
    conditions.and_maybe("agent = ?", agent.map(|agent| agent.as_str().to_owned()));
    conditions.and(if time == "minute" { "minute >= ?" } else { "slot >= ?" }, first_at.div_euclid(row_ms));
    let sql = format!("SELECT {time}, steps, blocked, errors, cost_nano FROM {table} {}", conditions.sql());
    (sql, conditions, row_ms)
}

fn top_sql(span: Span, first_at: i64, by: TopBy, limit: u32) -> (String, Conditions) {
    let mut conditions = Conditions::default();
    const SUMS: &str = "agent, steps, blocked, cost_nano";
    let rows = match span {
        // Whole slots as far as they go, and minutes up to the first one: exactly the minutes of the chart.
        Span::Hour => {
            let first_slot = first_at.div_euclid(SLOT_MS) + i64::from(first_at.rem_euclid(SLOT_MS) > 0);
            let minutes = [first_at.div_euclid(MINUTE_MS), first_slot.saturating_mul(SLOT_MS / MINUTE_MS)];
            conditions.values.extend(minutes.into_iter().chain([first_slot]).map(Value::from));
            format!(
                "(SELECT {SUMS} FROM agent_minutes WHERE minute >= ? AND minute < ?
                  UNION ALL SELECT {SUMS} FROM spend WHERE slot >= ?)"
            )
        }
        Span::Day => {
            conditions.and("slot >= ?", first_at.div_euclid(SLOT_MS));
            format!("spend {}", conditions.sql())
        }
        Span::Month => {
            conditions.and("day >= ?", first_at.div_euclid(DAY_MS));
            format!("agent_days {}", conditions.sql())
        }
    };
    let order = match by {
        TopBy::Cost => "cost DESC, stops DESC",
        TopBy::Stops => "stops DESC, cost DESC",
    };
    let limit = limit.clamp(1, PAGE_ROWS);
    // A plain sum of money is an error once it passes the largest integer.
    // With the plus the rows since then are grouped; without it SQLite would walk all rows in the order of agents.
    let sql = format!(
        "SELECT agent, sum(steps) AS requests, sum(blocked) AS stops, sum(cost_nano >> 20), sum(cost_nano & 1048575),
            total(cost_nano) AS cost
         FROM {rows} GROUP BY +agent ORDER BY {order}, requests DESC, agent LIMIT {limit}"
    );
    (sql, conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn only_rows_of_the_span_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let _writer = open_writer(&path, HISTORY).unwrap();
        let plan = |sql: &str, conditions| {
            let explained = format!("EXPLAIN QUERY PLAN {sql}");
            Reader::new(&path).list(&explained, conditions, |row| row.get::<_, String>(3)).unwrap()
        };
        let agent = AgentName::default();
        for span in [Span::Hour, Span::Day, Span::Month] {
            let (sql, conditions) = top_sql(span, MINUTE_MS, TopBy::Cost, 8);
            let top = plan(&sql, conditions);
            let read: Vec<&String> =
                top.iter().filter(|step| step.contains("agent_") || step.contains("spend")).collect();
            assert_eq!(read.len(), if span == Span::Hour { 2 } else { 1 }, "{span:?}: {top:?}");
            assert!(read.iter().all(|step| step.starts_with("SEARCH") && step.contains(">?")), "{span:?}: {top:?}");
            let (sql, conditions, _) = series_sql(span, 0, None);
            let all = plan(&sql, conditions);
            assert!(all[0].ends_with("(rowid>?)"), "{span:?}: {all:?}");
            let (sql, conditions, _) = series_sql(span, 0, Some(&agent));
            let one = plan(&sql, conditions);
            assert!(one[0].ends_with("(agent=? AND slot>?)"), "{span:?}: {one:?}");
        }
    }
}
