//! Reading the history back: listings in pages, single runs, sums.
//!
//! A reader sees what has reached the database; what is still in the spool arrives within the flush interval.

mod agent_series;
mod agents;
mod evidence;
mod filter;
mod findings;
mod runs;
mod series;
mod shadow;
mod shadow_runs;
mod spent;
mod stops;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::{Connection, Row, params_from_iter};
use serde::Serialize;
use sprag_core::event::Event;
use sprag_core::id::AgentName;
use sprag_core::limits::{IDLE_READERS, PAGE_ROWS};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::rows;
use super::tally::SLOT_MS;
use crate::error::StoreError;
use crate::shards::with_lock;
use crate::sqlite::open_reader;

pub use agent_series::AgentBucket;
pub use agents::AgentRow;
pub(super) use agents::agent_place;
pub use evidence::StepRow;
use filter::{Conditions, Cursor};
pub use filter::{EventFilter, RunFilter};
pub use findings::{FindingCount, FindingsReport};
pub use runs::{PastRun, RunRow, RunStatus, RunStopped};
pub use series::{AgentShare, Bucket, Series, Span, TopBy};
pub use shadow::{ShadowDetector, ShadowLimit, ShadowReport, WouldStop};
pub use shadow_runs::ShadowRun;
pub(super) use shadow_runs::is_natural_end;
pub use spent::{Spender, SpentByAll};
pub use stops::RecentStop;
pub(super) use stops::latest_stops;

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page<T> {
    /// The rows, in the listing's order.
    pub items: Vec<T>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<String>,
}

/// Sums over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests of all kinds.
    pub requests: u64,
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// The part of them that came from a cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// What was spent.
    pub cost: NanoUsd,
    /// Requests whose cost is not known.
    pub unpriced: u64,
    /// Requests whose tokens Sprag counted itself.
    pub estimated: u64,
    /// Requests that were refused.
    pub blocked: u64,
    /// Requests that failed upstream.
    pub errors: u64,
    /// What stops have saved, counted only from proven repeats.
    pub saved: NanoUsd,
}

/// Connections that only read, shared by all readers.
pub(super) struct Reader {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Reader {
    pub(super) fn new(path: &Path) -> Reader {
        Reader { path: path.to_owned(), idle: Mutex::default() }
    }

    pub(super) fn events(
        &self,
        filter: &EventFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Event>, StoreError> {
        let mut conditions = filter.conditions();
        if let Some(cursor) = cursor {
            let clause = if filter.is_oldest_first { "(at, seq) > (?, ?)" } else { "(at, seq) < (?, ?)" };
            conditions.beyond(clause, Cursor::parse(cursor)?);
        }
        let sql = events_sql(filter, &conditions, limit);
        let found = self.list(&sql, conditions, rows::read)?;
        Ok(page(found, limit, |seq, event: &Event| Cursor { at: event.at.0, seq }))
    }

    /// Sums of everything since the quarter of an hour in which `since` lies, of one agent or of all.
    pub(super) fn totals(&self, since: Timestamp, agent: Option<&AgentName>) -> Result<Totals, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("slot >= ?", since.0.div_euclid(SLOT_MS));
        conditions.and_maybe("agent = ?", agent.map(|agent| agent.as_str().to_owned()));
        // A plain sum is an error in SQLite once it passes the largest integer, so high and low bits are summed apart.
        let sql = format!(
            "SELECT coalesce(sum(steps), 0), coalesce(sum(unpriced_steps), 0), coalesce(sum(estimated_steps), 0),
                coalesce(sum(blocked), 0), coalesce(sum(errors), 0),
                sum(input_tokens >> 20), sum(input_tokens & 1048575),
                sum(cached_tokens >> 20), sum(cached_tokens & 1048575),
                sum(output_tokens >> 20), sum(output_tokens & 1048575),
                sum(cost_nano >> 20), sum(cost_nano & 1048575),
                sum(saved_nano >> 20), sum(saved_nano & 1048575)
             FROM spend {}",
            conditions.sql()
        );
        let mut found = self.list(&sql, conditions, |row| {
            Ok(Totals {
                requests: rows::count(row, 0)?,
                unpriced: rows::count(row, 1)?,
                estimated: rows::count(row, 2)?,
                blocked: rows::count(row, 3)?,
                errors: rows::count(row, 4)?,
                input_tokens: sum_of_halves(row, 5)?.unsigned_abs(),
                cached_tokens: sum_of_halves(row, 7)?.unsigned_abs(),
                output_tokens: sum_of_halves(row, 9)?.unsigned_abs(),
                cost: NanoUsd(sum_of_halves(row, 11)?),
                saved: NanoUsd(sum_of_halves(row, 13)?),
            })
        })?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Runs a query on a connection of its own.
    fn list<T>(
        &self,
        sql: &str,
        conditions: Conditions,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let query = || {
            let connection = match with_lock(&self.idle, Vec::pop) {
                Some(connection) => connection,
                None => open_reader(&self.path)?,
            };
            let found = connection
                .prepare_cached(sql)?
                .query_map(params_from_iter(conditions.values), read)?
                .collect::<rusqlite::Result<Vec<T>>>();
            with_lock(&self.idle, |idle| {
                if idle.len() < IDLE_READERS {
                    idle.push(connection);
                }
            });
            found
        };
        query().map_err(StoreError::database("be read"))
    }
}

fn events_sql(filter: &EventFilter, conditions: &Conditions, limit: u32) -> String {
    let order = if filter.is_oldest_first { "ASC" } else { "DESC" };
    format!(
        "SELECT {} FROM events {} ORDER BY at {order}, seq {order} LIMIT {}",
        rows::COLUMNS,
        conditions.sql(),
        page_rows(limit) + 1
    )
}

/// Between one row and the largest page.
fn page_rows(limit: u32) -> u32 {
    limit.clamp(1, PAGE_ROWS)
}

/// Makes a page of rows of which one more than the page holds was asked for.
fn page<T>(mut found: Vec<(i64, T)>, limit: u32, cursor_of: impl Fn(i64, &T) -> Cursor) -> Page<T> {
    let size = page_rows(limit) as usize;
    let has_more = found.len() > size;
    found.truncate(size);
    let next = if has_more { found.last().map(|(seq, row)| cursor_of(*seq, row).to_string()) } else { None };
    Page { items: found.into_iter().map(|(_, row)| row).collect(), next }
}

fn sum_of_halves(row: &Row<'_>, index: usize) -> rusqlite::Result<i64> {
    let high: i64 = row.get::<_, Option<i64>>(index)?.unwrap_or(0);
    let low: i64 = row.get::<_, Option<i64>>(index + 1)?.unwrap_or(0);
    let sum = (i128::from(high) << 20) + i128::from(low);
    Ok(i64::try_from(sum).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_key::RunKey;
    use crate::sqlite::{HISTORY, open_writer};
    use sprag_core::event::EventKind;
    use sprag_core::id::RunId;

    #[test]
    fn idle_connections_are_bounded() {
        fn nested(reader: &Reader, depth: usize) {
            let deeper = |_: &Row<'_>| {
                if depth > 1 {
                    nested(reader, depth - 1);
                }
                Ok(())
            };
            assert_eq!(reader.list("SELECT 1", Conditions::default(), deeper).unwrap().len(), 1);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let _writer = open_writer(&path, HISTORY).unwrap();
        for at_once in [IDLE_READERS, IDLE_READERS + 1] {
            let reader = Reader::new(&path);
            nested(&reader, at_once);
            assert_eq!(reader.idle.lock().unwrap().len(), IDLE_READERS, "after {at_once} at once");
        }
    }

    #[test]
    fn listings_walk_an_index_and_sort_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
        let any = EventFilter::default;
        let agent = AgentName::default;
        let run = RunKey { agent: agent(), id: RunId::parse("r").unwrap() };
        let cases = [
            (any(), "events_newest"),
            (EventFilter { agent: Some(agent()), ..any() }, "events_of_agent"),
            (EventFilter { run: Some(run), is_oldest_first: true, ..any() }, "events_of_run"),
            (EventFilter { key: Some("k".into()), ..any() }, "events_of_key"),
            (EventFilter { model: Some("m".into()), ..any() }, "events_of_model"),
            (EventFilter { blocked: Some(true), ..any() }, "events_blocked"),
            (EventFilter { kind: Some(EventKind::LlmCall), ..any() }, "events_newest"),
            (EventFilter { kind: Some(EventKind::Admin), ..any() }, "events_of_kind"),
            (EventFilter { block_reason: Some("r".into()), ..any() }, "events_of_reason"),
            (EventFilter { block_reason: Some("r".into()), blocked: Some(true), ..any() }, "events_of_reason"),
            (EventFilter { has_findings: Some(true), ..any() }, "events_dlp"),
            (EventFilter { agent: Some(agent()), model: Some("m".into()), ..any() }, "events_of_agent_model"),
        ];
        for (filter, index) in cases {
            let mut conditions = filter.conditions();
            conditions.beyond("(at, seq) < (?, ?)", Cursor { at: 1, seq: 1 });
            let sql = format!("EXPLAIN QUERY PLAN {}", events_sql(&filter, &conditions, 10));
            let mut statement = connection.prepare(&sql).unwrap();
            let plan: Vec<String> = statement
                .query_map(params_from_iter(conditions.values), |row| row.get(3))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(plan.len() == 1 && plan[0].contains(&format!("USING INDEX {index} ")), "{index}: {plan:?}");
        }
    }
}
