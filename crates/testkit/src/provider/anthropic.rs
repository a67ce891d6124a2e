//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages>

use super::turn::{Conversation, Turn, items, text_of};
use crate::delivery::{Content, Event};
use serde_json::{Value, json};
use sprag_core::usage::Usage;

pub(super) const FIELDS: &[&str] = &[
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];

pub(super) fn read(body: &Value) -> Conversation {
    let mut heard = Conversation::of(body);
    heard.previous = body["thread"]["previous_message_id"].as_str().map(str::to_owned);
    for message in items(&body["messages"]) {
        match message["role"].as_str() {
            Some("assistant") => heard.turns += 1,
            Some("user") => heard.hear(text_of(&message["content"])),
            _ => {}
        }
    }
    heard.tools = items(&body["tools"]).iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    heard
}

pub(super) fn id(number: u64) -> String {
    format!("msg_mock{number:06}")
}

pub(super) fn json(turn: &Turn<'_>) -> Value {
    let mut message = message(turn, turn.usage.map(|usage| usage_json(usage, usage.output)));
    message["content"] = blocks(turn).into_iter().map(|block| block.whole).collect();
    message["stop_reason"] = stop_reason(turn).into();
    message
}

pub(super) fn events(turn: &Turn<'_>) -> Content {
    let mut list = Vec::new();
    let mut push = |name: &str, mut data: Value| {
        data["type"] = name.into();
        list.push(Event { name: Some(name.into()), data: data.to_string() });
    };
    push("message_start", json!({"message": message(turn, turn.usage.map(|usage| usage_json(usage, 1)))}));
    for (index, block) in blocks(turn).into_iter().enumerate() {
        push("content_block_start", json!({"index": index, "content_block": block.start}));
        if index == 0 {
            push("ping", json!({}));
        }
        for delta in block.deltas {
            push("content_block_delta", json!({"index": index, "delta": delta}));
        }
        push("content_block_stop", json!({"index": index}));
    }
    let mut end = json!({"delta": {"stop_reason": stop_reason(turn), "stop_sequence": null}});
    if let Some(usage) = turn.usage {
        end["usage"] = json!({"output_tokens": usage.output});
    }
    push("message_delta", end);
    push("message_stop", json!({}));
    Content::Events { list, crlf: false }
}

/// One content block, whole and in the pieces of a stream.
struct Block {
    whole: Value,
    start: Value,
    deltas: Vec<Value>,
}

fn blocks(turn: &Turn<'_>) -> Vec<Block> {
    let mut list = Vec::new();
    let reasoning = &turn.reply.reasoning;
    if !reasoning.is_empty() {
        let signature = format!("sig{:06}", turn.number);
        let parts = turn.deltas(reasoning).into_iter().map(|part| json!({"type": "thinking_delta", "thinking": part}));
        list.push(Block {
            whole: json!({"type": "thinking", "thinking": reasoning, "signature": signature}),
            start: json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas: parts.chain([json!({"type": "signature_delta", "signature": signature})]).collect(),
        });
    }
    let text = turn.reply.refusal.as_deref().unwrap_or(turn.text);
    if !text.is_empty() || turn.reply.tool_calls.is_empty() {
        let parts = turn.deltas(text).into_iter().map(|part| json!({"type": "text_delta", "text": part}));
        list.push(Block {
            whole: json!({"type": "text", "text": text}),
            start: json!({"type": "text", "text": ""}),
            deltas: parts.collect(),
        });
    }
    for (place, call) in turn.reply.tool_calls.iter().enumerate() {
        let block = |input: Value| json!({"type": "tool_use", "id": turn.call_id("toolu", place), "name": call.name, "input": input});
        // The real API opens every tool block with an empty piece.
        let parts = [String::new()].into_iter().chain(turn.deltas(&call.arguments));
        list.push(Block {
            whole: block(Turn::arguments_value(&call.arguments)),
            start: block(json!({})),
            deltas: parts.map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect(),
        });
    }
    list
}

fn stop_reason<'a>(turn: &'a Turn<'_>) -> &'a str {
    let usual = match (&turn.reply.refusal, turn.reply.tool_calls.is_empty()) {
        (Some(_), _) => "refusal",
        (None, true) => "end_turn",
        (None, false) => "tool_use",
    };
    turn.reply.finish.as_deref().unwrap_or(usual)
}

fn message(turn: &Turn<'_>, usage: Option<Value>) -> Value {
    let mut message = json!({
        "id": id(turn.number),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    });
    if let Some(usage) = usage {
        message["usage"] = usage;
    }
    message
}

fn usage_json(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write.saturating_add(usage.cache_write_1h),
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}
