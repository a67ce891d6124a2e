//! An event as a row of the database, and back.

use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use serde::Serialize;
use serde::de::value::Error as WordError;
use serde::de::{DeserializeOwned, IntoDeserializer};
use sprag_core::event::{Event, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::StepEvidence;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;

use super::insert::Inserter;

/// The columns that [`read`] takes, in its order.
pub(super) const COLUMNS: &str = "seq, id, at, kind, agent, run_id, step, parent, origin, provider, dialect, path, \
    model, stream, status, ending, total_ms, first_byte_ms, overhead_us, input, cache_read, cache_write, \
    cache_write_1h, output, reasoning, audio_input, audio_output, estimated, cost_nano, unpriced, finish, tools, \
    blocked, block_reason, error, act, verdict, shadow, key, would_block, dlp, \
    level, evidence, saved_nano";

/// Inserts an event. False if its id is known already.
pub(super) fn insert(connection: &Connection, event: &Event) -> rusqlite::Result<bool> {
    Inserter::new(connection)?.one(event)
}

/// Reads [`COLUMNS`]: the row's number and the event.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<(i64, Event)> {
    let run = match row.get_ref(5)?.as_str_or_null()? {
        None => None,
        Some(_) => Some(RunRecord {
            id: run_id(row, 5)?,
            step: row.get(6)?,
            parent: optional_run_id(row, 7)?,
            origin: from_word(row, 8)?,
        }),
    };
    let tools: Option<String> = row.get(31)?;
    let event = Event {
        id: row.get(1)?,
        at: Timestamp(row.get(2)?),
        kind: from_word(row, 3)?,
        agent: agent_name(row, 4)?,
        key: row.get(38)?,
        run,
        provider: row.get(9)?,
        dialect: from_word(row, 10)?,
        path: row.get(11)?,
        model: row.get(12)?,
        stream: row.get(13)?,
        status: row.get(14)?,
        ending: from_word(row, 15)?,
        total_ms: row.get(16)?,
        first_byte_ms: row.get(17)?,
        overhead_us: row.get(18)?,
        usage: read_usage(row)?,
        cost: row.get::<_, Option<i64>>(28)?.map(NanoUsd),
        unpriced: row.get(29)?,
        finish: row.get(30)?,
        tools: tools.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        blocked: row.get(32)?,
        block_reason: row.get(33)?,
        would_block: from_json(row, 39)?.unwrap_or_default(),
        dlp: from_json(row, 40)?,
        level: level(row, 41)?,
        evidence: evidence(row, 42)?,
        saved: row.get::<_, Option<i64>>(43)?.map(NanoUsd),
        error: row.get(34)?,
        act: from_json(row, 35)?,
        verdict: from_json(row, 36)?,
        shadow: from_json(row, 37)?,
    };
    Ok((row.get(0)?, event))
}

/// A value as JSON text.
pub(super) fn json(value: Option<&impl Serialize>) -> Option<String> {
    value.and_then(|value| serde_json::to_string(value).ok())
}

/// A value that was written as JSON text. One that cannot be read any more is left out: the rest of the row is true.
fn from_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get_ref(index)?.as_str_or_null()?.and_then(|text| serde_json::from_str(text).ok()))
}

/// How near its threshold a detector was.
pub(super) fn level(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<f32>> {
    Ok(row.get::<_, Option<f64>>(index)?.map(|level| level as f32))
}

/// What detection saw; None where it did not look, or where the event is older than that.
pub(super) fn evidence(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<StepEvidence>> {
    Ok(row.get_ref(index)?.as_blob_or_null()?.and_then(StepEvidence::from_bytes))
}

/// The word that an enum's value is written as.
pub(super) fn word(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.retain(|c| c != '"');
    text
}

/// The enum's value that a column's word stands for.
pub(super) fn from_word<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(index)?.as_str()?;
    let value: Result<T, WordError> = T::deserialize(text.into_deserializer());
    value.map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub(super) fn agent_name(row: &Row<'_>, index: usize) -> rusqlite::Result<AgentName> {
    AgentName::parse(row.get_ref(index)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub(super) fn run_id(row: &Row<'_>, index: usize) -> rusqlite::Result<RunId> {
    RunId::parse(row.get_ref(index)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub(super) fn optional_run_id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<RunId>> {
    match row.get_ref(index)?.as_str_or_null()? {
        None => Ok(None),
        Some(_) => run_id(row, index).map(Some),
    }
}

/// A count as SQLite stores it; what a provider claims beyond that is cut off.
pub(super) fn clamp(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as it was stored.
pub(super) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

fn read_usage(row: &Row<'_>) -> rusqlite::Result<Option<Usage>> {
    let Some(estimated) = row.get::<_, Option<bool>>(27)? else { return Ok(None) };
    Ok(Some(Usage {
        input: count(row, 19)?,
        cache_read: count(row, 20)?,
        cache_write: count(row, 21)?,
        cache_write_1h: count(row, 22)?,
        output: count(row, 23)?,
        reasoning: count(row, 24)?,
        audio_input: count(row, 25)?,
        audio_output: count(row, 26)?,
        estimated,
    }))
}
