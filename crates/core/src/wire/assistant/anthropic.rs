//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages-streaming>

use serde_json::{Value, json};

use super::{MODEL, Saying, Spoken, events, with};

pub(super) fn whole(saying: &Saying<'_>) -> Value {
    message(saying, vec![json!({"type": "text", "text": saying.text})], "end_turn".into())
}

pub(super) fn stream(saying: &Saying<'_>) -> Spoken {
    let list = [
        ("message_start", json!({"message": message(saying, Vec::new(), Value::Null)})),
        ("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
        ("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": saying.text}})),
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({"delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 0}}),
        ),
        ("message_stop", with(json!({}), saying)),
    ];
    let named = list.into_iter().map(|(name, mut event)| {
        event["type"] = name.into();
        (Some(name), event)
    });
    events(named.collect(), "")
}

fn message(saying: &Saying<'_>, content: Vec<Value>, stop_reason: Value) -> Value {
    json!({
        "id": format!("msg_{}", saying.id),
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        },
    })
}
