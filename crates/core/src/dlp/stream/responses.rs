//! Events of OpenAI's Responses API.
//!
//! A text comes in deltas, and again whole in up to four events. Those are looked at as wholes, which gives the same.

use super::document::{Document, Kind};
use super::field::{Form, Key};
use super::plan::{End, Part, Plan, hash};

pub(super) fn read(document: &Document<'_>, name: Option<&[u8]>, plan: &mut Plan) {
    let kind = document.text_of(0, "type");
    let Some(kind) = kind.as_deref().or(name).and_then(|kind| std::str::from_utf8(kind).ok()) else { return };
    let item = || document.text_of(0, "item_id").map(|id| hash(&id));
    let group = document.number_of(0, "output_index").or_else(item).unwrap_or(0);
    let part = document.number_of(0, "content_index").or_else(|| document.number_of(0, "summary_index"));
    let part = part.unwrap_or(0);
    let key = |stem: &str| Key { group, part, name: hash(stem.as_bytes()) };
    match kind {
        "response.output_item.done" => plan.ends.push(End::Group(group)),
        "response.content_part.done" | "response.reasoning_summary_part.done" => plan.ends.push(End::Part(group, part)),
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "error" => {
            plan.ends.push(End::All);
        }
        _ => {
            if let Some(stem) = kind.strip_suffix(".done") {
                plan.ends.push(End::Field(key(stem)));
            } else if let Some(stem) = kind.strip_suffix(".delta")
                && let Some(node) = document.member(0, "delta")
                && document.nodes[node].kind == Kind::Text
            {
                let is_sound = stem.ends_with("audio");
                let form = if stem.contains("arguments") { Form::Json } else { Form::Text };
                if is_sound {
                    plan.skips.push(node);
                } else if !document.raw(node).is_empty() {
                    plan.parts.push(Part { node, key: key(stem), form, is_talk: false, call: None });
                }
            }
        }
    }
}
