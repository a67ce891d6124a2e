//! Chunks of OpenAI's chat completions and legacy completions, and of all who speak like them.

use super::document::{Document, Kind};
use super::field::{Form, Key};
use super::plan::{Calls, End, Plan, hash};
use super::whole;

/// Texts of a delta that come whole and are looked at as such. Clients do not join them.
const WHOLE: [&str; 5] = ["channel", "recipient", "provider", "native_finish_reason", "reasoning_opaque"];
/// The call of the time before there were several.
const OLD_CALL: u64 = u64::MAX;

pub(super) fn read(document: &Document<'_>, calls: &mut Calls, plan: &mut Plan) {
    let mut has_choices = false;
    for (position, choice) in document.list(0, "choices").enumerate() {
        has_choices = true;
        let index = document.number_of(choice, "index").unwrap_or(position as u64);
        if let Some(text) = document.filled(choice, "text") {
            plan.talk(text, index, 0, "text");
        }
        if let Some(delta) = document.member(choice, "delta") {
            read_delta(document, index, delta, calls, plan);
        }
        if document.is_finished(choice, "finish_reason") {
            plan.ends.push(End::Finish(index));
        }
    }
    // Usage never overtakes text.
    if !has_choices && document.has(0, "usage") {
        plan.ends.push(End::All);
    }
}

fn read_delta(document: &Document<'_>, choice: u64, delta: usize, calls: &mut Calls, plan: &mut Plan) {
    for member in document.children(delta) {
        let Some(name) = document.key(member).and_then(|key| std::str::from_utf8(key).ok()) else { continue };
        let kind = document.nodes[member].kind;
        match name {
            // Whatever its name, it may go on.
            _ if kind == Kind::Text => {
                let is_text = !WHOLE.contains(&name) && !whole::is_untouched(document, member);
                if is_text && !document.raw(member).is_empty() {
                    plan.talk(member, choice, 0, name);
                }
            }
            // A list of parts (Mistral).
            "content" => {
                for part in document.children(member).filter(|part| !whole::is_untouched(document, *part)) {
                    if let Some(thought) = document.filled(part, "thinking") {
                        plan.talk(thought, choice, 0, "thinking");
                    }
                    if let Some(text) = document.filled(part, "text") {
                        plan.talk(text, choice, 0, "content");
                    }
                    for thought in document.list(part, "thinking") {
                        if let Some(text) = document.filled(thought, "text") {
                            plan.talk(text, choice, 0, "thinking");
                        }
                    }
                }
            }
            "audio" => {
                if let Some(transcript) = document.filled(member, "transcript") {
                    plan.talk(transcript, choice, 0, "transcript");
                }
            }
            "reasoning_details" => {
                for (position, detail) in document.children(member).enumerate() {
                    read_detail(document, choice, position as u64, detail, plan);
                }
            }
            "function_call" => {
                if let Some(arguments) = document.filled(member, "arguments") {
                    plan.arguments(arguments, choice, OLD_CALL, Form::Json, None);
                }
            }
            "tool_calls" => {
                for (position, call) in document.children(member).enumerate() {
                    read_call(document, choice, position as u64, call, calls, plan);
                }
            }
            _ => {}
        }
    }
}

/// A piece of reasoning. What is signed is never touched: the provider would refuse it in the next request.
fn read_detail(document: &Document<'_>, choice: u64, position: u64, detail: usize, plan: &mut Plan) {
    let index = document.number_of(detail, "index").unwrap_or(position);
    let part = hash(b"reasoning_details").wrapping_add(index);
    let kind = document.text_of(detail, "type").unwrap_or_default();
    // Claude's reasoning is signed too, in a piece that comes after the text.
    let is_claude = document.text_of(detail, "format").is_some_and(|format| format.starts_with(b"anthropic"));
    let is_sealed = is_claude || [&b"reasoning.encrypted"[..], b"redacted_thinking"].contains(&&*kind);
    let is_signed = document.filled(detail, "signature").is_some();
    if is_sealed || is_signed {
        plan.skips.push(detail);
    }
    for name in ["text", "summary"] {
        if is_signed {
            plan.ends.push(End::Field(Key { group: choice, part, name: hash(name.as_bytes()) }));
        } else if !is_sealed && let Some(text) = document.filled(detail, name) {
            plan.talk(text, choice, part, name);
        }
    }
}

fn read_call(document: &Document<'_>, choice: u64, position: u64, call: usize, calls: &mut Calls, plan: &mut Plan) {
    let (function, custom) = (document.member(call, "function"), document.member(call, "custom"));
    let Some(given) = function.or(custom) else { return };
    let is_named = document.filled(given, "name").is_some();
    let id = document.filled(call, "id").filter(|_| is_named).map(|id| hash(document.raw(id)));
    let index = document.number_of(call, "index");
    // What comes without a number belongs to the last call that was named.
    if let Some(last) = calls.last(choice).filter(|_| index.is_none() && is_named) {
        plan.ends.push(End::Part(choice, last));
    }
    let number = calls.number(choice, index, position, is_named);
    let (arguments, input) = (document.filled(given, "arguments"), document.filled(given, "input"));
    if let Some(arguments) = arguments {
        plan.arguments(arguments, choice, number, Form::Json, id);
    }
    if let Some(input) = input {
        plan.arguments(input, choice, number, Form::Text, id);
    }
    if is_named {
        plan.ends.push(End::Talk(choice));
    }
}
