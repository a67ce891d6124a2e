//! Which format a line is in, and what is done with it.
//!
//! A file usually holds lines of one kind: each is tried as what the line before was, and looked at more closely only
//! when it is not that.

use std::fmt::Display;
use std::io;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::capture::Captures;
use super::claude_code::ClaudeCode;
use super::codex::Codex;
use super::lines::Lines;
use super::trace::{self, Trace};
use super::{Judged, Replay};

/// What a reader of recordings tells its caller.
pub trait Listener {
    /// A run is over and judged.
    ///
    /// # Errors
    /// When the caller cannot go on.
    fn judged(&mut self, run: Judged) -> io::Result<()>;
    /// A line could not be read, and was passed over.
    fn unread(&mut self, line: u64, why: &dyn Display);
}

enum Format<'a> {
    Trace,
    Capture(Box<Captures<'a>>),
    ClaudeCode(ClaudeCode<'a>),
    Codex(Box<Codex<'a>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Trace,
    Capture,
    ClaudeCode,
    Codex,
}

/// The fields that tell the formats apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    #[serde(default, rename = "run_id")]
    run_id: Option<IgnoredAny>,
    #[serde(default)]
    steps: Option<IgnoredAny>,
    #[serde(default)]
    request: Option<IgnoredAny>,
    #[serde(default)]
    response: Option<IgnoredAny>,
    #[serde(default)]
    payload: Option<IgnoredAny>,
    #[serde(default, rename = "type")]
    kind: Option<IgnoredAny>,
    #[serde(default)]
    session_id: Option<IgnoredAny>,
    #[serde(default)]
    uuid: Option<IgnoredAny>,
    #[serde(default)]
    leaf_uuid: Option<IgnoredAny>,
    #[serde(default)]
    message_id: Option<IgnoredAny>,
}

const EXPECTED: &str = "expected a run of the trace format (`run_id`, `messages`, `steps`), an exchange (`request`, \
                        `response`), or a line of a Claude Code or Codex session";

/// Judges the runs of one file. `name` is what its run is called where nothing else names it.
///
/// # Errors
/// When the file cannot be read on, or the listener cannot go on.
pub fn read(replay: &Replay, name: &str, lines: &mut Lines<'_>, listener: &mut dyn Listener) -> io::Result<()> {
    let mut format = Format::Trace;
    while let Some((number, line)) = lines.next_line()? {
        let line = match line {
            Ok(line) => line,
            Err(why) => {
                listener.unread(number, &why);
                continue;
            }
        };
        let Err(why) = take(&mut format, replay, line, listener)? else { continue };
        match kind_of(line) {
            Err(why) => listener.unread(number, &why),
            Ok(kind) if kind == format.kind() => listener.unread(number, &why),
            Ok(kind) => {
                format.end(name, listener)?;
                format = Format::new(kind, replay, name);
                if let Err(why) = take(&mut format, replay, line, listener)? {
                    listener.unread(number, &why);
                }
            }
        }
    }
    format.end(name, listener)
}

/// Takes a line as one of this format, or says why it is none.
fn take(
    format: &mut Format<'_>,
    replay: &Replay,
    line: &str,
    listener: &mut dyn Listener,
) -> io::Result<Result<(), String>> {
    match format {
        Format::Trace => match Trace::parse(line) {
            Ok(trace) => listener.judged(trace::judge(&trace, replay)).map(Ok),
            Err(why) => Ok(Err(why.to_string())),
        },
        Format::Capture(captures) => captures.line(line, listener),
        Format::ClaudeCode(sessions) => sessions.line(line, listener),
        Format::Codex(session) => Ok(session.line(line)),
    }
}

fn kind_of(line: &str) -> Result<Kind, String> {
    let probe: Probe = serde_json::from_str(line).map_err(|error| format!("{EXPECTED}; {error}"))?;
    if probe.run_id.is_some() || probe.steps.is_some() {
        Ok(Kind::Trace)
    } else if probe.request.is_some() && probe.response.is_some() {
        Ok(Kind::Capture)
    } else if probe.kind.is_some() && probe.payload.is_some() {
        Ok(Kind::Codex)
    } else if probe.kind.is_some()
        && [probe.session_id, probe.uuid, probe.leaf_uuid, probe.message_id].iter().any(Option::is_some)
    {
        Ok(Kind::ClaudeCode)
    } else {
        Err(EXPECTED.to_owned())
    }
}

impl<'a> Format<'a> {
    fn new(kind: Kind, replay: &'a Replay, name: &str) -> Format<'a> {
        match kind {
            Kind::Trace => Format::Trace,
            Kind::Capture => Format::Capture(Box::new(Captures::new(replay, name))),
            Kind::ClaudeCode => Format::ClaudeCode(ClaudeCode::new(replay)),
            Kind::Codex => Format::Codex(Box::new(Codex::new(replay))),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Format::Trace => Kind::Trace,
            Format::Capture(_) => Kind::Capture,
            Format::ClaudeCode(_) => Kind::ClaudeCode,
            Format::Codex(_) => Kind::Codex,
        }
    }

    /// No more lines of this format come.
    fn end(&mut self, name: &str, listener: &mut dyn Listener) -> io::Result<()> {
        match std::mem::replace(self, Format::Trace) {
            Format::Trace => Ok(()),
            Format::Capture(mut captures) => captures.end(listener),
            Format::ClaudeCode(mut sessions) => sessions.end(listener),
            Format::Codex(session) => session.end(name).map_or(Ok(()), |run| listener.judged(run)),
        }
    }
}
