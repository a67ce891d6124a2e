//! OpenAI's older completions: <https://platform.openai.com/docs/api-reference/completions>

use serde_json::{Value, json};

use super::chat::no_usage;
use super::{MODEL, Saying, Spoken, events, seconds, with};

pub(super) fn whole(saying: &Saying<'_>) -> Value {
    let mut answer = piece(saying, saying.text, "stop".into());
    answer["usage"] = no_usage();
    answer
}

pub(super) fn stream(saying: &Saying<'_>, with_usage: bool) -> Spoken {
    let mut list = vec![piece(saying, saying.text, Value::Null), piece(saying, "", "stop".into())];
    if with_usage {
        let mut usage = whole(saying);
        usage["choices"] = json!([]);
        list.push(usage);
    }
    let last = list.pop().unwrap_or_default();
    list.push(with(last, saying));
    events(list.into_iter().map(|piece| (None, piece)).collect(), "data: [DONE]\n\n")
}

fn piece(saying: &Saying<'_>, text: &str, finish: Value) -> Value {
    json!({
        "id": format!("cmpl-{}", saying.id),
        "object": "text_completion",
        "created": seconds(saying.at),
        "model": MODEL,
        "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}],
    })
}
