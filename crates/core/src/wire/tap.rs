//! Watches an answer pass, whole or event by event, and puts together what it said.
//!
//! The tap never changes a byte and never fails: what it cannot read passes as it is and leaves the [`Reply`] as it
//! was. For a stream it also says which events could be the last, so that the caller can hold one back and add to it.
//!
//! An event that is like the one before but for its text is not parsed: see [`super::mold`].

use std::borrow::Cow;

use super::draft::{Draft, Piece};
use super::mold::Mold;
use super::{anthropic, gemini, lenient, openai_chat, openai_responses, sse};
use super::{dialect::Dialect, reply::Reply};
use crate::limits;

/// Reads one answer.
#[derive(Debug)]
pub struct Tap {
    draft: Draft,
    state: State,
    /// What the next event says with its text, should it be like the last.
    alike: Option<(Mold, Piece)>,
}

/// What to do with an event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Pass it on.
    Forward,
    /// It may turn out to be the last data event, and it has room for metadata.
    Hold,
    /// A chat chunk with usage and no choices: of no interest to a client that did not ask for it.
    UsageOnly,
    /// The closing event; the answer is over after it.
    Last,
}

#[derive(Debug)]
enum State {
    Chat(openai_chat::Chat),
    Responses(openai_responses::Responses),
    Anthropic(anthropic::Messages),
    Gemini(gemini::Generate),
    Opaque,
}

impl Tap {
    /// A tap for one answer.
    #[must_use]
    pub fn new(dialect: Dialect) -> Tap {
        let state = match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::OpenaiEmbeddings => {
                State::Chat(openai_chat::Chat::default())
            }
            Dialect::OpenaiResponses => State::Responses(openai_responses::Responses::default()),
            Dialect::Anthropic => State::Anthropic(anthropic::Messages::default()),
            Dialect::Gemini => State::Gemini(gemini::Generate::default()),
            Dialect::Opaque => State::Opaque,
        };
        Tap { draft: Draft::default(), state, alike: None }
    }

    /// Reads a whole JSON answer: a success, an error, or Gemini's stream as a JSON array.
    ///
    /// One longer than [`limits::JSON_REPLY_BYTES`] is not read.
    pub fn json(&mut self, body: &[u8]) {
        if body.len() > limits::JSON_REPLY_BYTES {
            return;
        }
        let body = text_of(body);
        let body = body.trim_start_matches('\u{feff}');
        match &mut self.state {
            State::Chat(_) => openai_chat::json(&mut self.draft, body),
            State::Responses(_) => openai_responses::json(&mut self.draft, body),
            State::Anthropic(messages) => messages.json(&mut self.draft, body),
            State::Gemini(generate) => generate.json(&mut self.draft, body),
            State::Opaque => {}
        }
        self.draft.settle();
    }

    /// Reads one event of a stream, with or without its closing blank line.
    pub fn event(&mut self, event: &[u8]) -> Passing {
        if let Some((mold, piece)) = &self.alike
            && let Some(text) = mold.text(event).and_then(lenient::inside)
        {
            self.draft.add(*piece, &text);
            return Passing::Forward;
        }
        self.alike = None;
        let view = sse::parse(event);
        if view.data.is_empty() {
            return Passing::Forward;
        }
        let data = text_of(&view.data);
        self.draft.only = None;
        let passing = match &mut self.state {
            State::Chat(chat) => chat.event(&mut self.draft, view.name, &data),
            State::Responses(responses) => responses.event(&mut self.draft, view.name, &data),
            State::Anthropic(messages) => messages.event(&mut self.draft, view.name, &data),
            State::Gemini(generate) => generate.event(&mut self.draft, &data),
            State::Opaque => Passing::Forward,
        };
        if let (Some((piece, text)), Passing::Forward, Cow::Borrowed(_)) = (self.draft.only.take(), passing, &data)
            && let Some(range) = sse::data_range(event)
        {
            let inside = range.start + text.start..range.start + text.end;
            self.alike = Some((Mold::of(event, inside), piece));
        }
        passing
    }

    /// The reply so far. Choices and calls may still stand in order of arrival; see [`Tap::into_reply`].
    #[must_use]
    pub fn reply(&self) -> &Reply {
        &self.draft.reply
    }

    /// The reply so far, to add to it what was learnt elsewhere.
    pub fn reply_mut(&mut self) -> &mut Reply {
        &mut self.draft.reply
    }

    /// The reply, its choices in order, whether or not the answer came to its end.
    #[must_use]
    pub fn into_reply(mut self) -> Reply {
        self.draft.settle();
        self.draft.reply
    }

    /// The last `sequence_number` of a Responses stream; an event put in must count on from it.
    #[must_use]
    pub fn sequence_number(&self) -> Option<u64> {
        match &self.state {
            State::Responses(responses) => responses.sequence_number(),
            _ => None,
        }
    }
}

/// Bytes as text. As a rule they are, and checking that takes a fraction of putting it right.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests;
