//! Hashes of what a value says, whatever its form.

use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The hash of an item that was given to the model. Ids and states that a client adds to its own items do not count,
/// nor does the word `message` that it may leave out.
pub(super) fn canonical_item(raw: &RawValue) -> u64 {
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return xxh3_64(raw.get().as_bytes()) };
    if let Some(item) = value.as_object_mut() {
        item.remove("id");
        item.remove("status");
        if item.get("type").and_then(Value::as_str) == Some("message") {
            item.remove("type");
        }
    }
    canonical(&value)
}

/// The hash that an item has which holds nothing but this text of the user.
pub(super) fn user_text(text: &str) -> u64 {
    canonical(&serde_json::json!({"role": "user", "content": text}))
}

/// The hash of a value: key order, nulls, cache marks and "a string or one text block" do not matter.
pub(super) fn canonical(value: &Value) -> u64 {
    match value {
        Value::Null => 2,
        Value::Bool(b) => 3 + u64::from(*b),
        Value::Number(n) => xxh3_64_with_seed(n.to_string().as_bytes(), 5),
        Value::String(s) => xxh3_64_with_seed(s.as_bytes(), 6),
        Value::Array(list) => match list.as_slice() {
            [Value::Object(only)] if is_plain_text(only) => only.get("text").map_or(7, canonical),
            list => list.iter().fold(7, |hash, v| mix(hash, canonical(v))),
        },
        // The map is sorted by key.
        Value::Object(map) => map
            .iter()
            .filter(|(key, v)| !v.is_null() && key.as_str() != "cache_control")
            .fold(8, |hash, (key, v)| mix(mix(hash, xxh3_64(key.as_bytes())), canonical(v))),
    }
}

/// `{"type":"text","text":"…"}`, with or without a cache mark.
fn is_plain_text(map: &serde_json::Map<String, Value>) -> bool {
    map.get("text").is_some_and(Value::is_string)
        && map.iter().all(|(key, v)| match key.as_str() {
            "type" => matches!(v.as_str(), Some("text" | "input_text")),
            "text" | "cache_control" => true,
            _ => v.is_null(),
        })
}

pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.to_le_bytes());
    bytes[8..].copy_from_slice(&b.to_le_bytes());
    xxh3_64(&bytes)
}
