//! What a stop looks like in each dialect, as its SDKs read it.

use serde_json::{Value, json};
use sprag_core::wire::{Dialect, Family};
use sprag_testkit::client::Whole;

/// An error of Sprag, taken out of the shape of its dialect.
#[derive(Debug)]
pub(crate) struct Told {
    /// The error object.
    pub(crate) error: Value,
    /// Sprag's code.
    pub(crate) code: String,
    /// What stands next to the error.
    pub(crate) beside: Value,
}

/// An answer of the assistant, taken out of the shape of its dialect.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) model: String,
    pub(crate) text: String,
    pub(crate) finish: String,
    pub(crate) tokens: u64,
    /// The object that Sprag adds.
    pub(crate) about: Value,
}

/// Reads an error, whose form must be the one of the dialect.
pub(crate) fn error(dialect: Dialect, answer: &Whole) -> Told {
    assert_eq!(answer.header("content-type"), "application/json", "SDKs raise before a stream begins");
    let mut beside = answer.json();
    let error = beside.as_object_mut().unwrap().remove("error").unwrap();
    let code = match dialect.family().unwrap() {
        Family::Openai => {
            assert_eq!(error.get("param"), Some(&Value::Null), "{error}");
            error["code"].clone()
        }
        Family::Anthropic => {
            assert_eq!(beside.as_object_mut().unwrap().remove("type"), Some(json!("error")));
            error["code"].clone()
        }
        Family::Gemini => {
            assert_eq!(error["code"], answer.status.as_u16());
            let status = match answer.status.as_u16() {
                401 => "UNAUTHENTICATED",
                402 | 429 => "RESOURCE_EXHAUSTED",
                _ => "PERMISSION_DENIED",
            };
            assert_eq!(error["status"], status);
            let details = &error["details"][0];
            let reason = error["type"].as_str().unwrap().to_ascii_uppercase();
            assert_eq!((&details["reason"], &details["domain"]), (&json!(reason), &json!("sprag")));
            details["metadata"]["code"].clone()
        }
    };
    Told { code: code.as_str().unwrap().to_owned(), error, beside }
}

/// Reads an answer, whose form must be the one of the dialect.
pub(crate) fn assistant(dialect: Dialect, is_stream: bool, answer: &Whole) -> Said {
    if !is_stream {
        assert_eq!(answer.header("content-type"), "application/json");
        return whole(dialect, &answer.json());
    }
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    let mut events: Vec<String> = answer.events().into_iter().map(|event| event.data).collect();
    if matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions) {
        assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    }
    let events: Vec<Value> = events.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let last = events.last().unwrap();
    let pieces = |place: &str| -> String {
        events.iter().filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
    };
    match dialect {
        Dialect::OpenaiChat => Said {
            model: word(last, "/model"),
            text: pieces("/choices/0/delta/content"),
            finish: pieces("/choices/0/finish_reason"),
            tokens: tokens(last, "/usage/total_tokens"),
            about: last["sprag"].clone(),
        },
        Dialect::OpenaiCompletions => Said {
            model: word(last, "/model"),
            text: pieces("/choices/0/text"),
            finish: pieces("/choices/0/finish_reason"),
            tokens: tokens(last, "/usage/total_tokens"),
            about: last["sprag"].clone(),
        },
        Dialect::OpenaiResponses => {
            assert_eq!(last["type"], "response.completed");
            let said = whole(dialect, &last["response"]);
            assert_eq!(said.text, pieces("/delta"));
            // Sprag's own object stands in the event or in the answer.
            let about = if said.about.is_null() { last["sprag"].clone() } else { said.about };
            Said { about, ..said }
        }
        Dialect::Anthropic => Said {
            model: word(&events[0], "/message/model"),
            text: pieces("/delta/text"),
            finish: pieces("/delta/stop_reason"),
            tokens: tokens(&events[0], "/message/usage/input_tokens"),
            about: last["sprag"].clone(),
        },
        Dialect::Gemini => whole(dialect, last),
        Dialect::OpenaiEmbeddings | Dialect::Opaque => panic!("nobody speaks here"),
    }
}

fn whole(dialect: Dialect, answer: &Value) -> Said {
    let (model, text, finish, used) = match dialect {
        Dialect::OpenaiChat => {
            assert_eq!(answer.pointer("/choices/0/message/tool_calls"), None);
            ("/model", "/choices/0/message/content", "/choices/0/finish_reason", "/usage/total_tokens")
        }
        Dialect::OpenaiCompletions => ("/model", "/choices/0/text", "/choices/0/finish_reason", "/usage/total_tokens"),
        Dialect::OpenaiResponses => ("/model", "/output/0/content/0/text", "/status", "/usage/total_tokens"),
        Dialect::Anthropic => ("/model", "/content/0/text", "/stop_reason", "/usage/output_tokens"),
        Dialect::Gemini => {
            let finish = "/candidates/0/finishReason";
            ("/modelVersion", "/candidates/0/content/parts/0/text", finish, "/usageMetadata/totalTokenCount")
        }
        Dialect::OpenaiEmbeddings | Dialect::Opaque => panic!("nobody speaks here"),
    };
    Said {
        model: word(answer, model),
        text: word(answer, text),
        finish: word(answer, finish),
        tokens: tokens(answer, used),
        about: answer["sprag"].clone(),
    }
}

fn word(answer: &Value, place: &str) -> String {
    answer.pointer(place).and_then(Value::as_str).unwrap_or_else(|| panic!("{place} in {answer}")).to_owned()
}

fn tokens(answer: &Value, place: &str) -> u64 {
    answer.pointer(place).and_then(Value::as_u64).unwrap_or_else(|| panic!("{place} in {answer}"))
}
