//! Orders to the mock inside a request, for tests that drive a real SDK and cannot hold a [`Script`].
//!
//! The same names work as `[[mock:NAME VALUE]]` in the last user or tool text, as a header `x-mock-NAME: VALUE` and as
//! a query parameter `mock-NAME=VALUE`:
//!
//! | name | value |
//! |---|---|
//! | `text`, `refusal`, `reasoning`, `finish` | the text |
//! | `tool` | `name=NAME args=JSON`; repeated for parallel calls |
//! | `status`, `retry-after`, `message` | an error |
//! | `usage` | `input=1 output=2 cached=3 write5m=4 write1h=5 reasoning=6`; `no-usage` for none |
//! | `delta` | characters in a delta |
//! | `dribble`, `stall`, `garble`, `whitespace`, `oversized` | a number |
//! | `cut`, `reset` | `head`, `events=N` or `bytes=N` |
//! | `encode` | `gzip`, `br`, `zstd`, `deflate` |
//! | `crlf`, `comments`, `chunked`, `content-length`, `hold`, `trailers` | nothing |
//!
//! Two more hold for a whole conversation, wherever they stand in it: `agent steps=N tool=NAME args=JSON` calls the
//! tool N times and then answers, `stuck tool=NAME args=JSON` calls it for ever. `$N` in the arguments becomes the
//! number of the step. `stall` and `hold` last until the script's own gate is opened (`POST /__release`).

use crate::fault::{CutAt, CutHow, Encoding, Fault, Gate};
use crate::reply::{Failure, Reply, Reported, ToolCall};
use crate::script::Heard;
use serde_json::Value;
use sprag_core::usage::Usage;
use std::time::Duration;

const OPENING: &str = "[[mock:";

/// Applies all directives of a request to `reply`. The error says what was not understood.
pub(crate) fn apply(reply: &mut Reply, heard: &Heard<'_>, query: &str, gate: &Gate) -> Result<(), String> {
    for (name, value) in in_text(heard.said) {
        match name {
            "agent" | "stuck" => follow_course(reply, name, value, heard)?,
            _ => {}
        }
    }
    for (name, value) in in_text(heard.last) {
        if name != "agent" && name != "stuck" {
            set(reply, name, value, gate)?;
        }
    }
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let Some(name) = key.strip_prefix("mock-") {
            set(reply, name, &unescape(value), gate)?;
        }
    }
    for (key, value) in heard.headers {
        if let Some(name) = key.as_str().strip_prefix("x-mock-") {
            set(reply, name, &String::from_utf8_lossy(value.as_bytes()), gate)?;
        }
    }
    Ok(())
}

/// The text without its directives.
pub(crate) fn strip(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPENING) {
        kept.push_str(&rest[..start]);
        rest = match directive_length(&rest[start..]) {
            Some(length) => &rest[start + length..],
            None => "",
        };
    }
    kept.push_str(rest);
    kept.trim().into()
}

fn in_text(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPENING) {
        let Some(length) = directive_length(&rest[start..]) else { break };
        let inner = &rest[start + OPENING.len()..start + length - 2];
        let (name, value) = inner.split_once(' ').unwrap_or((inner, ""));
        found.push((name, value.trim()));
        rest = &rest[start + length..];
    }
    found
}

/// Bytes up to and with the closing brackets. Brackets inside JSON arguments do not close.
fn directive_length(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + text.get(from..)?.find("]]")?;
        let whole = match text[..end].split_once("args=") {
            Some((_, args)) => serde_json::from_str::<Value>(args).is_ok(),
            None => true,
        };
        if whole {
            return Some(end + 2);
        }
        from = end + 1;
    }
}

fn set(reply: &mut Reply, name: &str, value: &str, gate: &Gate) -> Result<(), String> {
    match name {
        "text" => reply.text = Some(value.into()),
        "refusal" => (reply.refusal, reply.text) = (Some(value.into()), Some(String::new())),
        "reasoning" => reply.reasoning = value.into(),
        "finish" => reply.finish = Some(value.into()),
        "delta" => reply.delta_chars = number(name, value)?.max(1),
        "tool" => {
            let call = tool_call(value, None, 1)?;
            reply.text.get_or_insert_default();
            reply.tool_calls.push(call);
        }
        "status" => failure(reply).status = u16::try_from(number(name, value)?).unwrap_or(500),
        "retry-after" => failure(reply).retry_after = Some(number(name, value)? as u64),
        "message" => failure(reply).message = value.into(),
        "usage" => reply.usage = Reported::Given(usage(value)?),
        "no-usage" => reply.usage = Reported::Absent,
        _ => reply.faults.insert(0, fault(name, value, gate)?),
    }
    Ok(())
}

fn fault(name: &str, value: &str, gate: &Gate) -> Result<Fault, String> {
    Ok(match name {
        "dribble" => Fault::Dribble { bytes: number(name, value)?.max(1), every: Duration::ZERO },
        "stall" => Fault::Stall { after_events: number(name, value)?, until: gate.clone() },
        "cut" => Fault::Cut { at: cut_at(value)?, how: CutHow::Close },
        "reset" => Fault::Cut { at: cut_at(value)?, how: CutHow::Reset },
        "garble" => Fault::Garble { event: number(name, value)? },
        "hold" => Fault::Hold(gate.clone()),
        "encode" => match Encoding::ALL.into_iter().find(|encoding| encoding.name() == value) {
            Some(encoding) => Fault::Encode(encoding),
            None => return Err(format!("mock directive encode: unknown encoding {value:?}")),
        },
        "chunked" => Fault::Chunked,
        "content-length" => Fault::ContentLength,
        "crlf" => Fault::Crlf,
        "comments" => Fault::Comments,
        "whitespace" => Fault::Whitespace(number(name, value)?),
        "oversized" => Fault::Oversized(number(name, value)?),
        "trailers" => Fault::Trailers(vec![("x-mock-trailer".into(), "end".into())]),
        _ => return Err(format!("unknown mock directive {name:?}")),
    })
}

fn follow_course(reply: &mut Reply, name: &str, value: &str, heard: &Heard<'_>) -> Result<(), String> {
    let step = heard.turns + 1;
    if name == "agent" && heard.turns >= number("agent steps", word(value, "steps").unwrap_or("3"))? {
        reply.text = Some(format!("Finished after {} steps.", heard.turns));
        return Ok(());
    }
    let default_tool = heard.tools.first().map(String::as_str);
    reply.text = Some(String::new());
    reply.tool_calls = vec![tool_call(value, default_tool, step)?];
    Ok(())
}

fn tool_call(value: &str, default_tool: Option<&str>, step: usize) -> Result<ToolCall, String> {
    let (words, arguments) = value.split_once("args=").unwrap_or((value, "{}"));
    let name = word(words, "name").or(word(words, "tool")).or(default_tool);
    let name = name.ok_or_else(|| format!("mock directive without a tool name: {value:?}"))?;
    Ok(ToolCall { name: name.into(), arguments: arguments.trim().replace("$N", &step.to_string()) })
}

fn failure(reply: &mut Reply) -> &mut Failure {
    reply.failure.get_or_insert_with(|| Failure {
        status: 500,
        message: "The mock was told to fail.".into(),
        retry_after: None,
    })
}

fn usage(value: &str) -> Result<Usage, String> {
    let mut usage = Usage::default();
    for pair in value.split_whitespace() {
        let (key, text) = pair.split_once('=').unwrap_or((pair, ""));
        let count = number(key, text)? as u64;
        match key {
            "input" => usage.input = count,
            "output" => usage.output = count,
            "cached" => usage.cache_read = count,
            "write5m" => usage.cache_write = count,
            "write1h" => usage.cache_write_1h = count,
            "reasoning" => usage.reasoning = count,
            _ => return Err(format!("mock directive usage: unknown part {key:?}")),
        }
    }
    Ok(usage)
}

fn cut_at(value: &str) -> Result<CutAt, String> {
    match value.split_once('=') {
        Some(("events", count)) => Ok(CutAt::Events(number("cut", count)?)),
        Some(("bytes", count)) => Ok(CutAt::Bytes(number("cut", count)?)),
        None if value == "head" => Ok(CutAt::Head),
        _ => Err(format!("mock directive cut: expected head, events=N or bytes=N, got {value:?}")),
    }
}

fn number(name: &str, value: &str) -> Result<usize, String> {
    value.trim().parse().map_err(|_| format!("mock directive {name}: expected a number, got {value:?}"))
}

fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let words = text.split_once("args=").map_or(text, |(before, _)| before);
    words.split_whitespace().find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

/// Undoes percent escapes and `+`.
fn unescape(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escape = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        rest = tail;
        match (first, escape.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
