//! The old OpenAI Completions API: <https://platform.openai.com/docs/api-reference/completions>

use super::chat::{CREATED, choices, data_events, usage_json};
use super::turn::{Conversation, Turn, text_of};
use crate::delivery::Content;
use serde_json::{Value, json};

pub(super) const FIELDS: &[&str] = &[
    "best_of",
    "echo",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_tokens",
    "model",
    "n",
    "presence_penalty",
    "prompt",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "suffix",
    "temperature",
    "top_p",
    "user",
];

pub(super) fn read(body: &Value) -> Conversation {
    let mut heard = Conversation::of(body);
    heard.hear(text_of(&body["prompt"]));
    heard
}

pub(super) fn json(turn: &Turn<'_>) -> Value {
    let choice = |index: u64| part(index, &turn.choice_text(index), Some(finish(turn)));
    let mut answer = frame(turn, (0..choices(turn.body)).map(choice).collect());
    if let Some(usage) = turn.usage {
        answer["usage"] = usage_json(usage);
    }
    answer
}

pub(super) fn events(turn: &Turn<'_>) -> Content {
    let asked = turn.body["stream_options"]["include_usage"].as_bool().unwrap_or(false);
    let mut chunks = Vec::new();
    for index in 0..choices(turn.body) {
        for delta in turn.deltas(&turn.choice_text(index)) {
            chunks.push(frame(turn, vec![part(index, &delta, None)]));
        }
        chunks.push(frame(turn, vec![part(index, "", Some(finish(turn)))]));
    }
    if asked {
        chunks.iter_mut().for_each(|chunk| chunk["usage"] = Value::Null);
    }
    if let Some(usage) = turn.usage.filter(|_| asked) {
        let mut last = frame(turn, Vec::new());
        last["usage"] = usage_json(usage);
        chunks.push(last);
    }
    data_events(chunks)
}

fn part(index: u64, text: &str, finish: Option<&str>) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

fn finish<'a>(turn: &'a Turn<'_>) -> &'a str {
    turn.reply.finish.as_deref().unwrap_or("stop")
}

fn frame(turn: &Turn<'_>, choices: Vec<Value>) -> Value {
    json!({
        "id": format!("cmpl-mock{:06}", turn.number),
        "object": "text_completion",
        "created": CREATED,
        "model": turn.model,
        "system_fingerprint": "fp_mock",
        "choices": choices,
    })
}
