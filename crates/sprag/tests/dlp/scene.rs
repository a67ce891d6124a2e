//! What the tests say, and how they read the answers.

use serde_json::Value;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Reply, Script};

use crate::configured::Configured;
use crate::wire::path;

pub(crate) const KEY: &str = "sk-1234567890abcdef";
pub(crate) const HIDDEN: &str = "[REDACTED:OPENAI_KEY]";
pub(crate) const MAIL: &str = "anna.kowalska@acme-motors.com";

/// A Sprag whose provider says what the headers of a request tell it to.
pub(crate) async fn place(config: &str) -> Configured {
    Configured::start_with(Script::new(), config, true).await
}

/// The same with a provider that says one thing.
pub(crate) async fn place_saying(reply: Reply, config: &str) -> Configured {
    Configured::start_with(Script::always(reply), config, true).await
}

/// A call with a body as it is.
pub(crate) fn call(place: &Configured, dialect: Dialect, is_stream: bool, body: impl Into<bytes::Bytes>) -> Call {
    client::post(place.sprag.url(path(dialect, is_stream)), body).header("content-type", "application/json")
}

/// The same for an agent.
pub(crate) fn call_of(place: &Configured, agent: &str, dialect: Dialect, is_stream: bool, body: &Value) -> Call {
    client::post_json(place.sprag.url(&format!("/agents/{agent}{}", path(dialect, is_stream))), body)
}

pub(crate) fn text(answer: &Whole) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The last body that the provider got.
pub(crate) fn sent(place: &Configured) -> String {
    String::from_utf8(place.provider.requests().last().unwrap().body.to_vec()).unwrap()
}

/// The arguments of the first tool call of an answer.
pub(crate) fn arguments(dialect: Dialect, is_stream: bool, answer: &Whole) -> Value {
    let events: Vec<Value> = match is_stream {
        true => answer.events().iter().filter_map(|event| serde_json::from_str(&event.data).ok()).collect(),
        false => vec![answer.json()],
    };
    let first = |place: &str| events.iter().find_map(|event| event.pointer(place)).cloned().unwrap_or_default();
    let joined = |place: &str, kind: Option<&str>| -> String {
        let fits = |event: &&Value| kind.is_none_or(|kind| event["type"] == kind);
        events.iter().filter(fits).filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
    };
    let written = match (dialect, is_stream) {
        (Dialect::OpenaiChat, true) => joined("/choices/0/delta/tool_calls/0/function/arguments", None),
        (Dialect::OpenaiChat, false) => joined("/choices/0/message/tool_calls/0/function/arguments", None),
        (Dialect::OpenaiResponses, true) => {
            let pieces = joined("/delta", Some("response.function_call_arguments.delta"));
            let whole = joined("/arguments", Some("response.function_call_arguments.done"));
            assert_eq!(pieces, whole, "the pieces and the whole say the same");
            let last = events.last().unwrap();
            let items = last.pointer("/response/output").and_then(Value::as_array).unwrap();
            let item = items.iter().find(|item| item["type"] == "function_call").unwrap();
            assert_eq!(item["arguments"], whole);
            whole
        }
        (Dialect::OpenaiResponses, false) => {
            let items = first("/output");
            let item = items.as_array().unwrap().iter().find(|item| item["type"] == "function_call").cloned();
            item.unwrap()["arguments"].as_str().unwrap().to_owned()
        }
        (Dialect::Anthropic, true) => joined("/delta/partial_json", None),
        (Dialect::Anthropic, false) => {
            let blocks = first("/content");
            let block = blocks.as_array().unwrap().iter().find(|block| block["type"] == "tool_use").cloned();
            return block.unwrap()["input"].clone();
        }
        (Dialect::Gemini, _) => {
            let parts = events.iter().filter_map(|event| event.pointer("/candidates/0/content/parts"));
            let mut parts = parts.filter_map(Value::as_array).flatten();
            return parts.find_map(|part| part.pointer("/functionCall/args")).cloned().unwrap();
        }
        _ => panic!("no tools in {dialect:?}"),
    };
    serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"))
}

/// What an answer says.
#[derive(Debug, PartialEq)]
pub(crate) struct Spoken {
    pub(crate) text: String,
    pub(crate) finish: String,
    /// Sprag's own object.
    pub(crate) about: Value,
}

/// Reads an answer whose form must be the one of its dialect.
pub(crate) fn spoken(dialect: Dialect, is_stream: bool, answer: &Whole) -> Spoken {
    assert_eq!((answer.status.as_u16(), &answer.broken), (200, &None), "{}", text(answer));
    let mut data: Vec<String> = match is_stream {
        true => answer.events().into_iter().map(|event| event.data).collect(),
        false => vec![text(answer)],
    };
    if is_stream && matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions) {
        assert_eq!(data.pop().as_deref(), Some("[DONE]"));
    }
    let events: Vec<Value> = data.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let last = events.last().unwrap();
    let all = |place: &str| -> String {
        events.iter().filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
    };
    let (said, finish) = match (dialect, is_stream) {
        (Dialect::OpenaiChat, true) => (all("/choices/0/delta/content"), all("/choices/0/finish_reason")),
        (Dialect::OpenaiChat, false) => (all("/choices/0/message/content"), all("/choices/0/finish_reason")),
        (Dialect::OpenaiCompletions, _) => (all("/choices/0/text"), all("/choices/0/finish_reason")),
        (Dialect::OpenaiResponses, true) => {
            let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            let of = |kind: &str, place: &str| -> String {
                let events = events.iter().filter(|event| event["type"] == kind);
                events.filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
            };
            let pieces = of("response.output_text.delta", "/delta");
            assert_eq!(of("response.output_text.done", "/text"), pieces);
            assert_eq!(of("response.completed", "/response/output/0/content/0/text"), pieces);
            (pieces, of("response.completed", "/response/status"))
        }
        (Dialect::OpenaiResponses, false) => (all("/output/0/content/0/text"), all("/status")),
        (Dialect::Anthropic, true) => (all("/delta/text"), all("/delta/stop_reason")),
        (Dialect::Anthropic, false) => (all("/content/0/text"), all("/stop_reason")),
        (Dialect::Gemini, _) => (all("/candidates/0/content/parts/0/text"), all("/candidates/0/finishReason")),
        _ => panic!("nobody speaks in {dialect:?}"),
    };
    let inner = last.pointer("/response/sprag").unwrap_or(&Value::Null);
    let about = if inner.is_null() { last["sprag"].clone() } else { inner.clone() };
    Spoken { text: said, finish, about }
}
