//! The catalog's rows.

use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::KILL_CLUES;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Kill, KillScope};
use sprag_core::time::Timestamp;

use super::snapshot::{Mark, Snapshot};
use super::{keys, tokens};
use crate::run_key::RunKey;

pub(super) fn read(connection: &Connection) -> rusqlite::Result<Snapshot> {
    let mut snapshot = Snapshot::default();
    let mut kills = connection.prepare("SELECT record FROM kills ORDER BY seq")?;
    for kill in kills.query_map([], |row| from_json::<Kill>(row, 0))? {
        snapshot.kills.insert(Arc::new(kill?));
    }
    let mut marks = connection.prepare("SELECT agent, run_id, steps, at, cost_nano FROM marks")?;
    let read_mark = |row: &Row<'_>| {
        let (at, cost) = (Timestamp(row.get(3)?), NanoUsd(row.get(4)?));
        Ok((run_key(row)?, Mark { steps: row.get(2)?, cost, at }))
    };
    snapshot.marks = Arc::new(marks.query_map([], read_mark)?.collect::<rusqlite::Result<_>>()?);
    let mut agents = connection.prepare("SELECT name, record FROM agents")?;
    let read_agent = |row: &Row<'_>| Ok((parsed(row, 0, AgentName::parse)?, Arc::new(from_json(row, 1)?)));
    snapshot.agents = Arc::new(agents.query_map([], read_agent)?.collect::<rusqlite::Result<_>>()?);
    let mut adjustments = connection.prepare("SELECT account, start, amount_nano FROM adjustments")?;
    let read_adjustment = |row: &Row<'_>| Ok((row.get(0)?, Timestamp(row.get(1)?), NanoUsd(row.get(2)?)));
    for adjustment in adjustments.query_map([], read_adjustment)? {
        let (account, start, amount): (String, _, _) = adjustment?;
        match account.parse() {
            Ok(account) => snapshot.add_adjustment(&account, start, amount),
            Err(error) => tracing::warn!(account, %error, "an adjustment is left out"),
        }
    }
    snapshot.keys = Arc::new(keys::read(connection)?);
    snapshot.tokens = Arc::new(tokens::read(connection)?);
    Ok(snapshot)
}

pub(super) fn insert_kill(connection: &Connection, kill: &Kill, clues: &[u64]) -> rusqlite::Result<()> {
    // A replaced kill gets a new age with its new row.
    connection.prepare_cached("DELETE FROM kills WHERE scope = ?1")?.execute([kill.scope.to_string()])?;
    connection
        .prepare_cached("INSERT INTO kills (scope, is_run, expires_at, record) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            kill.scope.to_string(),
            kill.run().is_some(),
            kill.expires_at.map(|end| end.0),
            to_json(kill)?
        ])?;
    insert_clues(connection, &kill.scope, clues).map(drop)
}

/// As many as there is room for beside those that are known. Says how many are new.
pub(super) fn insert_clues(connection: &Connection, scope: &KillScope, clues: &[u64]) -> rusqlite::Result<usize> {
    if clues.is_empty() {
        return Ok(0);
    }
    let scope = scope.to_string();
    let known: u32 =
        connection.query_row("SELECT count(*) FROM kill_clues WHERE scope = ?1", [&scope], |row| row.get(0))?;
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO kill_clues (scope, clue) VALUES (?1, ?2)")?;
    let room = clues.iter().take(KILL_CLUES.saturating_sub(known as usize));
    room.map(|clue| insert.execute(params![scope, clue.cast_signed()])).sum()
}

/// The clues to the run of a kill.
pub(super) fn clues_of(connection: &Connection, scope: &KillScope) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached("SELECT clue FROM kill_clues WHERE scope = ?1")?
        .query_map([scope.to_string()], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))?
        .collect()
}

pub(super) fn delete_kill(connection: &Connection, scope: &KillScope) -> rusqlite::Result<()> {
    let scope = scope.to_string();
    connection.prepare_cached("DELETE FROM kills WHERE scope = ?1")?.execute([&scope])?;
    connection.prepare_cached("DELETE FROM kill_clues WHERE scope = ?1")?.execute([&scope])?;
    Ok(())
}

/// Deletes what is over, and says what it was.
pub(super) fn delete_expired(connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<KillScope>> {
    delete_where(connection, "expires_at <= ?1", now.0)
}

pub(super) fn count_runs(connection: &Connection) -> rusqlite::Result<usize> {
    let count: u32 = connection.query_row("SELECT count(*) FROM kills WHERE is_run = 1", [], |row| row.get(0))?;
    Ok(count as usize)
}

/// Deletes so many kills of runs, the oldest first, and says which.
pub(super) fn delete_oldest_runs(connection: &Connection, number: usize) -> rusqlite::Result<Vec<KillScope>> {
    if number == 0 {
        return Ok(Vec::new());
    }
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    delete_where(connection, "seq IN (SELECT seq FROM kills WHERE is_run = 1 ORDER BY seq LIMIT ?1)", number)
}

pub(super) fn insert_mark(connection: &Connection, run: &RunKey, mark: Mark) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO marks (agent, run_id, steps, at, cost_nano) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![run.agent.as_str(), run.id.as_str(), mark.steps, mark.at.0, mark.cost.0])?;
    Ok(())
}

/// Deletes so many marks, the oldest first, and says whose.
pub(super) fn delete_oldest_marks(connection: &Connection, number: usize) -> rusqlite::Result<Vec<RunKey>> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM marks WHERE seq IN (SELECT seq FROM marks ORDER BY seq LIMIT ?1) RETURNING agent, run_id",
        )?
        .query_map([number], run_key)?
        .collect()
}

/// What a node added to an account at a moment.
pub(super) fn adjustment(
    connection: &Connection,
    account: &AccountId,
    start: Timestamp,
    node: &str,
) -> rusqlite::Result<NanoUsd> {
    let amount = connection
        .prepare_cached("SELECT amount_nano FROM adjustments WHERE account = ?1 AND start = ?2 AND node = ?3")?
        .query_row(params![account.to_string(), start.0, node], |row| row.get(0))
        .optional()?;
    Ok(NanoUsd(amount.unwrap_or(0)))
}

/// Sets it.
pub(super) fn insert_adjustment(
    connection: &Connection,
    account: &AccountId,
    start: Timestamp,
    node: &str,
    amount: NanoUsd,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO adjustments (account, start, node, amount_nano) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![account.to_string(), start.0, node, amount.0])
        .map(drop)
}

/// Deletes it.
pub(super) fn delete_adjustment(
    connection: &Connection,
    account: &AccountId,
    start: Timestamp,
    node: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM adjustments WHERE account = ?1 AND start = ?2 AND node = ?3")?
        .execute(params![account.to_string(), start.0, node])
        .map(drop)
}

/// Deletes the adjustments of the oldest times beyond so many, never those of one account and time. Says which those were.
pub(super) fn delete_oldest_adjustments(
    connection: &Connection,
    most: usize,
    except: Option<(&AccountId, Timestamp)>,
) -> rusqlite::Result<Vec<(String, Timestamp)>> {
    let count: u32 = connection.query_row("SELECT count(*) FROM adjustments", [], |row| row.get(0))?;
    let excess = (count as usize).saturating_sub(most);
    if excess == 0 {
        return Ok(Vec::new());
    }
    let (account, start) = except.map_or((String::new(), 0), |(account, start)| (account.to_string(), start.0));
    connection
        .prepare_cached(
            "DELETE FROM adjustments WHERE (account, start) IN
                (SELECT account, start FROM adjustments WHERE account <> ?1 OR start <> ?2 ORDER BY start, account LIMIT ?3)
             RETURNING account, start",
        )?
        .query_map(params![account, start, i64::try_from(excess).unwrap_or(i64::MAX)], |row| {
            Ok((row.get(0)?, Timestamp(row.get(1)?)))
        })?
        .collect()
}

pub(super) fn delete_mark(connection: &Connection, run: &RunKey) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM marks WHERE agent = ?1 AND run_id = ?2")?
        .execute(params![run.agent.as_str(), run.id.as_str()])
        .map(drop)
}

pub(super) fn insert_agent(
    connection: &Connection,
    agent: &AgentName,
    standing: &AgentStanding,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO agents (name, record) VALUES (?1, ?2)")?
        .execute(params![agent.as_str(), to_json(standing)?])?;
    Ok(())
}

pub(super) fn read_clues(connection: &Connection, most: usize) -> rusqlite::Result<Vec<(RunKey, Vec<u64>)>> {
    let mut rows = connection.prepare(
        "SELECT kills.record, clue FROM kills JOIN kill_clues USING (scope) WHERE is_run = 1
         ORDER BY kills.seq DESC LIMIT ?1",
    )?;
    let read = |row: &Row<'_>| Ok((from_json::<Kill>(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned()));
    let mut found: Vec<(RunKey, Vec<u64>)> = Vec::new();
    for row in rows.query_map([i64::try_from(most).unwrap_or(i64::MAX)], read)? {
        let (kill, clue) = row?;
        let Some((agent, run)) = kill.run() else { continue };
        match found.last_mut().filter(|(key, _)| key.agent == *agent && key.id == *run) {
            Some((_, clues)) => clues.push(clue),
            None => found.push((RunKey { agent: agent.clone(), id: run.clone() }, vec![clue])),
        }
    }
    Ok(found)
}

fn delete_where(connection: &Connection, condition: &str, value: i64) -> rusqlite::Result<Vec<KillScope>> {
    let sql = format!("DELETE FROM kills WHERE {condition} RETURNING scope");
    let gone: Vec<String> =
        connection.prepare_cached(&sql)?.query_map([value], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut delete_clues = connection.prepare_cached("DELETE FROM kill_clues WHERE scope = ?1")?;
    for scope in &gone {
        delete_clues.execute([scope])?;
    }
    Ok(gone.iter().filter_map(|scope| scope.parse().ok()).collect())
}

fn run_key(row: &Row<'_>) -> rusqlite::Result<RunKey> {
    Ok(RunKey { agent: parsed(row, 0, AgentName::parse)?, id: parsed(row, 1, RunId::parse)? })
}

fn parsed<T, E: std::error::Error + Send + Sync + 'static>(
    row: &Row<'_>,
    index: usize,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<T> {
    parse(row.get_ref(index)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    parsed(row, index, |text| serde_json::from_str(text))
}

pub(super) fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
