//! The tables of the shared history: numbered migrations, and how long things are kept.
//!
//! Several nodes may start at once, so every statement can be repeated and does no harm when another node has just done
//! it. A released migration is never changed, and a new one only adds: nodes of the version before go on beside it.

use super::link::{Link, Refused, UNKNOWN_DATABASE};
use crate::history::HistorySettings;

const MIGRATIONS: [&str; 3] =
    [include_str!("schema/001_events.sql"), include_str!("schema/002_sums.sql"), include_str!("schema/003_notes.sql")];

/// Brings the tables up to date.
pub(super) fn prepare(link: &Link, settings: &HistorySettings) -> Result<(), Refused> {
    const NUMBERS: &str = "CREATE TABLE IF NOT EXISTS migrations (number UInt32, at DateTime DEFAULT now())
        ENGINE = ReplacingMergeTree ORDER BY number";
    match link.command(NUMBERS) {
        Err(refused) if refused.code == Some(UNKNOWN_DATABASE) => {
            link.command_outside(&format!("CREATE DATABASE IF NOT EXISTS {}", link.address().database))?;
            link.command(NUMBERS)?;
        }
        outcome => outcome?,
    }
    let done = link.number("SELECT max(number) FROM migrations")?;
    for (number, migration) in (1..).zip(MIGRATIONS) {
        if number <= done {
            continue;
        }
        for statement in statements(migration) {
            link.command(statement)?;
        }
        link.command(&format!("INSERT INTO migrations (number) VALUES ({number})"))?;
    }
    keep_for(link, settings)
}

/// Sets how long each table keeps its rows, where that has changed. Days and months that are over go whole.
fn keep_for(link: &Link, settings: &HistorySettings) -> Result<(), Refused> {
    let (events, minutes) = (settings.retention_days, settings.minute_retention_days);
    let (runs, spend) = (settings.run_retention_days, settings.spend_retention_days);
    let tables = link.text("SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()")?;
    for (table, moment, days) in [
        ("events", "intDiv(at, 1000)", events),
        ("notes", "intDiv(at, 1000)", events),
        ("run_hours", "hour * 3600", runs),
        ("run_acts", "intDiv(at, 1000)", runs),
        ("node_runs", "intDiv(last_at, 1000)", runs),
        ("node_agent_totals", "intDiv(last_at, 1000)", spend),
        ("node_spend", "slot * 900", spend),
        ("node_slot_totals", "slot * 900", spend),
        ("node_key_spend", "slot * 900", spend),
        ("node_minute_totals", "minute * 60", minutes),
        ("node_agent_minutes", "minute * 60", minutes),
        ("node_agent_days", "day * 86400", spend),
    ] {
        // A date and not a time: days go up to the year 2149, and no sum of days passes that.
        let days = days.min(40_000);
        let (name, kept) = (format!("{table}\t"), format!("toIntervalDay({days})"));
        if !tables.lines().any(|line| line.starts_with(&name) && line.contains(&kept)) {
            link.command(&format!(
                "ALTER TABLE {table} MODIFY TTL toDate(toDateTime({moment}, 'UTC')) + toIntervalDay({days})"
            ))?;
        }
    }
    Ok(())
}

fn statements(migration: &str) -> impl Iterator<Item = &str> {
    migration.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}
