//! Gemini: <https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse>

use serde_json::{Value, json};

use super::{MODEL, Saying};

/// The whole answer, which is also the only element of a stream.
pub(super) fn whole(saying: &Saying<'_>) -> Value {
    let content = json!({"role": "model", "parts": [{"text": saying.text}]});
    json!({
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        "modelVersion": MODEL,
        "responseId": saying.id,
    })
}
