//! An event as ClickHouse tells it.

use serde::Deserialize;
use serde::de::value::Error as WordError;
use serde::de::{DeserializeOwned, IntoDeserializer};
use sprag_core::event::{Ending, Event, EventKind, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::StepEvidence;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::Dialect;

/// The columns that an [`EventRow`] takes.
pub(super) const COLUMNS: &str = "id, at, kind, agent, run_id, step, parent, origin, provider, dialect, path, model, \
    stream, status, ending, total_ms, first_byte_ms, overhead_us, input, cache_read, cache_write, cache_write_1h, \
    output, reasoning, audio_input, audio_output, estimated, cost_nano, unpriced, finish, tools, blocked, block_reason, \
    error, act, verdict, shadow, key, would_block, dlp, level, hex(evidence) AS evidence_hex, saved_nano";

/// A row of `events`. Empty texts stand for nothing where the table has no NULL.
#[derive(Deserialize)]
pub(super) struct EventRow {
    pub(super) id: String,
    pub(super) at: i64,
    kind: EventKind,
    agent: AgentName,
    run_id: String,
    step: u32,
    parent: String,
    origin: String,
    provider: String,
    dialect: Dialect,
    path: String,
    model: Option<String>,
    stream: bool,
    status: u16,
    ending: Ending,
    total_ms: u32,
    first_byte_ms: Option<u32>,
    overhead_us: u32,
    input: i64,
    cache_read: i64,
    cache_write: i64,
    cache_write_1h: i64,
    output: i64,
    reasoning: i64,
    audio_input: i64,
    audio_output: i64,
    estimated: Option<bool>,
    cost_nano: Option<i64>,
    unpriced: bool,
    finish: Option<String>,
    tools: String,
    blocked: bool,
    block_reason: Option<String>,
    error: Option<String>,
    act: String,
    verdict: String,
    shadow: String,
    key: String,
    would_block: String,
    dlp: String,
    level: Option<f32>,
    evidence_hex: String,
    saved_nano: Option<i64>,
}

impl EventRow {
    /// The event. A part that cannot be read any more is left out: the rest of the row is true.
    pub(super) fn event(self) -> Event {
        let usage = self.estimated.map(|estimated| Usage {
            input: count(self.input),
            cache_read: count(self.cache_read),
            cache_write: count(self.cache_write),
            cache_write_1h: count(self.cache_write_1h),
            output: count(self.output),
            reasoning: count(self.reasoning),
            audio_input: count(self.audio_input),
            audio_output: count(self.audio_output),
            estimated,
        });
        let run = RunId::parse(&self.run_id).ok().zip(word(&self.origin)).map(|(id, origin)| RunRecord {
            id,
            step: self.step,
            parent: RunId::parse(&self.parent).ok(),
            origin,
        });
        Event {
            id: self.id,
            at: Timestamp(self.at),
            kind: self.kind,
            agent: self.agent,
            key: Some(self.key).filter(|key| !key.is_empty()),
            run,
            provider: self.provider,
            dialect: self.dialect,
            path: self.path,
            model: self.model,
            stream: self.stream,
            status: self.status,
            ending: self.ending,
            total_ms: self.total_ms,
            first_byte_ms: self.first_byte_ms,
            overhead_us: self.overhead_us,
            usage,
            cost: self.cost_nano.map(NanoUsd),
            unpriced: self.unpriced,
            finish: self.finish,
            tools: json(&self.tools).unwrap_or_default(),
            blocked: self.blocked,
            block_reason: self.block_reason,
            verdict: json(&self.verdict),
            shadow: json(&self.shadow),
            would_block: json(&self.would_block).unwrap_or_default(),
            dlp: json(&self.dlp),
            level: self.level,
            evidence: evidence(&self.evidence_hex),
            saved: self.saved_nano.map(NanoUsd),
            error: self.error,
            act: json(&self.act),
        }
    }
}

/// What detection saw, from its bytes in hexadecimal; None where it did not look.
pub(super) fn evidence(hex: &str) -> Option<StepEvidence> {
    if hex.is_empty() {
        return None;
    }
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
    bytes.as_deref().and_then(StepEvidence::from_bytes)
}

/// A value that was written as JSON text; None for an empty one.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Option<T> {
    if text.is_empty() { None } else { serde_json::from_str(text).ok() }
}

/// The enum's value that a word stands for.
fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    let value: Result<T, WordError> = T::deserialize(text.into_deserializer());
    value.ok()
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
