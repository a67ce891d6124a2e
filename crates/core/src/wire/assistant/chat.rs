//! OpenAI Chat: <https://platform.openai.com/docs/api-reference/chat>

use serde_json::{Value, json};

use super::{MODEL, Saying, Spoken, events, seconds, with};

pub(super) fn whole(saying: &Saying<'_>) -> Value {
    let message = json!({"role": "assistant", "content": saying.text, "refusal": null, "annotations": []});
    json!({
        "id": id(saying),
        "object": "chat.completion",
        "created": seconds(saying.at),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        "usage": no_usage(),
    })
}

pub(super) fn stream(saying: &Saying<'_>, with_usage: bool) -> Spoken {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": id(saying),
            "object": "chat.completion.chunk",
            "created": seconds(saying.at),
            "model": MODEL,
            "choices": choices,
        });
        if with_usage {
            chunk["usage"] = usage;
        }
        chunk
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), Value::Null)
    };
    let mut list = vec![
        delta(json!({"role": "assistant", "content": ""}), Value::Null),
        delta(json!({"content": saying.text}), Value::Null),
        delta(json!({}), "stop".into()),
    ];
    if with_usage {
        list.push(chunk(json!([]), no_usage()));
    }
    let last = list.pop().unwrap_or_default();
    list.push(with(last, saying));
    events(list.into_iter().map(|chunk| (None, chunk)).collect(), "data: [DONE]\n\n")
}

pub(super) fn no_usage() -> Value {
    json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
}

fn id(saying: &Saying<'_>) -> String {
    format!("chatcmpl-{}", saying.id)
}
