//! Chunks of Google's Gemini API.

use super::document::Document;
use super::field::{Form, Key};
use super::plan::{End, Part, Plan, hash};

pub(super) fn read(document: &Document<'_>, plan: &mut Plan) {
    for (position, candidate) in document.list(0, "candidates").enumerate() {
        let index = document.number_of(candidate, "index").unwrap_or(position as u64);
        if let Some(content) = document.member(candidate, "content") {
            for part in document.list(content, "parts") {
                read_part(document, index, part, plan);
            }
        }
        if document.is_finished(candidate, "finishReason") {
            plan.ends.push(End::Finish(index));
        }
    }
}

fn read_part(document: &Document<'_>, candidate: u64, part: usize, plan: &mut Plan) {
    let is_thought = document.is_true(part, "thought");
    if is_thought && (document.has(part, "thoughtSignature") || document.has(part, "thought_signature")) {
        plan.skips.push(part);
        return;
    }
    let words = Key { group: candidate, part: 0, name: hash(b"text") };
    let thoughts = Key { name: hash(b"thought"), ..words };
    if document.member(part, "text").is_some() {
        if let Some(text) = document.filled(part, "text") {
            plan.talk(text, candidate, 0, if is_thought { "thought" } else { "text" });
            // Words go on behind a call only where they stand behind it.
            let key = if is_thought { thoughts } else { words };
            plan.ends.retain(|end| *end != End::Field(key));
        }
        return;
    }
    plan.ends.extend([End::Field(words), End::Field(thoughts)]);
    let call = document.member(part, "functionCall").or_else(|| document.member(part, "function_call"));
    let Some(call) = call else { return };
    for argument in document.list(call, "partialArgs") {
        let path = document.text_of(argument, "jsonPath").map_or(0, |path| hash(&path));
        let key = Key { group: candidate, part: path, name: hash(b"partialArgs") };
        if let Some(node) = document.filled(argument, "stringValue") {
            plan.parts.push(Part { node, key, form: Form::Text, is_talk: false, call: None });
        }
        if !document.is_true(argument, "willContinue") {
            plan.ends.push(End::Field(key));
        }
    }
}
