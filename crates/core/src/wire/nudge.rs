//! A note to the model, put behind the last thing that it was told: a tool's result, or the user's words.
//!
//! The note is inserted into the body as it stands. It opens no new turn, because providers refuse turns out of order,
//! and it touches nothing before it, so that the prompt's cached part stays cached.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::Call;
use super::dialect::Dialect;
use super::edit::{Edit, apply, range_of};
use crate::json;

/// The body with `note` behind the last tool result or user text; None where there is no place for it.
#[must_use]
pub fn nudge(call: &Call<'_>, body: &[u8], note: &str) -> Option<Vec<u8>> {
    Some(apply(body, Vec::new(), vec![note_edit(call, body, note)?]))
}

/// How to put the note in.
pub(super) fn note_edit(call: &Call<'_>, body: &[u8], note: &str) -> Option<Edit> {
    let place = match call.dialect {
        Dialect::OpenaiChat | Dialect::Anthropic => last(call, |item| message(item, "text")),
        Dialect::OpenaiResponses => last(call, input_item).or_else(|| call.prompt.map(Place::text)),
        Dialect::OpenaiCompletions => call.items.last().copied().or(call.prompt).map(Place::text),
        Dialect::Gemini => last(call, content),
        Dialect::OpenaiEmbeddings | Dialect::Opaque => None,
    };
    place?.edit(body, note)
}

/// A value that can take the note.
struct Place<'a> {
    value: &'a RawValue,
    /// The `type` of a part, where the value is a list of parts.
    part: Part,
}

/// What a text looks like in a list of parts.
#[derive(Clone, Copy)]
enum Part {
    /// There is no list: the value is a text.
    None,
    /// `{"type":…,"text":…}`
    Typed(&'static str),
    /// `{"text":…}`
    Untyped,
    /// A field of an object whose names are free.
    Field,
}

impl<'a> Place<'a> {
    fn text(value: &'a RawValue) -> Place<'a> {
        Place { value, part: Part::None }
    }

    fn edit(&self, body: &[u8], note: &str) -> Option<Edit> {
        let raw = self.value.get();
        let range = range_of(body, self.value);
        let quoted = serde_json::Value::from(note).to_string();
        let inserted = match (raw.as_bytes().first()?, self.part) {
            (b'"', _) => format!("\\n\\n{}", &quoted[1..quoted.len() - 1]),
            (b'[', Part::Typed(kind)) => separated(raw, &format!(r#"{{"type":"{kind}","text":{quoted}}}"#)),
            (b'[', Part::Untyped) => separated(raw, &format!(r#"{{"text":{quoted}}}"#)),
            (b'{', Part::Field) => separated(raw, &format!(r#""sprag_note":{quoted}"#)),
            _ => return None,
        };
        let end = range.end - 1;
        Some(Edit { range: end..end, with: Cow::Owned(inserted) })
    }
}

/// With the comma that a list or object needs before one more element.
fn separated(raw: &str, element: &str) -> String {
    let is_empty = raw[1..raw.len() - 1].trim_ascii().is_empty();
    if is_empty { element.to_owned() } else { format!(",{element}") }
}

/// The last item in which there is a place.
fn last<'a>(call: &Call<'a>, find: impl Fn(&'a RawValue) -> Option<Place<'a>>) -> Option<Place<'a>> {
    call.items.iter().rev().find_map(|item| find(item))
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
}

/// A message of the user or of a tool. Anthropic keeps tool results in a message of the user, and text goes after them.
fn message<'a>(item: &'a RawValue, part: &'static str) -> Option<Place<'a>> {
    let item: Item<'a> = json::from_str(item.get()).ok()?;
    let is_told = matches!(item.role.as_deref(), Some("user" | "tool" | "function"));
    let value = item.content.filter(|_| is_told)?;
    Some(Place { value, part: Part::Typed(part) })
}

/// An item of Responses: a tool's output, or a message.
fn input_item(raw: &RawValue) -> Option<Place<'_>> {
    let item: Item<'_> = json::from_str(raw.get()).ok()?;
    let value = match item.kind.as_deref() {
        Some("function_call_output" | "custom_tool_call_output") => item.output?,
        Some("message") | None => return message(raw, "input_text"),
        Some(_) => return None,
    };
    Some(Place { value, part: Part::Typed("input_text") })
}

/// A content of Gemini. A turn of function responses takes no text, so the note goes into the last response.
fn content(raw: &RawValue) -> Option<Place<'_>> {
    let item: Item<'_> = json::from_str(raw.get()).ok()?;
    if !matches!(item.role.as_deref(), Some("user" | "function" | "tool") | None) {
        return None;
    }
    let value = item.parts?;
    let parts: Vec<GeminiPart<'_>> = json::from_str(value.get()).ok()?;
    let response = parts.iter().rev().find_map(|part| part.function_response.as_ref());
    match response {
        Some(response) => response.response.map(|value| Place { value, part: Part::Field }),
        None => Some(Place { value, part: Part::Untyped }),
    }
}

#[derive(Deserialize)]
struct GeminiPart<'a> {
    #[serde(borrow, default, rename = "functionResponse", alias = "function_response")]
    function_response: Option<FunctionResponse<'a>>,
}

#[derive(Deserialize)]
struct FunctionResponse<'a> {
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
