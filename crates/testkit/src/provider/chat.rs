//! OpenAI Chat Completions: <https://platform.openai.com/docs/api-reference/chat>

use super::turn::{Conversation, Turn, items, text_of};
use crate::delivery::{Content, Event};
use crate::reply::ToolCall;
use serde_json::{Value, json};
use sprag_core::usage::Usage;

/// Seconds of 2023-11-14: a date that never changes.
pub(super) const CREATED: u64 = 1_700_000_000;

/// Top-level fields that the API knows, with those of providers shaped like it that common clients send.
pub(super) const FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(super) fn read(body: &Value) -> Conversation {
    let mut heard = Conversation::of(body);
    for message in items(&body["messages"]) {
        match message["role"].as_str() {
            Some("assistant") => heard.turns += 1,
            Some("user" | "tool" | "function") => heard.hear(text_of(&message["content"])),
            _ => {}
        }
    }
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    heard.tools = items(&body["tools"]).iter().filter_map(name).collect();
    heard
}

/// How many choices the client wants; each gets a little of its own text.
pub(super) fn choices(body: &Value) -> u64 {
    body["n"].as_u64().unwrap_or(1).clamp(1, 128)
}

pub(super) fn json(turn: &Turn<'_>) -> Value {
    let choice = |index: u64| {
        let mut message =
            json!({"role": "assistant", "content": null, "refusal": turn.reply.refusal, "annotations": []});
        if turn.reply.refusal.is_none() && turn.speaks() {
            message["content"] = turn.choice_text(index).into();
        }
        if !turn.reply.reasoning.is_empty() {
            message["reasoning_content"] = turn.reply.reasoning.as_str().into();
        }
        if !turn.reply.tool_calls.is_empty() {
            let calls = turn.reply.tool_calls.iter().enumerate();
            message["tool_calls"] = calls.map(|(place, call)| whole_call(turn, place, call)).collect();
        }
        json!({"index": index, "message": message, "logprobs": null, "finish_reason": finish(turn)})
    };
    let list: Vec<Value> = (0..choices(turn.body)).map(choice).collect();
    let mut answer = frame(turn, "chat.completion", list);
    if let Some(usage) = turn.usage {
        answer["usage"] = usage_json(usage);
    }
    answer
}

pub(super) fn events(turn: &Turn<'_>) -> Content {
    let asked = turn.body["stream_options"]["include_usage"].as_bool().unwrap_or(false);
    let chunk = |list: Vec<Value>| {
        let mut chunk = frame(turn, "chat.completion.chunk", list);
        if asked {
            chunk["usage"] = Value::Null;
        }
        chunk
    };
    let mut chunks = Vec::new();
    for index in 0..choices(turn.body) {
        for delta in deltas(turn, index) {
            chunks.push(chunk(vec![json!({"index": index, "delta": delta, "logprobs": null, "finish_reason": null})]));
        }
        let end = json!({"index": index, "delta": {}, "logprobs": null, "finish_reason": finish(turn)});
        chunks.push(chunk(vec![end]));
    }
    if let Some(usage) = turn.usage.filter(|_| asked) {
        let mut last = chunk(Vec::new());
        last["usage"] = usage_json(usage);
        chunks.push(last);
    }
    data_events(chunks)
}

/// Unnamed events with `[DONE]` at the end.
pub(super) fn data_events(chunks: Vec<Value>) -> Content {
    let mut list: Vec<Event> = chunks.iter().map(|chunk| Event { name: None, data: chunk.to_string() }).collect();
    list.push(Event { name: None, data: "[DONE]".into() });
    Content::Events { list, crlf: false }
}

/// Usage as Chat and the old Completions API report it.
pub(super) fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": usage.audio_input},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": usage.audio_output,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn deltas(turn: &Turn<'_>, index: u64) -> Vec<Value> {
    let mut list = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    list.extend(turn.deltas(&turn.reply.reasoning).into_iter().map(|part| json!({"reasoning_content": part})));
    match &turn.reply.refusal {
        Some(refusal) => list.extend(turn.deltas(refusal).into_iter().map(|part| json!({"refusal": part}))),
        None => list.extend(turn.deltas(&turn.choice_text(index)).into_iter().map(|part| json!({"content": part}))),
    }
    for (place, call) in turn.reply.tool_calls.iter().enumerate() {
        let mut head = whole_call(turn, place, call);
        head["index"] = place.into();
        head["function"]["arguments"] = "".into();
        list.push(json!({"tool_calls": [head]}));
        for part in turn.deltas(&call.arguments) {
            list.push(json!({"tool_calls": [{"index": place, "function": {"arguments": part}}]}));
        }
    }
    list
}

fn whole_call(turn: &Turn<'_>, place: usize, call: &ToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": turn.call_id("call", place), "type": "function", "function": function})
}

fn finish<'a>(turn: &'a Turn<'_>) -> &'a str {
    let usual = if turn.reply.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    turn.reply.finish.as_deref().unwrap_or(usual)
}

fn frame(turn: &Turn<'_>, object: &str, choices: Vec<Value>) -> Value {
    json!({
        "id": format!("chatcmpl-mock{:06}", turn.number),
        "object": object,
        "created": CREATED,
        "model": turn.model,
        "service_tier": "default",
        "system_fingerprint": "fp_mock",
        "choices": choices,
    })
}
