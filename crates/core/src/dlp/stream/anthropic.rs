//! Events of Anthropic's Messages API.

use super::document::Document;
use super::field::Form;
use super::plan::{End, Plan};

pub(super) fn read(document: &Document<'_>, name: Option<&[u8]>, plan: &mut Plan) {
    let kind = document.text_of(0, "type");
    let index = document.number_of(0, "index").unwrap_or(0);
    match kind.as_deref().or(name).unwrap_or_default() {
        b"content_block_delta" => {
            let Some(delta) = document.member(0, "delta") else { return };
            match document.text_of(delta, "type").as_deref().unwrap_or_default() {
                // Signed: a changed byte makes the provider refuse the next request.
                b"thinking_delta" | b"signature_delta" => plan.skips.push(delta),
                _ => {
                    if let Some(text) = document.filled(delta, "text") {
                        plan.talk(text, index, 0, "text");
                    }
                    if let Some(json) = document.filled(delta, "partial_json") {
                        plan.arguments(json, index, 0, Form::Json, None);
                    }
                }
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
