//! Values of an event that stand for themselves: error messages, texts that are said once more, fields nobody knows.
//!
//! Each text is looked at as a whole and changed in its place. What belongs to the protocol is left alone.

use super::Edit;
use super::arguments::{self, behind};
use super::document::{Document, Kind};
use super::escape;
use super::field::{Content, Form};
use super::watch::{Spot, Stopped};
use crate::dlp::json::is_protocol;

/// Marks of the protocol that only streams have.
const MARKS: [&str; 3] = ["obfuscation", "model_version", "createTime"];
/// What is signed, sealed or a mark of the cache, whatever its form.
const SEALED: [&str; 6] =
    ["signature", "thoughtSignature", "thought_signature", "encrypted_content", "cache_control", "cacheControl"];
/// Below these, names are the client's own, and a name tells something about its value.
const FREE: [&str; 6] = ["args", "arguments", "input", "partialArgs", "metadata", "results"];
/// Names that tell nothing about their text.
const SPEECH: [&str; 16] = [
    "text",
    "content",
    "delta",
    "refusal",
    "transcript",
    "reasoning",
    "reasoning_content",
    "thinking",
    "code",
    "input",
    "output",
    "message",
    "description",
    "instructions",
    "cited_text",
    "summary",
];
/// Where pictures, sound and files stand.
const BASE64: [&str; 6] = ["data", "b64_json", "partial_image_b64", "file_data", "result", "url"];
/// Shorter data is looked at like text.
const BASE64_BYTES: usize = 256;

/// Whether a value and all inside it pass as they are. An id or a word of the protocol must look like one.
pub(super) fn is_untouched(document: &Document<'_>, node: usize) -> bool {
    let Some(text) = document.text(node) else {
        let is_object = document.nodes[node].kind == Kind::Object;
        return is_named(document, node, &SEALED) || (is_object && is_sealed_thinking(document, node));
    };
    let key = document.key(node).unwrap_or_default();
    if is_named(document, node, &BASE64) {
        return is_base64(&text);
    }
    // A mark is held to what is held of an id.
    let key = if is_named(document, node, &MARKS) { &b"id"[..] } else { key };
    is_protocol(key, &text)
}

/// Whether what is inside a value is the client's own.
pub(super) fn is_free(document: &Document<'_>, node: usize) -> bool {
    is_named(document, node, &FREE)
}

/// What must stand in the place of a text, with its quotes left out, or of a number; None when it stays.
pub(super) fn changed(document: &Document<'_>, node: usize, spot: &mut Spot<'_>) -> Result<Option<Vec<u8>>, Stopped> {
    let key = document.key(node).unwrap_or_default();
    let Some(text) = document.text(node) else {
        let (raw, mut number) = (document.raw(node), Vec::new());
        arguments::number(spot, raw, key, 0, &mut number)?;
        return Ok((number != raw).then_some(number));
    };
    let is_json = [&b"arguments"[..], b"partial_json"].contains(&key);
    let context = if is_named(document, node, &SPEECH) { Vec::new() } else { behind(key, b"\"") };
    let mut content = Content::new(if is_json { Form::Json } else { Form::Text }, &context);
    let mut said = Vec::new();
    content.push(spot, &text, true, &mut said)?;
    if said == *text {
        return Ok(None);
    }
    let mut written = Vec::new();
    escape::write(&said, &mut written);
    Ok(Some(written))
}

/// What must stand in the place of a value's name, where `before` are the edits that were made so far.
pub(super) fn renamed(
    document: &Document<'_>,
    node: usize,
    before: &[Edit],
    spot: &mut Spot<'_>,
) -> Result<Option<Edit>, Stopped> {
    let Some(range) = document.key_range(node) else { return Ok(None) };
    let (key, mut said) = (escape::decoded(&document.data[range.clone()]), Vec::new());
    Content::new(Form::Text, b"").push(spot, &key, true, &mut said)?;
    if said == *key {
        return Ok(None);
    }
    // Two names of one object must not become one.
    let is_renamed = |other: &usize| {
        let key = document.key_range(*other).unwrap_or_default();
        before.binary_search_by_key(&key.start, |(range, _)| range.start).is_ok()
    };
    let renamed = document.before(node).filter(is_renamed).count();
    if renamed > 0 && said.starts_with(b"[REDACTED:") {
        said.extend_from_slice(format!("_{}", renamed + 1).as_bytes());
    }
    let mut written = Vec::new();
    escape::write(&said, &mut written);
    Ok(Some((range, written)))
}

fn is_named(document: &Document<'_>, node: usize, names: &[&str]) -> bool {
    document.key(node).is_some_and(|key| names.iter().any(|name| name.as_bytes() == key))
}

/// Thinking that is signed, or that nobody can read.
fn is_sealed_thinking(document: &Document<'_>, node: usize) -> bool {
    match document.text_of(node, "type").as_deref() {
        Some(b"thinking") => document.filled(node, "signature").is_some(),
        Some(b"redacted_thinking") => true,
        _ => false,
    }
}

/// Whether a text is base64 to its end, alone or as a `data:` address.
fn is_base64(text: &[u8]) -> bool {
    let marker = b";base64,";
    let data = match memchr::memmem::find(&text[..text.len().min(BASE64_BYTES)], marker) {
        Some(at) if text.starts_with(b"data:") => &text[at + marker.len()..],
        _ => text,
    };
    let digits = data.strip_suffix(b"==").or_else(|| data.strip_suffix(b"=")).unwrap_or(data);
    data.len() >= BASE64_BYTES && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
}
