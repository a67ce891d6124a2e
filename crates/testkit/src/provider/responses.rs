//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses>

use super::chat::CREATED;
use super::turn::{Conversation, Turn, items, text_of};
use crate::delivery::{Content, Event};
use crate::reply::ToolCall;
use serde_json::{Value, json};
use sprag_core::usage::Usage;

pub(super) const FIELDS: &[&str] = &[
    "background",
    "client_metadata",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

pub(super) fn read(body: &Value) -> Conversation {
    let mut heard = Conversation::of(body);
    heard.previous = body["previous_response_id"].as_str().map(str::to_owned);
    if let Some(text) = body["input"].as_str() {
        heard.hear(text.into());
    }
    let mut model_speaks = false;
    for item in items(&body["input"]) {
        // Several items of the model in a row are one turn of it.
        let is_input = match (item["type"].as_str(), item["role"].as_str()) {
            (_, Some("user")) => true,
            (_, Some("system" | "developer")) => continue,
            (Some(kind), None) => kind.ends_with("_output"),
            _ => false,
        };
        if is_input {
            let content = if item["output"].is_null() { &item["content"] } else { &item["output"] };
            heard.hear(text_of(content));
        } else if !model_speaks {
            heard.turns += 1;
        }
        model_speaks = !is_input;
    }
    heard.tools = items(&body["tools"]).iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    heard
}

pub(super) fn id(number: u64) -> String {
    format!("resp_mock{number:06}")
}

pub(super) fn json(turn: &Turn<'_>) -> Value {
    let status = turn.reply.finish.as_deref().unwrap_or("completed");
    response(turn, status, output(turn), turn.usage)
}

pub(super) fn events(turn: &Turn<'_>) -> Content {
    let mut stream = Numbered { list: Vec::new() };
    for name in ["response.created", "response.in_progress"] {
        stream.push(name, json!({"response": response(turn, "in_progress", Vec::new(), None)}));
    }
    for (place, item) in output(turn).into_iter().enumerate() {
        match item["type"].as_str() {
            Some("reasoning") => stream.reasoning(turn, place, &item),
            Some("message") => stream.message(turn, place, &item),
            _ => stream.call(turn, place, &item),
        }
    }
    let last = match turn.reply.finish.as_deref() {
        Some("incomplete") => "response.incomplete",
        Some("failed") => "response.failed",
        _ => "response.completed",
    };
    stream.push(last, json!({"response": json(turn)}));
    Content::Events { list: stream.list, crlf: false }
}

struct Numbered {
    list: Vec<Event>,
}

impl Numbered {
    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = name.into();
        data["sequence_number"] = self.list.len().into();
        self.list.push(Event { name: Some(name.into()), data: data.to_string() });
    }

    fn message(&mut self, turn: &Turn<'_>, place: usize, item: &Value) {
        let mut empty = item.clone();
        empty["content"] = json!([]);
        self.added(place, empty);
        let part = &item["content"][0];
        let (kind, key) = if part["type"] == "refusal" { ("refusal", "refusal") } else { ("output_text", "text") };
        let at = json!({"item_id": item["id"], "output_index": place, "content_index": 0});
        let mut blank = part.clone();
        blank[key] = "".into();
        self.push("response.content_part.added", with(&at, "part", blank));
        for delta in turn.deltas(part[key].as_str().unwrap_or("")) {
            self.push(&format!("response.{kind}.delta"), with(&at, "delta", delta.into()));
        }
        self.push(&format!("response.{kind}.done"), with(&at, key, part[key].clone()));
        self.push("response.content_part.done", with(&at, "part", part.clone()));
        self.push("response.output_item.done", json!({"output_index": place, "item": item}));
    }

    fn call(&mut self, turn: &Turn<'_>, place: usize, item: &Value) {
        let mut empty = item.clone();
        empty["arguments"] = "".into();
        self.added(place, empty);
        let at = json!({"item_id": item["id"], "output_index": place});
        for delta in turn.deltas(item["arguments"].as_str().unwrap_or("")) {
            self.push("response.function_call_arguments.delta", with(&at, "delta", delta.into()));
        }
        let done = with(&at, "arguments", item["arguments"].clone());
        self.push("response.function_call_arguments.done", with(&done, "name", item["name"].clone()));
        self.push("response.output_item.done", json!({"output_index": place, "item": item}));
    }

    fn reasoning(&mut self, turn: &Turn<'_>, place: usize, item: &Value) {
        let mut empty = item.clone();
        empty["summary"] = json!([]);
        self.added(place, empty);
        let at = json!({"item_id": item["id"], "output_index": place, "summary_index": 0});
        let part = &item["summary"][0];
        self.push(
            "response.reasoning_summary_part.added",
            with(&at, "part", json!({"type": "summary_text", "text": ""})),
        );
        for delta in turn.deltas(&turn.reply.reasoning) {
            self.push("response.reasoning_summary_text.delta", with(&at, "delta", delta.into()));
        }
        self.push("response.reasoning_summary_text.done", with(&at, "text", part["text"].clone()));
        self.push("response.reasoning_summary_part.done", with(&at, "part", part.clone()));
        self.push("response.output_item.done", json!({"output_index": place, "item": item}));
    }

    fn added(&mut self, place: usize, mut item: Value) {
        if !item["status"].is_null() {
            item["status"] = "in_progress".into();
        }
        self.push("response.output_item.added", json!({"output_index": place, "item": item}));
    }
}

fn with(base: &Value, key: &str, value: Value) -> Value {
    let mut data = base.clone();
    data[key] = value;
    data
}

fn output(turn: &Turn<'_>) -> Vec<Value> {
    let mut list = Vec::new();
    if !turn.reply.reasoning.is_empty() {
        let summary = json!([{"type": "summary_text", "text": turn.reply.reasoning}]);
        list.push(json!({"id": turn.call_id("rs", 0), "type": "reasoning", "summary": summary}));
    }
    let part = match &turn.reply.refusal {
        Some(refusal) => json!({"type": "refusal", "refusal": refusal}),
        None => json!({"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}),
    };
    if turn.reply.refusal.is_some() || turn.speaks() {
        let id = turn.call_id("msg", 0);
        list.push(json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}));
    }
    let call = |(place, call): (usize, &ToolCall)| {
        json!({
            "id": turn.call_id("fc", place),
            "type": "function_call",
            "status": "completed",
            "call_id": turn.call_id("call", place),
            "name": call.name,
            "arguments": call.arguments,
        })
    };
    list.extend(turn.reply.tool_calls.iter().enumerate().map(call));
    list
}

fn response(turn: &Turn<'_>, status: &str, output: Vec<Value>, usage: Option<Usage>) -> Value {
    let asked = |key: &str, default: Value| match &turn.body[key] {
        Value::Null => default,
        value => value.clone(),
    };
    let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": id(turn.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": incomplete,
        "instructions": turn.body["instructions"],
        "max_output_tokens": turn.body["max_output_tokens"],
        "model": turn.model,
        "output": output,
        "parallel_tool_calls": asked("parallel_tool_calls", true.into()),
        "previous_response_id": turn.body["previous_response_id"],
        "prompt_cache_key": turn.body["prompt_cache_key"],
        "reasoning": {"effort": null, "summary": null},
        "service_tier": "default",
        "store": asked("store", true.into()),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": asked("tool_choice", "auto".into()),
        "tools": asked("tools", json!([])),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage.map(usage_json),
        "user": null,
        "metadata": {},
    })
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens(),
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total_tokens(),
    })
}
