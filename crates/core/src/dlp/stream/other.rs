//! Events of streams that are no dialect: answers that are fetched later, APIs that nobody knows yet.
//!
//! Most have the shape of a dialect, and are read like it from the event on that shows it. Of the rest every text
//! below a `delta` goes on with the next one in its place. What stands elsewhere is looked at by itself.

use super::document::{Document, Kind};
use super::field::Form;
use super::plan::{End, Plan, hash};
use super::whole;
use crate::limits::STREAM_FIELDS;
use crate::wire::Dialect;

/// What tells apart texts that stand in the same place.
const MARKS: [&str; 5] = ["id", "item_id", "index", "output_index", "content_index"];

/// The dialect whose shape an event has.
pub(super) fn spoken(document: &Document<'_>, name: Option<&[u8]>) -> Option<Dialect> {
    let kind = document.text_of(0, "type");
    let kind = kind.as_deref().or(name).unwrap_or_default();
    let is_list = |name| document.member(0, name).is_some_and(|list| document.nodes[list].kind == Kind::Array);
    match kind {
        b"message_start" | b"content_block_start" | b"content_block_delta" => Some(Dialect::Anthropic),
        _ if kind.starts_with(b"response.") => Some(Dialect::OpenaiResponses),
        _ if is_list("choices") => Some(Dialect::OpenaiChat),
        _ if is_list("candidates") => Some(Dialect::Gemini),
        _ => None,
    }
}

pub(super) fn read(document: &Document<'_>, plan: &mut Plan) {
    let marks: Vec<u8> = MARKS.iter().filter_map(|name| document.member(0, name)).fold(Vec::new(), |mut all, mark| {
        all.extend_from_slice(document.raw(mark));
        all.push(b' ');
        all
    });
    let group = hash(&marks);
    let (mut at, mut delta_end) = (0, 0);
    while at < document.nodes.len() && plan.parts.len() < STREAM_FIELDS {
        let node = &document.nodes[at];
        if document.key(at) == Some(b"delta") {
            delta_end = delta_end.max(node.after);
        }
        if at < delta_end && whole::is_untouched(document, at) {
            at = node.after;
            continue;
        }
        if at < delta_end && node.kind == Kind::Text && !document.raw(at).is_empty() {
            match document.key(at) {
                Some(b"arguments" | b"partial_json") => {
                    plan.arguments(at, group, place(document, at), Form::Json, None);
                }
                _ => plan.talk(at, group, place(document, at), "delta"),
            }
        }
        at += 1;
    }
    if plan.parts.is_empty() {
        plan.ends.push(End::All);
    }
}

/// The names and numbers that lead to a value.
fn place(document: &Document<'_>, node: usize) -> u64 {
    let mut steps = Vec::new();
    let mut at = node;
    while let Some(parent) = document.nodes[at].parent {
        match document.key(at) {
            Some(key) => steps.extend_from_slice(key),
            // Lists say which of their elements goes on, or have one.
            None => steps.extend(document.number_of(at, "index").unwrap_or_default().to_le_bytes()),
        }
        steps.push(b'/');
        at = parent;
    }
    hash(&steps)
}
