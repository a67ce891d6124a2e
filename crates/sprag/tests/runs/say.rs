//! Answers in each dialect, as JSON and as streams, and what a client sends back of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::stage::Play;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// An id that looks like a provider's and is never given twice.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}{:06}Qx7Kd2mPz9Lw4", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A chat answer's message: text, or calls of `read` with these paths.
pub(crate) fn chat_message(text: &str, paths: &[&str]) -> Value {
    let call = |path: &&str| {
        let arguments = json!({"path": path}).to_string();
        json!({"id": unique("call_"), "type": "function", "function": {"name": "read", "arguments": arguments}})
    };
    let mut message = json!({"role": "assistant", "content": text});
    if !paths.is_empty() {
        message["tool_calls"] = paths.iter().map(call).collect();
    }
    message
}

pub(crate) fn chat_choices(messages: &[&Value]) -> Play {
    let choice =
        |(index, message): (usize, &&Value)| json!({"index": index, "message": message, "finish_reason": "stop"});
    let choices: Vec<Value> = messages.iter().enumerate().map(choice).collect();
    Play::json(&json!({"id": unique("chatcmpl-"), "object": "chat.completion", "model": "gpt-4o-2024-08-06",
        "choices": choices, "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}))
}

pub(crate) fn chat(message: &Value) -> Play {
    chat_choices(&[message])
}

/// The same as a stream, its arguments in two pieces.
pub(crate) fn chat_stream(message: &Value) -> Play {
    let id = unique("chatcmpl-");
    let chunk = |delta: Value, finish: Value, usage: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        let chunk = json!({"id": id, "object": "chat.completion.chunk", "model": "gpt-4o-2024-08-06",
            "choices": if usage.is_null() { choices } else { json!([]) }, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let mut out = chunk(json!({"role": "assistant", "content": message["content"]}), Value::Null, Value::Null);
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let (first, second) = arguments.split_at(arguments.len() / 2);
        let head = json!({"index": index, "id": call["id"], "type": "function",
            "function": {"name": call["function"]["name"], "arguments": first}});
        out += &chunk(json!({"tool_calls": [head]}), Value::Null, Value::Null);
        let rest = json!({"index": index, "function": {"arguments": second}});
        out += &chunk(json!({"tool_calls": [rest]}), Value::Null, Value::Null);
    }
    out += &chunk(json!({}), json!("stop"), Value::Null);
    out += &chunk(json!({}), Value::Null, json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}));
    Play::sse(out + "data: [DONE]\n\n")
}

pub(crate) fn tool_result(message: &Value, index: usize, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": message["tool_calls"][index]["id"], "content": text})
}

/// An Anthropic answer with these blocks.
pub(crate) fn anthropic(id: &str, blocks: &[Value]) -> Play {
    Play::json(&json!({"id": id, "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
        "content": blocks, "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 10}}))
}

pub(crate) fn anthropic_stream(id: &str, blocks: &[Value]) -> Play {
    let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
    let mut out = event(
        "message_start",
        json!({"type": "message_start", "message": {"id": id, "type": "message",
        "role": "assistant", "model": "claude-haiku-4-5-20251001", "content": [], "stop_reason": null,
        "usage": {"input_tokens": 100, "output_tokens": 1}}}),
    );
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str().unwrap() {
            "text" => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]})),
            "thinking" => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": block["thinking"]}),
            ),
            _ => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            ),
        };
        out += &event(
            "content_block_start",
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        );
        out += &event("content_block_delta", json!({"type": "content_block_delta", "index": index, "delta": delta}));
        out += &event("content_block_stop", json!({"type": "content_block_stop", "index": index}));
    }
    out += &event(
        "message_delta",
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}}),
    );
    Play::sse(out + &event("message_stop", json!({"type": "message_stop"})))
}

/// A Responses answer with these output items.
pub(crate) fn responses(id: &str, output: &[Value]) -> Play {
    Play::json(&response(id, output))
}

pub(crate) fn responses_stream(id: &str, output: &[Value]) -> Play {
    let mut number = 0;
    let mut event = |name: &str, field: &str, value: Value| {
        number += 1;
        format!("event: {name}\ndata: {}\n\n", json!({"type": name, "sequence_number": number - 1, field: value}))
    };
    let begun =
        json!({"id": id, "object": "response", "status": "in_progress", "model": "gpt-4.1-2025-04-14", "output": []});
    let mut out = event("response.created", "response", begun);
    for item in output {
        out += &event("response.output_item.done", "item", item.clone());
    }
    Play::sse(out + &event("response.completed", "response", response(id, output)))
}

fn response(id: &str, output: &[Value]) -> Value {
    json!({"id": id, "object": "response", "status": "completed", "model": "gpt-4.1-2025-04-14", "output": output,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}})
}

pub(crate) fn gemini(parts: &[Value]) -> Play {
    Play::json(
        &json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
        "modelVersion": "gemini-2.5-flash", "responseId": unique("")}),
    )
}

pub(crate) fn gemini_stream(parts: &[Value]) -> Play {
    let chunk = String::from_utf8(gemini(parts).body.to_vec()).unwrap();
    Play::sse(format!("data: {chunk}\r\n\r\n"))
}

pub(crate) fn completion(text: &str) -> Play {
    Play::json(&json!({"id": unique("cmpl-"), "object": "text_completion", "model": "gpt-3.5-turbo-instruct",
        "choices": [{"index": 0, "text": text, "finish_reason": "stop", "logprobs": null}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}))
}
