//! Embeddings, counts of tokens, and the list of models in three dialects.

use super::chat::CREATED;
use super::turn::{Conversation, Turn, text_of};
use serde_json::{Value, json};
use sprag_core::wire::Family;

pub(super) const EMBEDDING_FIELDS: &[&str] = &["dimensions", "encoding_format", "input", "model", "user"];

const DIMENSIONS: u64 = 8;

const MODELS: [&str; 3] = ["mock-small", "mock-medium", "mock-large"];

pub(super) fn read_embeddings(body: &Value) -> Conversation {
    let mut heard = Conversation::of(body);
    heard.hear(text_of(&body["input"]));
    heard
}

/// One vector for each input; `base64` is the default of OpenAI's own SDKs.
pub(super) fn embeddings(turn: &Turn<'_>) -> Value {
    let count = match &turn.body["input"] {
        // A list of numbers is one input, already cut into tokens.
        Value::Array(list) if list.iter().all(|item| !item.is_number()) => list.len(),
        _ => 1,
    };
    let dimensions = turn.body["dimensions"].as_u64().unwrap_or(DIMENSIONS).clamp(1, 4096);
    let vector = |place: usize| -> Value {
        let numbers: Vec<f32> = (0..dimensions).map(|at| ((at + place as u64) % 16) as f32 / 16.0).collect();
        match turn.body["encoding_format"].as_str() {
            Some("base64") => base64(&numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>()).into(),
            _ => numbers.into(),
        }
    };
    let data: Vec<Value> =
        (0..count).map(|place| json!({"object": "embedding", "index": place, "embedding": vector(place)})).collect();
    let mut answer = json!({"object": "list", "data": data, "model": turn.model});
    if let Some(usage) = turn.usage {
        answer["usage"] = json!({"prompt_tokens": usage.prompt_tokens(), "total_tokens": usage.prompt_tokens()});
    }
    answer
}

/// The answer to a request for a count of tokens.
pub(super) fn count(family: Family, turn: &Turn<'_>) -> Value {
    let count = turn.usage.map_or(0, |usage| usage.prompt_tokens());
    match family {
        Family::Gemini => json!({"totalTokens": count}),
        _ => json!({"input_tokens": count}),
    }
}

/// All models, or the one that the path names.
pub(super) fn models(family: Family, path: &str) -> Value {
    if let Some((_, name)) = path.rsplit_once("/models/") {
        return model(family, name);
    }
    let list: Vec<Value> = MODELS.iter().map(|name| model(family, name)).collect();
    match family {
        Family::Openai => json!({"object": "list", "data": list}),
        Family::Anthropic => {
            json!({"data": list, "has_more": false, "first_id": MODELS[0], "last_id": MODELS[MODELS.len() - 1]})
        }
        Family::Gemini => json!({"models": list}),
    }
}

fn model(family: Family, name: &str) -> Value {
    match family {
        Family::Openai => json!({"id": name, "object": "model", "created": CREATED, "owned_by": "mock"}),
        Family::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": "2023-11-14T00:00:00Z"})
        }
        Family::Gemini => json!({
            "name": format!("models/{name}"),
            "version": "1",
            "displayName": name,
            "inputTokenLimit": 1_000_000,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = (word >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(ALPHABET[digit as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        assert_eq!([base64(b"foob"), base64(b"fooba"), base64(b"foobar")], ["Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
