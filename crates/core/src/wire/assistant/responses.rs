//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses-streaming>

use serde_json::{Value, json};

use super::{MODEL, Saying, Spoken, events, seconds, with};

pub(super) fn whole(saying: &Saying<'_>) -> Value {
    response(saying, "completed", vec![item(saying, "completed", vec![part(saying.text)])], no_usage())
}

pub(super) fn stream(saying: &Saying<'_>) -> Spoken {
    let begun = || json!({"response": response(saying, "in_progress", Vec::new(), Value::Null)});
    let in_part = |key: &str, value: Value| {
        let mut event = json!({"item_id": item_id(saying), "output_index": 0, "content_index": 0});
        event[key] = value;
        event
    };
    let logged = |key: &str| {
        let mut event = in_part(key, saying.text.into());
        event["logprobs"] = json!([]);
        event
    };
    let done = item(saying, "completed", vec![part(saying.text)]);
    let list = [
        ("response.created", begun()),
        ("response.in_progress", begun()),
        ("response.output_item.added", json!({"output_index": 0, "item": item(saying, "in_progress", Vec::new())})),
        ("response.content_part.added", in_part("part", part(""))),
        ("response.output_text.delta", logged("delta")),
        ("response.output_text.done", logged("text")),
        ("response.content_part.done", in_part("part", part(saying.text))),
        ("response.output_item.done", json!({"output_index": 0, "item": done})),
        ("response.completed", with(json!({"response": whole(saying)}), saying)),
    ];
    let numbered = list.into_iter().enumerate().map(|(number, (name, mut event))| {
        event["type"] = name.into();
        event["sequence_number"] = number.into();
        (Some(name), event)
    });
    events(numbered.collect(), "")
}

fn response(saying: &Saying<'_>, status: &str, output: Vec<Value>, usage: Value) -> Value {
    json!({
        "id": format!("resp_{}", saying.id),
        "object": "response",
        "created_at": seconds(saying.at),
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": false,
        "previous_response_id": null,
        "temperature": null,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "truncation": "disabled",
        "usage": usage,
    })
}

fn item(saying: &Saying<'_>, status: &str, content: Vec<Value>) -> Value {
    json!({"id": item_id(saying), "type": "message", "role": "assistant", "status": status, "content": content})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn item_id(saying: &Saying<'_>) -> String {
    format!("msg_{}", saying.id)
}

fn no_usage() -> Value {
    json!({
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    })
}
