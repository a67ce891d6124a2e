//! A refusal as an answer of the assistant: a whole, ordinary answer that calls no tool and ends the turn.
//!
//! An agent that gets it stops in good order, where an error might make it try again. Every dialect has it in the two
//! forms that its SDKs read, whole and as a stream. It uses no tokens and names the model `sprag-policy`, so that
//! nobody takes it for a model's words.

mod anthropic;
mod chat;
mod completions;
mod gemini;
mod responses;

use serde_json::{Map, Value};

use super::call::Call;
use super::dialect::Dialect;
use crate::time::Timestamp;

/// The model that such an answer names.
pub const MODEL: &str = "sprag-policy";

/// The form in which the caller reads an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The wire format.
    pub dialect: Dialect,
    /// As a stream.
    pub is_stream: bool,
    /// A chat stream that ends with its usage.
    pub with_usage: bool,
    /// A Gemini stream that is one JSON list instead of events.
    pub is_list: bool,
}

/// What is said.
#[derive(Clone, Copy, Debug)]
pub struct Saying<'a> {
    /// Told apart from other answers by this; the dialect's prefix is put before it.
    pub id: &'a str,
    /// When.
    pub at: Timestamp,
    /// The text.
    pub text: &'a str,
    /// Fields that are added to the answer, or to the last event of a stream.
    pub fields: &'a Map<String, Value>,
}

/// An answer as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Wanted {
    /// What a call asks for; `query` is the one of its URL.
    #[must_use]
    pub fn of(call: &Call<'_>, query: Option<&str>) -> Wanted {
        let is_sse = query.is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
        Wanted {
            dialect: call.dialect,
            is_stream: call.is_stream,
            with_usage: call.stream_options.asks_for_usage(),
            is_list: call.dialect == Dialect::Gemini && call.is_stream && !is_sse,
        }
    }
}

/// The answer in the form that is wanted; None where the dialect has no assistant.
#[must_use]
pub fn speak(wanted: Wanted, saying: &Saying<'_>) -> Option<Spoken> {
    use Dialect::{Anthropic, Gemini, Opaque, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses};
    Some(match (wanted.dialect, wanted.is_stream) {
        (OpenaiChat, false) => whole(chat::whole(saying), saying),
        (OpenaiChat, true) => chat::stream(saying, wanted.with_usage),
        (OpenaiCompletions, false) => whole(completions::whole(saying), saying),
        (OpenaiCompletions, true) => completions::stream(saying, wanted.with_usage),
        (OpenaiResponses, false) => whole(responses::whole(saying), saying),
        (OpenaiResponses, true) => responses::stream(saying),
        (Anthropic, false) => whole(anthropic::whole(saying), saying),
        (Anthropic, true) => anthropic::stream(saying),
        (Gemini, false) => whole(gemini::whole(saying), saying),
        (Gemini, true) if wanted.is_list => whole(Value::Array(vec![with(gemini::whole(saying), saying)]), saying),
        (Gemini, true) => events(vec![(None, with(gemini::whole(saying), saying))], ""),
        (OpenaiEmbeddings | Opaque, _) => return None,
    })
}

fn whole(answer: Value, saying: &Saying<'_>) -> Spoken {
    Spoken { content_type: "application/json", body: with(answer, saying).to_string().into_bytes() }
}

/// An object with the fields of the saying; one that it has stays its own.
fn with(mut object: Value, saying: &Saying<'_>) -> Value {
    if let Some(map) = object.as_object_mut() {
        for (name, value) in saying.fields {
            map.entry(name).or_insert_with(|| value.clone());
        }
    }
    object
}

/// Events one after the other, then `end` as it is.
fn events(list: Vec<(Option<&str>, Value)>, end: &str) -> Spoken {
    let mut body = String::new();
    for (name, data) in list {
        if let Some(name) = name {
            body.push_str(&format!("event: {name}\n"));
        }
        body.push_str(&format!("data: {data}\n\n"));
    }
    body.push_str(end);
    Spoken { content_type: "text/event-stream; charset=utf-8", body: body.into_bytes() }
}

fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1000)
}

#[cfg(test)]
mod tests;
