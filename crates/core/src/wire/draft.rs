//! An answer being put together from its pieces, within bounds.
//!
//! Pieces of several choices may come interleaved; in the end the text stands in choice order, so that a stream and
//! a JSON body of the same answer give the same [`Reply`].

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient::{self, Maybe, Raw, cut};
use super::reply::{Reply, ToolCall};
use crate::{json, limits};

/// The reply so far, and what is needed to continue it.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) reply: Reply,
    /// The choice whose text stands in `reply.text`: the first that said something.
    front: Option<u64>,
    /// Text of the other choices.
    others: Vec<(u64, String)>,
    others_bytes: usize,
    /// A piece did not fit: nothing after it is kept, or the text would have a hole.
    text_full: bool,
    /// Beside `reply.tool_calls`, one for one.
    calls: Vec<CallSlot>,
    /// The choice that `reply.finish` is from.
    finished_choice: u64,
    /// What the last event said with the text at this place of its data, if it said nothing else.
    pub(super) only: Option<(Piece, Range<usize>)>,
}

/// What a text of an event adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What a choice says.
    Text(u64),
    Reasoning,
    Arguments(CallKey),
}

/// Which call of an answer: choice, and index within it.
pub(super) type CallKey = (u64, u64);

#[derive(Debug)]
struct CallSlot {
    key: CallKey,
    arguments_full: bool,
}

impl Draft {
    /// Adds a piece of what it says.
    pub(super) fn add(&mut self, piece: Piece, text: &str) {
        match piece {
            Piece::Text(choice) => self.text(choice, text),
            Piece::Reasoning => self.reasoning(text),
            Piece::Arguments(key) => self.arguments(key, text),
        }
    }

    /// Notes that an event with this data said nothing but the text in `raw`.
    pub(super) fn said_only(&mut self, piece: Piece, raw: Raw<'_>, data: &str) {
        self.only = raw.and_then(|raw| lenient::place(raw, data)).map(|place| (piece, place));
    }

    /// Adds visible text to a choice.
    pub(super) fn text(&mut self, choice: u64, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.reply.text_bytes = self.reply.text_bytes.saturating_add(piece.len() as u64);
        if self.text_full {
            return;
        }
        let room = limits::REPLY_TEXT_BYTES.saturating_sub(self.reply.text.len() + self.others_bytes);
        self.text_full = piece.len() > room;
        let piece = cut(piece, room);
        if *self.front.get_or_insert(choice) == choice {
            self.reply.text.push_str(piece);
            return;
        }
        let found = self.others.iter().rposition(|(other, _)| *other == choice);
        if found.is_none() && self.others.len() + 1 >= limits::REPLY_CHOICES {
            return;
        }
        self.others_bytes += piece.len();
        match found {
            Some(at) => self.others[at].1.push_str(piece),
            None => self.others.push((choice, piece.to_owned())),
        }
    }

    /// Counts reasoning; it is not kept.
    pub(super) fn reasoning(&mut self, piece: &str) {
        self.reply.reasoning_bytes = self.reply.reasoning_bytes.saturating_add(piece.len() as u64);
    }

    /// The id and the model, from the first place that names them.
    pub(super) fn origin(&mut self, id: Raw<'_>, model: Raw<'_>) {
        if self.reply.id.is_none() {
            self.reply.id = word(id);
        }
        if self.reply.model.is_none() {
            self.reply.model = word(model);
        }
    }

    /// Why a choice ended; of several choices the first one's word stays.
    pub(super) fn finish(&mut self, choice: u64, reason: Raw<'_>) -> bool {
        let Some(reason) = word(reason) else { return false };
        if self.reply.finish.is_none() || choice <= self.finished_choice {
            self.reply.finish = Some(reason);
            self.finished_choice = choice;
        }
        true
    }

    /// Starts a call, or completes what is known of it.
    pub(super) fn call(&mut self, key: CallKey, id: Raw<'_>, name: Raw<'_>) {
        let at = match self.find(key) {
            Some(at) => at,
            None => match self.push_call(key) {
                Some(at) => at,
                None => return,
            },
        };
        let call = &mut self.reply.tool_calls[at];
        if call.id.is_empty() {
            call.id = word(id).unwrap_or_default();
        }
        if call.name.is_empty() {
            call.name = word(name).unwrap_or_default();
        }
    }

    /// A call under a key that may be in use: later pieces with that key belong to the new call.
    pub(super) fn push_call(&mut self, key: CallKey) -> Option<usize> {
        if self.calls.len() >= limits::REPLY_TOOL_CALLS {
            return None;
        }
        self.calls.push(CallSlot { key, arguments_full: false });
        self.reply.tool_calls.push(ToolCall::default());
        Some(self.calls.len() - 1)
    }

    /// Adds to the arguments of a call.
    pub(super) fn arguments(&mut self, key: CallKey, piece: &str) {
        let Some(at) = self.find(key) else { return };
        if self.calls[at].arguments_full {
            return;
        }
        let arguments = &mut self.reply.tool_calls[at].arguments;
        let room = limits::TOOL_ARGUMENT_BYTES.saturating_sub(arguments.len());
        self.calls[at].arguments_full = piece.len() > room;
        arguments.push_str(cut(piece, room));
    }

    /// Puts the whole arguments in place of what was put together so far.
    pub(super) fn set_arguments(&mut self, key: CallKey, whole: &str) {
        if let Some(at) = self.find(key) {
            self.reply.tool_calls[at].arguments.clear();
            self.calls[at].arguments_full = false;
            self.arguments(key, whole);
        }
    }

    /// Takes white space out of arguments that came in pieces and are JSON for certain.
    pub(super) fn compact_arguments(&mut self, key: CallKey) {
        if let Some(at) = self.find(key) {
            let arguments = &mut self.reply.tool_calls[at].arguments;
            *arguments = lenient::compact(arguments);
        }
    }

    /// The newest call under a key.
    pub(super) fn find(&self, key: CallKey) -> Option<usize> {
        self.calls.iter().rposition(|slot| slot.key == key)
    }

    /// The key of the newest call of a choice.
    pub(super) fn last_key(&self, choice: u64) -> Option<CallKey> {
        self.calls.iter().rev().map(|slot| slot.key).find(|key| key.0 == choice)
    }

    /// An error, as an object with a message, as a string, or whatever else it is.
    pub(super) fn error(&mut self, raw: &RawValue) {
        #[derive(Deserialize)]
        struct Error<'a> {
            #[serde(borrow)]
            message: Raw<'a>,
            r#type: Raw<'a>,
        }
        let error: Option<Error<'_>> = lenient::object(Some(raw));
        let message = error.and_then(|error| lenient::filled(error.message).or_else(|| lenient::filled(error.r#type)));
        let message = message.or_else(|| lenient::text_or_json(Some(raw))).unwrap_or(Cow::Borrowed("error"));
        self.error_message(&message);
    }

    /// An error by its message. The first one is the cause, and stays.
    pub(super) fn error_message(&mut self, message: &str) {
        let message = cut(message, limits::REPLY_ERROR_BYTES);
        self.reply.error.get_or_insert_with(|| message.to_owned());
        self.reply.complete = false;
    }

    /// The closing sign came; the answer is whole unless an error came before.
    pub(super) fn close(&mut self) {
        self.reply.complete = self.reply.error.is_none();
        self.settle();
    }

    /// A JSON body was read to its end: it is whole, unless it is an error that did not say so.
    pub(super) fn close_json(&mut self, body: &str) {
        let is_bare = self.reply.id.is_none() && self.reply.usage.is_none();
        if is_bare && let Some(message) = bare_error(body) {
            self.error_message(&message);
        }
        self.close();
    }

    /// Forgets what was said, because a final form of all of it follows.
    pub(super) fn restart(&mut self) {
        let reply = std::mem::take(&mut self.reply);
        *self = Draft::default();
        self.reply = Reply { text: String::new(), text_bytes: 0, reasoning_bytes: 0, tool_calls: Vec::new(), ..reply };
    }

    /// Puts text and calls into the order of the choices.
    pub(super) fn settle(&mut self) {
        if let Some(front) = self.front
            && !self.others.is_empty()
        {
            let mut texts = std::mem::take(&mut self.others);
            texts.push((front, std::mem::take(&mut self.reply.text)));
            texts.sort_by_key(|(choice, _)| *choice);
            let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
            self.reply.text = texts.join("\n");
            let end = cut(&self.reply.text, limits::REPLY_TEXT_BYTES).len();
            self.reply.text.truncate(end);
            self.others_bytes = 0;
        }
        if !self.calls.is_sorted_by_key(|slot| slot.key) {
            let calls = std::mem::take(&mut self.reply.tool_calls);
            let mut both: Vec<(CallSlot, ToolCall)> = std::mem::take(&mut self.calls).into_iter().zip(calls).collect();
            both.sort_by_key(|(slot, _)| slot.key);
            (self.calls, self.reply.tool_calls) = both.into_iter().unzip();
        }
    }
}

/// A short string of the provider's, bounded; an empty one counts as missing.
pub(super) fn word(raw: Raw<'_>) -> Option<String> {
    lenient::filled(raw).map(|text| cut(&text, limits::REPLY_WORD_BYTES).to_owned())
}

/// Bodies of errors that do not say `error`: those of Mistral, of FastAPI, of gateways on the way.
pub(super) fn bare_error(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Bare<'a> {
        #[serde(borrow)]
        message: Raw<'a>,
        detail: Raw<'a>,
    }
    let bare = json::from_str::<Maybe<Bare<'_>>>(body).ok()?.0?;
    let message = lenient::text_or_json(bare.message.or(bare.detail))?;
    Some(message.into_owned())
}

#[cfg(test)]
mod tests;
