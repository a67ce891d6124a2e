//! Events of Anthropic's Messages API.

use super::document::{Document, Kind};
use super::field::Form;
use super::plan::{End, Plan};
use super::whole;

pub(super) fn read(document: &Document<'_>, name: Option<&[u8]>, plan: &mut Plan) {
    let kind = document.text_of(0, "type");
    let index = document.number_of(0, "index").unwrap_or(0);
    match kind.as_deref().or(name).unwrap_or_default() {
        b"content_block_delta" => {
            let Some(delta) = document.member(0, "delta") else { return };
            match document.text_of(delta, "type").as_deref().unwrap_or_default() {
                // Signed: a changed byte makes the provider refuse the next request.
                b"thinking_delta" | b"signature_delta" => plan.skips.push(delta),
                _ => read_delta(document, index, delta, plan),
            }
        }
        b"content_block_start" => {
            let Some(block) = document.member(0, "content_block") else { return };
            match document.text_of(block, "type").as_deref().unwrap_or_default() {
                b"thinking" | b"redacted_thinking" => plan.skips.push(block),
                b"text" => {
                    if let Some(text) = document.filled(block, "text") {
                        plan.talk(text, index, 0, "text");
                    }
                }
                _ => {}
            }
        }
        b"content_block_stop" => plan.ends.push(End::Group(index)),
        b"message_delta" | b"message_stop" | b"error" => plan.ends.push(End::All),
        _ => {}
    }
}

/// Whatever its name, a text may go on.
fn read_delta(document: &Document<'_>, index: u64, delta: usize, plan: &mut Plan) {
    for member in document.children(delta) {
        let is_text = document.nodes[member].kind == Kind::Text && !document.raw(member).is_empty();
        let Some(name) = document.key(member).and_then(|key| std::str::from_utf8(key).ok()) else { continue };
        if !is_text || whole::is_untouched(document, member) {
            continue;
        }
        match name {
            "partial_json" => plan.arguments(member, index, 0, Form::Json, None),
            _ => plan.talk(member, index, 0, name),
        }
    }
}
