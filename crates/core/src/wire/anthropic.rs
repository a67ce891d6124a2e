//! Answers of Anthropic's Messages API.
//!
//! <https://docs.anthropic.com/en/api/messages-streaming>

use serde::Deserialize;

use super::draft::{Draft, Piece};
use super::lenient::{self, List, Maybe, Raw, count};
use super::tap::Passing;
use crate::json;
use crate::usage::Usage;

/// State of a Messages answer.
#[derive(Debug, Default)]
pub(super) struct Messages {
    counts: Counts,
    /// The block whose input came whole with its start; the first fragment replaces it.
    whole_input: Option<u64>,
}

/// Usage as reported so far: the start of a stream has the input, later events the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    written_5m: Option<u64>,
    written_1h: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    model: Raw<'a>,
    #[serde(default)]
    content: List<Block<'a>>,
    stop_reason: Raw<'a>,
    #[serde(default)]
    usage: Maybe<Reported<'a>>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Raw<'a>,
    text: Raw<'a>,
    thinking: Raw<'a>,
    id: Raw<'a>,
    name: Raw<'a>,
    input: Raw<'a>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Raw<'a>,
    #[serde(default)]
    message: Maybe<Message<'a>>,
    index: Raw<'a>,
    #[serde(default)]
    content_block: Maybe<Block<'a>>,
    #[serde(default)]
    delta: Maybe<Delta<'a>>,
    #[serde(default)]
    usage: Maybe<Reported<'a>>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    partial_json: Raw<'a>,
    thinking: Raw<'a>,
    stop_reason: Raw<'a>,
}

#[derive(Deserialize)]
struct Reported<'a> {
    #[serde(borrow)]
    input_tokens: Raw<'a>,
    cache_read_input_tokens: Raw<'a>,
    cache_creation_input_tokens: Raw<'a>,
    #[serde(default)]
    cache_creation: Maybe<Creation<'a>>,
    output_tokens: Raw<'a>,
}

#[derive(Deserialize)]
struct Creation<'a> {
    #[serde(borrow)]
    ephemeral_5m_input_tokens: Raw<'a>,
    ephemeral_1h_input_tokens: Raw<'a>,
}

impl Messages {
    /// Reads a whole answer.
    pub(super) fn json(&mut self, draft: &mut Draft, body: &str) {
        let Ok(Maybe(Some(message))) = json::from_str::<Maybe<Message<'_>>>(body) else { return };
        self.read_message(draft, &message);
        if let Some(error) = message.error {
            draft.error(error);
        }
        draft.close_json(body);
    }

    /// Reads one event.
    pub(super) fn event(&mut self, draft: &mut Draft, name: Option<&str>, data: &str) -> Passing {
        let Ok(Maybe(Some(event))) = json::from_str::<Maybe<Event<'_>>>(data) else { return Passing::Forward };
        let kind = lenient::text(event.r#type);
        let index = count(event.index).unwrap_or(0);
        let kind = if name == Some("error") { name } else { kind.as_deref().or(name) };
        match kind {
            Some("content_block_delta") => {
                if let Some(delta) = &event.delta.0 {
                    self.read_delta(draft, index, delta);
                    match [delta.text, delta.thinking, delta.partial_json] {
                        [text @ Some(_), None, None] => draft.said_only(Piece::Text(0), text, data),
                        [None, thought @ Some(_), None] => draft.said_only(Piece::Reasoning, thought, data),
                        // What replaces the input of the start is no more of the same.
                        [None, None, json @ Some(_)] if self.whole_input != Some(index) => {
                            draft.said_only(Piece::Arguments((0, index)), json, data);
                        }
                        _ => {}
                    }
                }
            }
            Some("message_start") => {
                if let Some(message) = &event.message.0 {
                    self.read_message(draft, message);
                }
            }
            Some("content_block_start") => {
                if let Some(block) = &event.content_block.0 {
                    self.read_block(draft, index, block);
                }
            }
            Some("content_block_stop") => draft.compact_arguments((0, index)),
            Some("message_delta") => {
                draft.finish(0, event.delta.0.as_ref().and_then(|delta| delta.stop_reason));
                self.count(draft, event.usage.0.as_ref());
            }
            Some("message_stop") => {
                draft.close();
                return Passing::Last;
            }
            Some("error") if event.error.is_none() => draft.error_message("error"),
            _ => {
                if let Some(error) = event.error {
                    draft.error(error);
                }
            }
        }
        Passing::Forward
    }

    fn read_message(&mut self, draft: &mut Draft, message: &Message<'_>) {
        draft.origin(message.id, message.model);
        for (index, block) in message.content.0.iter().enumerate() {
            self.read_block(draft, index as u64, block);
        }
        draft.finish(0, message.stop_reason);
        self.count(draft, message.usage.0.as_ref());
    }

    /// A block of a whole message, or the start of one in a stream.
    fn read_block(&mut self, draft: &mut Draft, index: u64, block: &Block<'_>) {
        match lenient::text(block.r#type).as_deref() {
            Some("text") => draft.text(0, &lenient::text(block.text).unwrap_or_default()),
            Some("thinking") => draft.reasoning(&lenient::text(block.thinking).unwrap_or_default()),
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                draft.call((0, index), block.id, block.name);
                // A call without arguments has no fragments, and none ever says so.
                let input = lenient::text_or_json(block.input);
                draft.set_arguments((0, index), input.as_deref().unwrap_or("{}"));
                self.whole_input = Some(index);
            }
            _ => {}
        }
    }

    fn read_delta(&mut self, draft: &mut Draft, index: u64, delta: &Delta<'_>) {
        if let Some(text) = lenient::text(delta.text) {
            draft.text(0, &text);
        }
        if let Some(thinking) = lenient::text(delta.thinking) {
            draft.reasoning(&thinking);
        }
        let Some(fragment) = lenient::filled(delta.partial_json) else { return };
        if self.whole_input == Some(index) {
            self.whole_input = None;
            draft.set_arguments((0, index), &fragment);
        } else {
            draft.arguments((0, index), &fragment);
        }
    }

    /// Takes over what is reported; what is not keeps its value.
    fn count(&mut self, draft: &mut Draft, reported: Option<&Reported<'_>>) {
        let Some(reported) = reported else { return };
        let (old, creation) = (self.counts, reported.cache_creation.0.as_ref());
        self.counts = Counts {
            input: count(reported.input_tokens).or(old.input),
            cache_read: count(reported.cache_read_input_tokens).or(old.cache_read),
            cache_written: count(reported.cache_creation_input_tokens).or(old.cache_written),
            written_5m: creation.and_then(|of| count(of.ephemeral_5m_input_tokens)).or(old.written_5m),
            written_1h: creation.and_then(|of| count(of.ephemeral_1h_input_tokens)).or(old.written_1h),
            output: count(reported.output_tokens).or(old.output),
        };
        if self.counts != Counts::default() {
            draft.reply.usage = Some(self.counts.usage());
        }
    }
}

impl Counts {
    fn usage(&self) -> Usage {
        let cache_write_1h = self.written_1h.unwrap_or(0);
        // Without the split by lifetime, all of it lives five minutes.
        let undivided = self.cache_written.unwrap_or(0).saturating_sub(cache_write_1h);
        Usage {
            input: self.input.unwrap_or(0),
            cache_read: self.cache_read.unwrap_or(0),
            cache_write: undivided.max(self.written_5m.unwrap_or(0)),
            cache_write_1h,
            output: self.output.unwrap_or(0),
            ..Usage::default()
        }
    }
}
