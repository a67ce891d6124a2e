//! The items of a conversation, in all dialects: what each one is, and what an answer among them says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::Answer;
use crate::wire::Dialect;

/// What an item is in its conversation.
pub(super) enum Class {
    /// System and developer messages.
    Instructions,
    /// What was given to the model: user text, tool results.
    Input,
    /// What the model said.
    Answer,
    /// What the model thought: clients echo it or not.
    Reasoning,
}

/// The fields of a message, content or input item, of all dialects, that say what it is.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
    /// The old form of a chat call.
    #[serde(borrow, default)]
    function_call: Option<ChatFunction<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Part<'a>>),
    Other(serde::de::IgnoredAny),
}

/// A part of an answer. What has no text and calls nothing does not count.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(borrow, default, rename = "functionCall", alias = "function_call")]
    function_call: Option<GeminiCall<'a>>,
}

#[derive(Deserialize)]
struct ChatCall<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<ChatFunction<'a>>,
}

#[derive(Deserialize)]
struct ChatFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    args: Option<Value>,
}

impl Item<'_> {
    pub(super) fn class(&self, dialect: Dialect) -> Class {
        match self.role.as_deref() {
            Some("system" | "developer") => return Class::Instructions,
            Some("assistant" | "model") => return Class::Answer,
            Some(_) => return Class::Input,
            None => {}
        }
        match self.kind.as_deref() {
            Some("reasoning" | "compaction" | "item_reference") => Class::Reasoning,
            Some(kind) if kind.ends_with("_output") || kind.ends_with("_response") => Class::Input,
            Some(kind) if dialect == Dialect::OpenaiResponses && kind.ends_with("_call") => Class::Answer,
            _ => Class::Input,
        }
    }

    pub(super) fn add_to(&self, answer: &mut Answer) {
        match &self.content {
            Some(Content::Text(text)) => answer.text(text),
            Some(Content::Parts(parts)) => parts.iter().for_each(|part| part.add_to(answer)),
            _ => {}
        }
        self.parts.iter().for_each(|part| part.add_to(answer));
        if let Some(refusal) = &self.refusal {
            answer.text(refusal);
        }
        let mut chat_call = |id: Option<&str>, function: Option<&ChatFunction<'_>>| {
            let name = function.and_then(|f| f.name.as_deref()).unwrap_or_default();
            let arguments = function.and_then(|f| f.arguments.as_deref()).unwrap_or_default();
            answer.call(id.unwrap_or_default(), name, arguments);
        };
        self.tool_calls.iter().flatten().for_each(|call| chat_call(call.id.as_deref(), call.function.as_ref()));
        self.function_call.iter().for_each(|function| chat_call(None, Some(function)));
        if self.role.is_none() {
            let id = self.call_id.as_deref().or(self.id.as_deref()).unwrap_or_default();
            let arguments = self.arguments.as_deref().or(self.input.map(RawValue::get)).unwrap_or_default();
            let name = self.name.as_deref().or(self.kind.as_deref());
            answer.call(id, name.unwrap_or_default(), arguments);
        }
    }
}

impl Part<'_> {
    fn add_to(&self, answer: &mut Answer) {
        if let Some(call) = &self.function_call {
            let arguments = call.args.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
            answer.call(call.id.as_deref().unwrap_or_default(), call.name.as_deref().unwrap_or_default(), &arguments);
        } else if self.kind.as_deref().is_some_and(|kind| kind.ends_with("tool_use")) {
            let arguments = self.input.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
            answer.call(self.id.as_deref().unwrap_or_default(), self.name.as_deref().unwrap_or_default(), &arguments);
        } else if !self.thought {
            let said = self.text.as_deref().or(self.refusal.as_deref());
            answer.text(said.unwrap_or_default());
        }
    }
}
