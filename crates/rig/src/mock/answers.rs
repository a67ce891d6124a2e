//! What the mock says, in the form of each API.

use bytes::Bytes;
use memchr::memmem;

use super::Shape;
use crate::prompt::{ANTHROPIC_MODEL, OPENAI_MODEL};
use crate::words::Words;

/// Both flags stand near an end of the body, whatever a proxy adds; the history between is not read.
const LOOKED_AT: usize = 2048;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    Chat,
    Messages,
}

impl Dialect {
    pub(super) fn of(path: &str) -> Dialect {
        if path.ends_with("/messages") { Dialect::Messages } else { Dialect::Chat }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) is_stream: bool,
    pub(super) wants_usage: bool,
}

impl Asked {
    pub(super) fn read(body: &[u8]) -> Asked {
        let head = &body[..body.len().min(LOOKED_AT)];
        let tail = &body[body.len().saturating_sub(LOOKED_AT)..];
        let has = |text: &[u8]| memmem::find(head, text).is_some() || memmem::find(tail, text).is_some();
        Asked { is_stream: has(br#""stream":true"#), wants_usage: has(br#""include_usage":true"#) }
    }
}

pub(super) fn failure(dialect: Dialect) -> Bytes {
    Bytes::from_static(match dialect {
        Dialect::Chat => br#"{"error":{"message":"the mock fails as it was told","type":"server_error"}}"#,
        Dialect::Messages => {
            br#"{"type":"error","error":{"type":"api_error","message":"the mock fails as it was told"}}"#
        }
    })
}

pub(super) fn whole(dialect: Dialect, shape: &Shape, number: u64, words: &mut Words) -> Bytes {
    let (input, output) = (200, shape.answer_bytes / 4);
    let id = format!("{number:012}");
    let text = words.text(shape.answer_bytes);
    Bytes::from(match (dialect, shape.tools) {
        (Dialect::Chat, false) => format!(
            r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":1770000000,"model":"{OPENAI_MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{}}}}}"#,
            input + output
        ),
        (Dialect::Chat, true) => format!(
            r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":1770000000,"model":"{OPENAI_MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{id}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"{text}\"}}"}}}}]}},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{}}}}}"#,
            input + output
        ),
        (Dialect::Messages, _) => format!(
            r#"{{"id":"msg_{id}","type":"message","role":"assistant","model":"{ANTHROPIC_MODEL}","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":{input},"output_tokens":{output}}}}}"#
        ),
    })
}

/// The events of a stream: `Some` until it is over. `chunk` is true for those that carry text.
pub(super) struct Script {
    dialect: Dialect,
    wants_usage: bool,
    chunks: usize,
    seed: u32,
    at: usize,
}

pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) is_chunk: bool,
}

impl Script {
    pub(super) fn new(dialect: Dialect, asked: Asked, chunks: usize, seed: u32) -> Script {
        Script { dialect, wants_usage: asked.wants_usage, chunks, seed, at: 0 }
    }

    pub(super) fn next(&mut self) -> Option<Piece> {
        let at = self.at;
        self.at += 1;
        let text = match self.dialect {
            Dialect::Chat => self.chat(at),
            Dialect::Messages => self.messages(at),
        }?;
        Some(Piece { bytes: Bytes::from(text), is_chunk: (1..=self.chunks).contains(&at) })
    }

    fn chat(&self, at: usize) -> Option<String> {
        let event = |choices: &str, rest: &str| {
            format!(
                "data: {{\"id\":\"chatcmpl-{:07}\",\"object\":\"chat.completion.chunk\",\"created\":1770000000,\"model\":\"{OPENAI_MODEL}\",\"choices\":[{choices}]{rest}}}\n\n",
                self.seed
            )
        };
        let after = at.checked_sub(self.chunks + 1);
        Some(match (at, after) {
            (0, _) => event(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#, ""),
            (_, None) => {
                event(&format!(r#"{{"index":0,"delta":{{"content":"{}"}},"finish_reason":null}}"#, self.word(at)), "")
            }
            (_, Some(0)) => event(r#"{"index":0,"delta":{},"finish_reason":"stop"}"#, ""),
            (_, Some(1)) if self.wants_usage => event(
                "",
                &format!(
                    r#","usage":{{"prompt_tokens":200,"completion_tokens":{0},"total_tokens":{1}}}"#,
                    self.chunks,
                    self.chunks + 200
                ),
            ),
            (_, Some(n)) if n == 1 + usize::from(self.wants_usage) => "data: [DONE]\n\n".to_owned(),
            _ => return None,
        })
    }

    fn messages(&self, at: usize) -> Option<String> {
        let after = at.checked_sub(self.chunks + 1);
        Some(match (at, after) {
            (0, _) => format!(
                "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"id\":\"msg_{:07}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"{ANTHROPIC_MODEL}\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":200,\"output_tokens\":1}}}}}}\n\nevent: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n",
                self.seed
            ),
            (_, None) => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n",
                self.word(at)
            ),
            (_, Some(0)) => format!(
                "event: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":0}}\n\nevent: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":{}}}}}\n\nevent: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n",
                self.chunks
            ),
            _ => return None,
        })
    }

    /// Five bytes that are not those of the chunk before, nor of the last stream.
    fn word(&self, at: usize) -> String {
        let mut number =
            self.seed.wrapping_mul(2_654_435_761).wrapping_add(u32::try_from(at).unwrap_or(0).wrapping_mul(40_503));
        number ^= number >> 13;
        let letter = |shift: u32| char::from(b'a' + u8::try_from((number >> shift) % 26).unwrap_or(0));
        format!("{}{}{}{} ", letter(0), letter(7), letter(14), letter(21))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn answers_are_json_in_every_form() {
        let mut words = Words::new(3);
        for (dialect, tools) in [(Dialect::Chat, false), (Dialect::Chat, true), (Dialect::Messages, false)] {
            let shape = Shape { tools, ..Shape::default() };
            let answer: Value = serde_json::from_slice(&whole(dialect, &shape, 1, &mut words)).unwrap();
            assert!(answer["usage"].is_object(), "{answer}");
        }
    }

    #[test]
    fn streams_hold_their_chunks_and_end() {
        for (dialect, wants_usage, others) in
            [(Dialect::Chat, false, 3), (Dialect::Chat, true, 4), (Dialect::Messages, false, 5)]
        {
            let mut script = Script::new(dialect, Asked { is_stream: true, wants_usage }, 7, 1);
            let (mut chunks, mut text) = (0, String::new());
            while let Some(piece) = script.next() {
                chunks += usize::from(piece.is_chunk);
                text.push_str(std::str::from_utf8(&piece.bytes).unwrap());
            }
            assert_eq!(chunks, 7);
            let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            assert_eq!(data.len(), 7 + others);
            for line in data.iter().filter(|line| **line != "[DONE]") {
                serde_json::from_str::<Value>(line).unwrap();
            }
        }
    }
}
