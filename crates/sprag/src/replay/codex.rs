//! Session logs of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, one session per file.
//!
//! Items of the Responses API stand in the order in which they came. Nothing says where an answer ends: it goes on
//! until something is given to the model.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use sprag_core::wire::Dialect;

use super::conversation::Conversation;
use super::{Judged, Replay, moment};

/// The session of one file.
pub(super) struct Codex<'a> {
    conversation: Conversation<'a>,
    id: Option<String>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The fields of all kinds of payload that say what they are.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    info: Option<Info<'a>>,
    /// What a compacted history was replaced by.
    #[serde(borrow, default)]
    replacement_history: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(borrow, default)]
    last_token_usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    reasoning_output_tokens: u64,
}

impl<'a> Codex<'a> {
    pub(super) fn new(replay: &'a Replay) -> Codex<'a> {
        let conversation = Conversation::new(replay, Dialect::OpenaiResponses);
        Codex { conversation, id: None, model: None }
    }

    /// Takes one line. Lines about other things than the conversation are passed over.
    pub(super) fn line(&mut self, line: &str) -> Result<(), String> {
        let bad = |error: serde_json::Error| format!("not a line of a Codex session: {error}");
        let line: Line<'_> = serde_json::from_str(line).map_err(bad)?;
        if !matches!(line.kind.as_ref(), "session_meta" | "turn_context" | "response_item" | "compacted" | "event_msg")
        {
            return Ok(());
        }
        let payload: Payload<'_> = serde_json::from_str(line.payload.get()).map_err(bad)?;
        match line.kind.as_ref() {
            // A session that was forked repeats the first lines of the other one.
            "session_meta" if self.id.is_none() => self.id = payload.id.map(Cow::into_owned),
            "turn_context" => self.model = payload.model.map(Cow::into_owned).or(self.model.take()),
            "response_item" => self.item(&payload, &line),
            "event_msg" => {
                let usage = payload.info.and_then(|info| usage(info.last_token_usage?));
                usage.into_iter().for_each(|usage| self.conversation.used(&usage));
            }
            "compacted" => self.compacted(&payload),
            _ => {}
        }
        Ok(())
    }

    /// The file is over; `name` is its own, where the log does not name the session.
    pub(super) fn end(self, name: &str) -> Option<Judged> {
        let outcome = self.conversation.finish();
        let run_id = self.id.unwrap_or_else(|| name.to_owned());
        (outcome.total.steps > 0).then(|| Judged { run_id, agent: Some("codex".to_owned()), label: None, outcome })
    }

    fn item(&mut self, payload: &Payload<'_>, line: &Line<'_>) {
        let at = line.timestamp.as_deref().and_then(moment);
        let kind = payload.kind.as_deref().unwrap_or("message");
        let is_model = payload.role.as_deref() == Some("assistant") || kind == "reasoning" || kind.ends_with("_call");
        if is_model {
            self.conversation.said(None, self.model.as_deref(), line.payload, at);
        } else {
            self.conversation.input(line.payload, at);
        }
    }

    fn compacted(&mut self, payload: &Payload<'_>) {
        self.conversation.restart();
        match (&payload.replacement_history, &payload.message) {
            (Some(items), _) => items.iter().for_each(|item| self.conversation.input(item, None)),
            (None, Some(summary)) => {
                let message = to_raw_value(&serde_json::json!({"role": "user", "content": summary}));
                message.into_iter().for_each(|message| self.conversation.input(&message, None));
            }
            (None, None) => {}
        }
    }
}

/// Tokens in the words of the API.
fn usage(raw: &RawValue) -> Option<Box<RawValue>> {
    let tokens: Tokens = serde_json::from_str(raw.get()).ok()?;
    to_raw_value(&serde_json::json!({
        "input_tokens": tokens.input_tokens,
        "input_tokens_details": {"cached_tokens": tokens.cached_input_tokens},
        "output_tokens": tokens.output_tokens,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning_output_tokens},
    }))
    .ok()
}
