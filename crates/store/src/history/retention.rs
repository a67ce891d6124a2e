//! Deleting what has grown old or too large, in batches small enough that ingestion hardly waits.

use rusqlite::Connection;
use sprag_core::time::Timestamp;

use super::HistorySettings;
use super::clickhouse;
use super::tally::{DAY_MS, MINUTE_MS, SLOT_MS};

/// Minutes that those of each agent are kept: the part of the last hour that no whole slot covers lies in them.
const AGENT_MINUTES: i64 = 120;
/// How long events stay on a node after they were sent: what stops have saved is counted from the latest of a run.
const SENT_MS: i64 = 60 * 60 * 1000;
/// What an event takes in the file, with its indexes.
const EVENT_ROW_BYTES: u64 = 1024;
/// Rows deleted by one statement.
const BATCH_ROWS: i64 = 500;
/// Pages given back to the file system by one statement.
const BATCH_PAGES: i64 = 1000;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events deleted.
    pub events: u64,
    /// Runs deleted.
    pub runs: u64,
}

/// Deletes one batch. False when there was nothing left to do.
pub(super) fn prune_batch(
    connection: &Connection,
    settings: &HistorySettings,
    now: Timestamp,
    pruned: &mut Pruned,
) -> rusqlite::Result<bool> {
    let before = |days: u32| now.0.saturating_sub(i64::from(days) * DAY_MS);
    let events = match settings.clickhouse {
        None => delete(connection, OLD_EVENTS, before(settings.retention_days))?,
        Some(_) => delete(connection, SENT_EVENTS, now.0.saturating_sub(SENT_MS))? + give_up(connection, settings)?,
    };
    let runs = delete(connection, OLD_RUNS, before(settings.run_retention_days))?;
    let spend = delete(connection, OLD_SPEND, before(settings.spend_retention_days).div_euclid(SLOT_MS))?;
    let key_spend = delete(connection, OLD_KEY_SPEND, before(settings.spend_retention_days).div_euclid(SLOT_MS))?;
    let series = delete(connection, OLD_MINUTES, before(settings.minute_retention_days).div_euclid(MINUTE_MS))?
        + delete(connection, OLD_AGENT_MINUTES, now.0.div_euclid(MINUTE_MS) - AGENT_MINUTES)?
        + delete(connection, OLD_SLOTS, before(settings.spend_retention_days).div_euclid(SLOT_MS))?
        + delete(connection, OLD_DAYS, before(settings.spend_retention_days).div_euclid(DAY_MS))?;
    let agents = delete(connection, OLD_AGENTS, before(settings.spend_retention_days))?;
    let repeats = delete(connection, OLD_REPEATS, before(settings.run_retention_days))?;
    let (large_events, large_runs) = match settings.max_db_bytes {
        // Sums of a node must outlive those that were sent, so that a run which comes back goes on counting: only events go.
        Some(max_bytes) if settings.clickhouse.is_some() && used_bytes(connection)? > max_bytes => {
            let sent = delete(connection, SENT_EVENTS, i64::MAX)?;
            (if sent > 0 { sent } else { clickhouse::give_up_oldest(connection, BATCH_ROWS)? }, 0)
        }
        Some(max_bytes) if settings.clickhouse.is_none() && used_bytes(connection)? > max_bytes => {
            let events = delete(connection, OLD_EVENTS, i64::MAX)?;
            // Runs go only when no event is left to go before them.
            let runs = if events == 0 { delete(connection, OLD_RUNS, i64::MAX)? } else { 0 };
            (events, runs)
        }
        _ => (0, 0),
    };
    pruned.events += events + large_events;
    pruned.runs += runs + large_runs;
    let is_deleted = events + runs + spend + key_spend + series + agents + repeats + large_events + large_runs > 0;
    Ok(give_back(connection)? || is_deleted)
}

/// Gives up the detail of events when too much waits for a shared history.
fn give_up(connection: &Connection, settings: &HistorySettings) -> rusqlite::Result<u64> {
    let waiting_bytes = clickhouse::waiting_events(connection)?.saturating_mul(EVENT_ROW_BYTES);
    if waiting_bytes <= settings.spool_bytes {
        return Ok(0);
    }
    clickhouse::give_up_oldest(connection, BATCH_ROWS)
}

/// Bytes of the file that hold something.
fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    Ok(u64::try_from(pages * number("page_size")?).unwrap_or(0))
}

fn delete(connection: &Connection, statement: &str, before: i64) -> rusqlite::Result<u64> {
    Ok(connection.prepare_cached(statement)?.execute((before, BATCH_ROWS))? as u64)
}

/// Returns free pages to the file system. A tenth of the file stays for new rows.
fn give_back(connection: &Connection) -> rusqlite::Result<bool> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let free = number("freelist_count")?;
    if free <= number("page_count")? / 10 {
        return Ok(false);
    }
    connection.execute_batch(&format!("PRAGMA incremental_vacuum({BATCH_PAGES})"))?;
    Ok(number("freelist_count")? < free)
}

const OLD_EVENTS: &str = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at < ?1 ORDER BY at LIMIT ?2)";
// The last one that was sent stays, so that row numbers never begin anew.
const SENT_EVENTS: &str = "DELETE FROM events WHERE seq IN (SELECT seq FROM events
    WHERE at < ?1 AND seq < (SELECT sent FROM forwarding) ORDER BY at LIMIT ?2)";
const OLD_RUNS: &str =
    "DELETE FROM runs WHERE seq IN (SELECT seq FROM runs WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)";
const OLD_SPEND: &str =
    "DELETE FROM spend WHERE (slot, agent) IN (SELECT slot, agent FROM spend WHERE slot < ?1 ORDER BY slot LIMIT ?2)";
const OLD_KEY_SPEND: &str = "DELETE FROM key_spend WHERE (key, slot) IN
    (SELECT key, slot FROM key_spend WHERE slot < ?1 ORDER BY slot LIMIT ?2)";
const OLD_MINUTES: &str = "DELETE FROM minute_totals WHERE minute IN
    (SELECT minute FROM minute_totals WHERE minute < ?1 ORDER BY minute LIMIT ?2)";
const OLD_AGENT_MINUTES: &str = "DELETE FROM agent_minutes WHERE (minute, agent) IN
    (SELECT minute, agent FROM agent_minutes WHERE minute < ?1 ORDER BY minute LIMIT ?2)";
const OLD_SLOTS: &str = "DELETE FROM slot_totals WHERE slot IN
    (SELECT slot FROM slot_totals WHERE slot < ?1 ORDER BY slot LIMIT ?2)";
const OLD_DAYS: &str = "DELETE FROM agent_days WHERE (day, agent) IN
    (SELECT day, agent FROM agent_days WHERE day < ?1 ORDER BY day LIMIT ?2)";
const OLD_AGENTS: &str = "DELETE FROM agent_totals WHERE agent IN
    (SELECT agent FROM agent_totals WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)";
const OLD_REPEATS: &str = "DELETE FROM repeats WHERE (agent, run_id) IN
    (SELECT agent, run_id FROM repeats WHERE at < ?1 ORDER BY at LIMIT ?2)";
