//! The items of a conversation, read for what they say. A field of the wrong type counts as missing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::{ToolResult, ToolUse};
use crate::json::{self, unescaped};
use crate::wire::Dialect;

/// What an item is in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// What was given to the model: user text, tool results.
    Input,
    /// What the model said.
    Answer,
    /// Instructions, and what the model thought.
    Aside,
}

/// A message, content or input item of any dialect.
#[derive(Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
}

/// A part of a message.
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thought: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "source", alias = "inlineData", alias = "inline_data")]
    image_url: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "functionCall", alias = "function_call")]
    function_call: Option<Called<'a>>,
    #[serde(borrow, default, rename = "functionResponse", alias = "function_response")]
    function_response: Option<Called<'a>>,
}

/// A function with what goes in or comes out: chat and Gemini.
#[derive(Default, Deserialize)]
struct Called<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
    #[serde(borrow, default)]
    custom: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl<'a> Item<'a> {
    /// Reads an item; one that cannot be read is an input that says nothing.
    pub(super) fn parse(raw: &'a RawValue) -> Item<'a> {
        json::from_str(raw.get()).unwrap_or_default()
    }

    /// Whether an item is an input for sure, as far as its first field tells.
    pub(super) fn begins_as_input(raw: &RawValue) -> bool {
        let role = raw.get().strip_prefix('{').and_then(|rest| rest.trim_ascii_start().strip_prefix("\"role\""));
        let role = role.and_then(|rest| rest.trim_ascii_start().strip_prefix(':')).unwrap_or_default();
        let role = role.trim_ascii_start();
        ["\"user\"", "\"tool\""].iter().any(|input| role.starts_with(input))
    }

    pub(super) fn class(&self, dialect: Dialect) -> Class {
        match text(self.role).as_deref() {
            Some("system" | "developer") => return Class::Aside,
            Some("assistant" | "model") => return Class::Answer,
            Some(_) => return Class::Input,
            None => {}
        }
        match text(self.kind).as_deref() {
            Some("reasoning" | "compaction" | "item_reference") => Class::Aside,
            Some(kind) if kind.ends_with("_output") || kind.ends_with("_response") => Class::Input,
            Some(kind) if dialect == Dialect::OpenaiResponses && kind.ends_with("_call") => Class::Answer,
            _ => Class::Input,
        }
    }

    /// The text and calls of an answer.
    pub(super) fn said(&self, texts: &mut Vec<Cow<'a, str>>, calls: &mut Vec<ToolUse<'a>>) {
        for part in self.pieces() {
            part.said(texts, calls);
        }
        texts.extend(filled(text(self.content)));
        texts.extend(filled(text(self.refusal)));
        for call in list::<Called<'a>>(self.tool_calls) {
            let function = call.function.or(call.custom).map(object::<Called<'a>>).unwrap_or_default();
            let arguments = function.arguments.or(function.input);
            calls.push(ToolUse { id: word(call.id), name: word(function.name), arguments: text_or_json(arguments) });
        }
        if let Some(function) = self.function_call.map(object::<Called<'a>>) {
            let arguments = text_or_json(function.arguments);
            calls.push(ToolUse { id: Cow::Borrowed(""), name: word(function.name), arguments });
        }
        if self.role.is_none() && self.kind.is_some() {
            let arguments = text_or_json(self.arguments.or(self.input).or(self.action));
            let name = self.name.or(self.kind);
            calls.push(ToolUse { id: word(self.call_id.or(self.id)), name: word(name), arguments });
        }
    }

    /// The tool results and user text of an input.
    pub(super) fn given(&self, results: &mut Vec<ToolResult<'a>>, texts: &mut Vec<Cow<'a, str>>) {
        let role = text(self.role);
        if matches!(role.as_deref(), Some("tool" | "function")) && self.parts.is_none() {
            results.push(ToolResult {
                call_id: word(self.tool_call_id.or(self.call_id)),
                name: word(self.name),
                text: said_in(self.content),
                is_error: false,
            });
            return;
        }
        if let (None, Some(output)) = (role, self.output) {
            let (call_id, name) = (word(self.call_id.or(self.id)), word(self.name));
            results.push(ToolResult { call_id, name, text: said_in(Some(output)), is_error: false });
            return;
        }
        for part in self.pieces() {
            part.given(results, texts);
        }
        texts.extend(filled(text(self.content)).filter(|text| !is_reminder(text)));
    }

    fn pieces(&self) -> impl Iterator<Item = Part<'a>> + use<'a> {
        list::<Part<'a>>(self.content).into_iter().chain(list::<Part<'a>>(self.parts))
    }
}

impl<'a> Part<'a> {
    fn said(self, texts: &mut Vec<Cow<'a, str>>, calls: &mut Vec<ToolUse<'a>>) {
        if let Some(call) = self.function_call {
            calls.push(ToolUse { id: word(call.id), name: word(call.name), arguments: text_or_json(call.args) });
        } else if text(self.kind).is_some_and(|kind| kind.ends_with("tool_use")) {
            calls.push(ToolUse { id: word(self.id), name: word(self.name), arguments: text_or_json(self.input) });
        } else if self.thought.is_none_or(|thought| thought.get() != "true") {
            texts.extend(filled(text(self.text.or(self.refusal))));
        }
    }

    fn given(self, results: &mut Vec<ToolResult<'a>>, texts: &mut Vec<Cow<'a, str>>) {
        if let Some(response) = self.function_response {
            let (call_id, name) = (word(response.id), word(response.name));
            let (text, is_error) = unwrapped(response.response);
            results.push(ToolResult { call_id, name, text, is_error });
        } else if text(self.kind).is_some_and(|kind| kind.ends_with("tool_result")) {
            results.push(ToolResult {
                call_id: word(self.tool_use_id),
                name: Cow::Borrowed(""),
                text: said_in(self.content),
                is_error: self.is_error.is_some_and(|is| is.get() == "true"),
            });
        } else {
            texts.extend(filled(text(self.text)).filter(|text| !is_reminder(text)));
            texts.extend(self.image_url.map(|raw| Cow::Owned(image(raw))));
        }
    }
}

/// The first text that a user's item holds, as it stands in the body, and at most `bytes` of it.
pub(super) fn first_text<'a>(item: &Item<'a>, bytes: usize) -> &'a [u8] {
    fn raw_text(raw: Option<&RawValue>) -> Option<&[u8]> {
        let inner = raw?.get().strip_prefix('"')?.strip_suffix('"')?.as_bytes();
        (!inner.is_empty() && !inner.starts_with(REMINDER.as_bytes())).then_some(inner)
    }
    let whole = raw_text(item.content).or_else(|| item.pieces().find_map(|part| raw_text(part.text)));
    let whole = whole.unwrap_or_default();
    &whole[..whole.len().min(bytes)]
}

/// Bytes of a word of the protocol.
const WORD_BYTES: usize = 12;

const REMINDER: &str = "<system-reminder>";

/// What a client tells the model in the user's name.
fn is_reminder(text: &str) -> bool {
    text.trim_start().starts_with(REMINDER)
}

/// The text of a result: a string, parts joined by line ends, or any structure as JSON.
fn said_in(content: Option<&RawValue>) -> Cow<'_, str> {
    if let Some(text) = text(content) {
        return text;
    }
    let Some(raw) = content.filter(|raw| raw.get() != "null") else { return Cow::Borrowed("") };
    let Ok(parts) = json::from_str::<Vec<&RawValue>>(raw.get()) else { return Cow::Borrowed(raw.get()) };
    joined(parts.into_iter().map(|raw| {
        let part = object::<Part<'_>>(raw);
        let kind = text(part.kind).unwrap_or_default();
        match text(part.text) {
            Some(text) => text,
            // An image is as new as its bytes.
            None if kind.contains("image") => Cow::Owned(image(raw)),
            None => text(Some(raw)).unwrap_or(Cow::Borrowed(raw.get())),
        }
    }))
}

/// What a function gave back. A text has to be wrapped in an object: `{"output": "..."}`, `{"error": "..."}`.
fn unwrapped(response: Option<&RawValue>) -> (Cow<'_, str>, bool) {
    let fields = response.and_then(|raw| json::from_str::<BTreeMap<&str, &RawValue>>(raw.get()).ok());
    let only = fields.as_ref().filter(|fields| fields.len() == 1).and_then(BTreeMap::first_key_value);
    match only {
        Some((key, value)) if text(Some(value)).is_some() => (word(Some(value)), *key == "error"),
        _ => (text_or_json(response), false),
    }
}

/// Stands for an image. Without digits: what looks like an id is taken out of results as noise.
fn image(raw: &RawValue) -> String {
    let hash = xxh3_64(raw.get().as_bytes());
    let letters = (0..16).map(|at| char::from(b'a' + (hash >> (4 * at) & 15) as u8));
    format!("[image {}]", letters.collect::<String>())
}

/// Texts as one, with line ends between those that say something.
pub(super) fn joined<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let mut texts = texts.filter(|text| !text.is_empty());
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else { return first };
    let mut whole = match first {
        // With room for the second: often there is no third.
        Cow::Borrowed(first) => {
            let mut whole = String::with_capacity(first.len() + 1 + second.len());
            whole.push_str(first);
            whole
        }
        Cow::Owned(first) => first,
    };
    for text in std::iter::once(second).chain(texts) {
        whole.reserve(1 + text.len());
        whole.push('\n');
        whole.push_str(&text);
    }
    Cow::Owned(whole)
}

/// The string in `raw`, borrowed where it holds no escapes.
pub(super) fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let json = raw?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // Words of the protocol are shorter than the way to a search.
    let has_escape = match inner.len() {
        0..=WORD_BYTES => inner.as_bytes().contains(&b'\\'),
        _ => memchr::memchr(b'\\', inner.as_bytes()).is_some(),
    };
    if !has_escape {
        return Some(Cow::Borrowed(inner));
    }
    unescaped(inner).or_else(|| serde_json::from_str::<String>(json).ok()).map(Cow::Owned)
}

fn word(raw: Option<&RawValue>) -> Cow<'_, str> {
    text(raw).unwrap_or_default()
}

fn filled(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

fn text_or_json(raw: Option<&RawValue>) -> Cow<'_, str> {
    text(raw).or_else(|| raw.map(|raw| Cow::Borrowed(raw.get()))).unwrap_or_default()
}

fn object<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    json::from_str(raw.get()).unwrap_or_default()
}

/// The objects of an array; what is none counts as empty.
fn list<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> Vec<T> {
    let list = raw.filter(|raw| raw.get().starts_with('[')).map(|raw| json::from_str::<Vec<&'a RawValue>>(raw.get()));
    list.and_then(Result::ok).unwrap_or_default().into_iter().map(object::<T>).collect()
}
