//! What a dialect reads from a request and what it needs in order to write the answer.

use crate::reply::{Reply, Reported};
use serde_json::Value;
use sprag_core::usage::Usage;

/// What was said in a request, free of any dialect.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    pub(super) model: String,
    pub(super) stream: bool,
    /// The last user or tool text.
    pub(super) last: String,
    /// All user and tool texts.
    pub(super) said: String,
    /// How often the model has spoken.
    pub(super) turns: usize,
    pub(super) tools: Vec<String>,
    /// The earlier answer that this request continues.
    pub(super) previous: Option<String>,
}

impl Conversation {
    pub(super) fn of(body: &Value) -> Conversation {
        Conversation {
            model: body["model"].as_str().unwrap_or("mock-model").into(),
            stream: body["stream"].as_bool().unwrap_or(false),
            ..Conversation::default()
        }
    }

    pub(super) fn hear(&mut self, text: String) {
        self.said.push_str(&text);
        self.said.push('\n');
        self.last = text;
    }
}

/// One answer about to be written.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// Number of the request; all ids derive from it.
    pub(super) number: u64,
    pub(super) model: &'a str,
    pub(super) body: &'a Value,
    pub(super) reply: &'a Reply,
    /// The text, echo resolved.
    pub(super) text: &'a str,
    /// What is reported, if anything is.
    pub(super) usage: Option<Usage>,
}

impl Turn<'_> {
    /// The deltas in which a stream says `text`.
    pub(super) fn deltas(&self, text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(self.reply.delta_chars.max(1)).map(|part| part.iter().collect()).collect()
    }

    /// The text of the choice at `index`; only the first is said as scripted.
    pub(super) fn choice_text(&self, index: u64) -> String {
        match index {
            0 => self.text.into(),
            _ => format!("{} (choice {index})", self.text),
        }
    }

    /// The arguments of a call as a JSON object; broken ones become text in `_raw`.
    pub(super) fn arguments_value(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|_| serde_json::json!({ "_raw": text }))
    }

    pub(super) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{:06}_{index}", self.number)
    }

    /// Whether there is anything to say besides tool calls.
    pub(super) fn speaks(&self) -> bool {
        !self.text.is_empty() || self.reply.tool_calls.is_empty()
    }
}

/// All text in a message's content: strings, text parts, tool results.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(part) => {
            ["text", "content", "output"].iter().find_map(|key| part.get(*key)).map_or(String::new(), text_of)
        }
        _ => String::new(),
    }
}

/// A list, or nothing.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A token is four bytes here; good enough to be plausible, and always the same.
pub(super) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4).max(1) as u64
}

/// What the answer reports as used.
pub(super) fn report(reply: &Reply, text: &str, request_bytes: usize, choices: u64) -> Option<Usage> {
    match reply.usage {
        Reported::Absent => None,
        Reported::Given(usage) => Some(usage),
        Reported::Counted => {
            let calls: usize = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
            let refusal = reply.refusal.as_ref().map_or(0, String::len);
            let reasoning = if reply.reasoning.is_empty() { 0 } else { tokens(reply.reasoning.len()) };
            let said = tokens(text.len() + calls + refusal).saturating_mul(choices);
            Some(Usage { input: tokens(request_bytes), output: said + reasoning, reasoning, ..Usage::default() })
        }
    }
}
