//! A stream that has begun and ends in a refusal.

use serde_json::{Map, Value, json};

use super::{Refusal, add_block, add_fields, body};
use crate::wire::client::Client;
use crate::wire::dialect::{Dialect, Family};

/// The code at which Codex does not ask again. Any other it takes for a passing trouble of the network.
const CODEX_GIVES_UP: &str = "invalid_prompt";

/// The event that ends a stream in error; nothing where the stream's form is not known.
///
/// `last_sequence_number` is the one of the last event passed on in a Responses stream; the error takes the next.
#[must_use]
pub fn stream_error(dialect: Dialect, client: Client, refusal: &Refusal, last_sequence_number: Option<u64>) -> Vec<u8> {
    let (name, data) = match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::OpenaiEmbeddings => {
            (None, body(Family::Openai, refusal))
        }
        Dialect::OpenaiResponses => {
            let number = last_sequence_number.map_or(0, |last| last.saturating_add(1));
            let is_failure = client == Client::Codex && refusal.reason.is_policy();
            let (name, event) = if is_failure { responses_failed(refusal) } else { responses_error(refusal) };
            (Some(name), numbered(name, number, event))
        }
        Dialect::Anthropic => (Some("error"), body(Family::Anthropic, refusal)),
        Dialect::Gemini => (None, body(Family::Gemini, refusal)),
        Dialect::Opaque => return Vec::new(),
    };
    let head = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    [head.as_bytes(), b"data: ", &data, b"\n\n"].concat()
}

/// The documented event, and the error once more as an object: the SDKs raise only where they find that.
fn responses_error(refusal: &Refusal) -> (&'static str, Map<String, Value>) {
    let mut event = Map::new();
    event.insert("code".into(), refusal.code.into());
    event.insert("message".into(), refusal.message.as_str().into());
    event.insert("param".into(), Value::Null);
    let mut error = event.clone();
    error.insert("type".into(), refusal.reason.as_str().into());
    add_fields(&mut error, refusal);
    event.insert("error".into(), error.into());
    add_block(&mut event, refusal);
    ("error", event)
}

/// The answer as failed.
fn responses_failed(refusal: &Refusal) -> (&'static str, Map<String, Value>) {
    let error = json!({"code": CODEX_GIVES_UP, "message": refusal.message});
    let mut event = Map::new();
    event.insert("response".into(), json!({"object": "response", "status": "failed", "error": error, "output": []}));
    add_block(&mut event, refusal);
    ("response.failed", event)
}

/// The refusal's own fields never replace one of the dialect.
fn numbered(name: &str, sequence_number: u64, mut event: Map<String, Value>) -> Vec<u8> {
    event.insert("type".into(), name.into());
    event.insert("sequence_number".into(), sequence_number.into());
    Value::Object(event).to_string().into_bytes()
}
