//! Session logs of Claude Code: `~/.claude/projects/*/*.jsonl`.
//!
//! A line is a message of the user or a part of an answer, in Anthropic's form. Sub-agents are runs of their own; they
//! have an `agentId`, or in older logs only the mark `isSidechain`.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;
use sprag_core::wire::Dialect;

use super::conversation::Conversation;
use super::open_runs::OpenRuns;
use super::read::Listener;
use super::{Judged, Replay, moment};

/// The sessions of one file.
pub(super) struct ClaudeCode<'a> {
    replay: &'a Replay,
    runs: OpenRuns<Session<'a>>,
    sidechains: u32,
}

struct Session<'a> {
    conversation: Conversation<'a>,
    /// The line heard last.
    last: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uuid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parent_uuid: Option<Cow<'a, str>>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_visible_in_transcript_only: bool,
    /// The program's own words about an error, not the model's.
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

impl<'a> ClaudeCode<'a> {
    pub(super) fn new(replay: &'a Replay) -> ClaudeCode<'a> {
        ClaudeCode { replay, runs: OpenRuns::new(), sidechains: 0 }
    }

    /// Takes one line. Lines about other things than messages are passed over.
    pub(super) fn line(&mut self, line: &str, listener: &mut dyn Listener) -> io::Result<Result<(), String>> {
        let line: Line<'_> = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => return Ok(Err(format!("not a line of a Claude Code session: {error}"))),
        };
        let is_boundary = line.subtype.as_deref() == Some("compact_boundary");
        let is_message = matches!(line.kind.as_ref(), "user" | "assistant") && line.message.is_some();
        if !is_boundary && (!is_message || line.is_visible_in_transcript_only || line.is_api_error_message) {
            return Ok(Ok(()));
        }
        let Some(session) = &line.session_id else { return Ok(Err("a message without `sessionId`".to_owned())) };
        let name = self.name(session, &line);
        let begin =
            || Session { conversation: Conversation::new(self.replay, Dialect::Anthropic), last: String::new() };
        let (run, left) = self.runs.get(&name, begin);
        let taken = take(&mut run.conversation, &line, is_boundary);
        run.last = line.uuid.unwrap_or_default().into_owned();
        if let Some((name, run)) = left {
            listener.judged(judged(name, run))?;
        }
        Ok(taken)
    }

    /// The file is over, and all its sessions.
    pub(super) fn end(&mut self, listener: &mut dyn Listener) -> io::Result<()> {
        self.runs.take().into_iter().try_for_each(|(name, run)| listener.judged(judged(name, run)))
    }

    fn name(&mut self, session: &str, line: &Line<'_>) -> String {
        if let Some(agent) = &line.agent_id {
            return format!("{session}:{agent}");
        }
        if !line.is_sidechain {
            return session.to_owned();
        }
        // Goes on where its parent stands; results of parallel calls stand beside it.
        let is_sidechain = |name: &str| name.strip_prefix(session).is_some_and(|rest| rest.starts_with(":sidechain-"));
        let mut known = self.runs.latest().filter(|(name, _)| is_sidechain(name)).peekable();
        if let Some(parent) = &line.parent_uuid
            && let Some(latest) = known.peek().map(|(name, _)| *name)
        {
            return known.find(|(_, run)| run.last == *parent).map_or(latest, |(name, _)| name).to_owned();
        }
        drop(known);
        self.sidechains += 1;
        format!("{session}:sidechain-{}", self.sidechains)
    }
}

fn take(conversation: &mut Conversation<'_>, line: &Line<'_>, is_boundary: bool) -> Result<(), String> {
    let at = line.timestamp.as_deref().and_then(moment);
    let Some(message) = line.message.filter(|_| !is_boundary) else {
        conversation.restart();
        return Ok(());
    };
    if line.kind == "user" {
        conversation.input(message, at);
        return Ok(());
    }
    let answer: Answer<'_> =
        serde_json::from_str(message.get()).map_err(|error| format!("not an answer of the model: {error}"))?;
    for part in answer.content {
        conversation.said(answer.id.as_deref(), answer.model.as_deref(), part, at);
    }
    answer.usage.into_iter().for_each(|usage| conversation.used(usage));
    Ok(())
}

fn judged(run_id: String, run: Session<'_>) -> Judged {
    Judged { run_id, agent: Some("claude-code".to_owned()), label: None, outcome: run.conversation.finish() }
}
