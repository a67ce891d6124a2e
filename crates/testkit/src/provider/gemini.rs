//! Gemini generateContent: <https://ai.google.dev/api/generate-content>

use super::turn::{Conversation, Turn, items};
use crate::delivery::{Content, Event};
use serde_json::{Value, json};
use sprag_core::usage::Usage;

/// Both spellings: the service reads camel case and snake case.
pub(super) const FIELDS: &[&str] = &[
    "cachedContent",
    "cached_content",
    "contents",
    "generateContentRequest",
    "generationConfig",
    "generation_config",
    "labels",
    "model",
    "safetySettings",
    "safety_settings",
    "serviceTier",
    "store",
    "systemInstruction",
    "system_instruction",
    "toolConfig",
    "tool_config",
    "tools",
];

pub(super) fn read(body: &Value, path: &str) -> Conversation {
    let mut heard = Conversation { model: model_in(path), ..Conversation::default() };
    heard.stream = path.contains(":streamGenerateContent");
    for content in items(&body["contents"]) {
        if content["role"] == "model" {
            heard.turns += 1;
        } else {
            let texts: Vec<String> = items(&content["parts"]).iter().map(part_text).collect();
            heard.hear(texts.join("\n"));
        }
    }
    for tool in items(&body["tools"]) {
        let declared = ["functionDeclarations", "function_declarations"].iter().flat_map(|key| items(&tool[*key]));
        heard.tools.extend(declared.filter_map(|function| function["name"].as_str().map(str::to_owned)));
    }
    heard
}

pub(super) fn choices(body: &Value) -> u64 {
    body["generationConfig"]["candidateCount"].as_u64().unwrap_or(1).clamp(1, 8)
}

pub(super) fn json(turn: &Turn<'_>) -> Value {
    let candidate = |index: u64| {
        let mut parts = thoughts(&turn.reply.reasoning);
        let text = turn.reply.refusal.clone().unwrap_or_else(|| turn.choice_text(index));
        if turn.speaks() || turn.reply.refusal.is_some() {
            parts.push(json!({"text": text}));
        }
        parts.extend(calls(turn));
        candidate(turn, index, parts, true)
    };
    let list: Vec<Value> = (0..choices(turn.body)).map(candidate).collect();
    frame(turn, list, turn.usage)
}

/// The answers of a stream, as events or as the elements of an array.
pub(super) fn stream(turn: &Turn<'_>, query: &str) -> Content {
    let text = turn.reply.refusal.as_deref().unwrap_or(turn.text);
    let mut steps: Vec<Vec<Value>> = Vec::new();
    steps.extend(turn.deltas(&turn.reply.reasoning).iter().map(|part| thoughts(part)));
    steps.extend(turn.deltas(text).into_iter().map(|part| vec![json!({"text": part})]));
    if !turn.reply.tool_calls.is_empty() {
        steps.push(calls(turn));
    }
    if steps.is_empty() {
        steps.push(vec![json!({"text": ""})]);
    }
    let last = steps.len() - 1;
    let chunk = |(place, parts): (usize, Vec<Value>)| {
        // The count grows with the answer, and only the last number is the true one.
        let so_far = turn.usage.map(|usage| match place == last {
            true => usage,
            false => Usage {
                output: usage.reasoning + (usage.output.saturating_sub(usage.reasoning)) * place as u64 / last as u64,
                ..usage
            },
        });
        frame(turn, vec![candidate(turn, 0, parts, place == last)], so_far).to_string()
    };
    let chunks = steps.into_iter().enumerate().map(chunk);
    match query.split('&').any(|pair| pair == "alt=sse") {
        true => Content::Events { list: chunks.map(|data| Event { name: None, data }).collect(), crlf: true },
        false => Content::Array(chunks.collect()),
    }
}

/// `NAME` of `…/models/NAME:method`.
fn model_in(path: &str) -> String {
    let name = path.rsplit_once("models/").map_or(path, |(_, rest)| rest);
    name.split(':').next().unwrap_or(name).into()
}

fn part_text(part: &Value) -> String {
    match (&part["text"], &part["functionResponse"]["response"]) {
        (Value::String(text), _) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, response) => response.to_string(),
    }
}

fn thoughts(text: &str) -> Vec<Value> {
    match text {
        "" => Vec::new(),
        _ => vec![json!({"text": text, "thought": true})],
    }
}

fn calls(turn: &Turn<'_>) -> Vec<Value> {
    let mut list: Vec<Value> = Vec::new();
    for call in &turn.reply.tool_calls {
        list.push(json!({"functionCall": {"name": call.name, "args": Turn::arguments_value(&call.arguments)}}));
    }
    // Only the first call of a turn is signed.
    if let Some(first) = list.first_mut() {
        first["thoughtSignature"] = format!("c2lnbmF0dXJl{:04}", turn.number % 10_000).into();
    }
    list
}

fn candidate(turn: &Turn<'_>, index: u64, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": index});
    if is_last {
        let usual = if turn.reply.refusal.is_some() { "SAFETY" } else { "STOP" };
        candidate["finishReason"] = turn.reply.finish.as_deref().unwrap_or(usual).into();
    }
    candidate
}

fn frame(turn: &Turn<'_>, candidates: Vec<Value>, usage: Option<Usage>) -> Value {
    let mut answer = json!({
        "candidates": candidates,
        "modelVersion": turn.model,
        "responseId": format!("mock{:06}", turn.number),
    });
    if let Some(usage) = usage {
        answer["usageMetadata"] = usage_json(usage);
    }
    answer
}

fn usage_json(usage: Usage) -> Value {
    let prompt = usage.prompt_tokens();
    let mut report = json!({
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.total_tokens(),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
    });
    if usage.cache_read > 0 {
        report["cachedContentTokenCount"] = usage.cache_read.into();
    }
    if usage.reasoning > 0 {
        report["thoughtsTokenCount"] = usage.reasoning.into();
    }
    report
}
