//! The items of a conversation, in all dialects: what each one is, and what an answer among them says.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Answer;
use crate::json;
use crate::wire::Dialect;
use crate::wire::lenient::{Maybe, Raw, list, object, text, text_or_json};

/// What an item is in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Class {
    /// What an item of this role and type is.
    pub(super) fn of(role: Option<&str>, kind: Option<&str>, dialect: Dialect) -> Class {
        match role {
            Some("system" | "developer") => return Class::Instructions,
            Some("assistant" | "model") => return Class::Answer,
            Some(_) => return Class::Input,
            None => {}
        }
        match kind {
            Some("reasoning" | "compaction" | "item_reference") => Class::Reasoning,
            Some(kind) if kind.ends_with("_output") || kind.ends_with("_response") => Class::Input,
            Some(kind) if dialect == Dialect::OpenaiResponses && kind.ends_with("_call") => Class::Answer,
            _ => Class::Input,
        }
    }
}

/// The fields of a message, content or input item, of all dialects, that say what it is. A field of the wrong type counts
/// as missing.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow)]
    role: Raw<'a>,
    #[serde(rename = "type")]
    kind: Raw<'a>,
    content: Raw<'a>,
    parts: Raw<'a>,
    tool_calls: Raw<'a>,
    /// The old form of a chat call.
    function_call: Raw<'a>,
    refusal: Raw<'a>,
    call_id: Raw<'a>,
    id: Raw<'a>,
    name: Raw<'a>,
    arguments: Raw<'a>,
    input: Raw<'a>,
}

/// A part of an answer. What has no text and calls nothing does not count.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    text: Raw<'a>,
    refusal: Raw<'a>,
    thought: Raw<'a>,
    id: Raw<'a>,
    name: Raw<'a>,
    input: Raw<'a>,
    #[serde(default, rename = "functionCall", alias = "function_call")]
    function_call: Maybe<GeminiCall<'a>>,
}

#[derive(Deserialize)]
struct ChatCall<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(default)]
    function: Maybe<ChatFunction<'a>>,
}

#[derive(Deserialize)]
struct ChatFunction<'a> {
    #[serde(borrow)]
    name: Raw<'a>,
    arguments: Raw<'a>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    name: Raw<'a>,
    args: Raw<'a>,
}

impl<'a> Item<'a> {
    /// None where an item is no object, or its role is no word.
    pub(super) fn read(raw: &'a RawValue) -> Option<Item<'a>> {
        let item: Item<'a> = json::from_str(raw.get()).ok()?;
        (item.role.is_none() || text(item.role).is_some()).then_some(item)
    }

    pub(super) fn class(&self, dialect: Dialect) -> Class {
        Class::of(text(self.role).as_deref(), text(self.kind).as_deref(), dialect)
    }

    pub(super) fn add_to(&self, answer: &mut Answer) {
        match text(self.content) {
            Some(text) => answer.text(&text),
            None => list::<Part<'_>>(self.content).iter().for_each(|part| part.add_to(answer)),
        }
        list::<Part<'_>>(self.parts).iter().for_each(|part| part.add_to(answer));
        answer.text(&text(self.refusal).unwrap_or_default());
        for call in list::<ChatCall<'_>>(self.tool_calls) {
            add_chat_call(answer, call.id, call.function.0.as_ref());
        }
        if self.function_call.is_some() {
            add_chat_call(answer, None, object::<ChatFunction<'_>>(self.function_call).as_ref());
        }
        if self.role.is_none() {
            let id = text(self.call_id).or_else(|| text(self.id)).unwrap_or_default();
            let arguments = text(self.arguments).or_else(|| self.input.map(|raw| raw.get().into()));
            let name = text(self.name).or_else(|| text(self.kind));
            answer.call(&id, &name.unwrap_or_default(), &arguments.unwrap_or_default());
        }
    }
}

fn add_chat_call(answer: &mut Answer, id: Raw<'_>, function: Option<&ChatFunction<'_>>) {
    let name = function.and_then(|function| text(function.name)).unwrap_or_default();
    let arguments = function.and_then(|function| text_or_json(function.arguments)).unwrap_or_default();
    answer.call(&text(id).unwrap_or_default(), &name, &arguments);
}

impl Part<'_> {
    fn add_to(&self, answer: &mut Answer) {
        let mut call = |id: Raw<'_>, name: Raw<'_>, arguments: Raw<'_>| {
            let arguments = arguments.map_or("{}", RawValue::get);
            answer.call(&text(id).unwrap_or_default(), &text(name).unwrap_or_default(), arguments);
        };
        if let Some(function) = &self.function_call.0 {
            call(function.id, function.name, function.args);
        } else if text(self.kind).is_some_and(|kind| kind.ends_with("tool_use")) {
            call(self.id, self.name, self.input);
        } else if self.thought.is_none_or(|thought| thought.get() != "true") {
            answer.text(&text(self.text).or_else(|| text(self.refusal)).unwrap_or_default());
        }
    }
}
