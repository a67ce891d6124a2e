//! The trace format: one run per line, its messages stored once, each step naming those that its request had.
//!
//! Messages stay slices of the line: a step costs what is new in it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::{Dialect, Reply, Tap};

use super::{BEGINNING, Judged, Label, Replay, STEP_MS, call_of};

/// A run of the trace format.
#[derive(Debug, Deserialize)]
pub struct Trace<'a> {
    /// The run.
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow, default)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    class: Option<Cow<'a, str>>,
    #[serde(default)]
    loop_onset_step: Option<u32>,
    #[serde(borrow, default)]
    shape: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    prefix_len: Option<usize>,
    req: Option<Vec<usize>>,
    resp: Option<usize>,
    /// Seconds from the first answer of the run to this one.
    t: Option<f64>,
    usage: Option<Tokens>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// What a step's request and answer are.
pub struct Exchange<'a> {
    /// The messages of the request.
    pub request: Vec<&'a RawValue>,
    /// The message that answered it, where one is recorded.
    pub answer: Option<&'a RawValue>,
}

/// A line that is a trace, but not a right one.
#[derive(Debug, thiserror::Error)]
pub enum BadTrace {
    /// Not the JSON of a run.
    #[error("not a run of the trace format: {0}")]
    Json(#[from] serde_json::Error),
    /// A step without what makes it one.
    #[error("`steps[{0}]` needs `prefix_len`, or `req` and `resp`")]
    NoRequest(usize),
    /// A step that names a message that is not there.
    #[error("`steps[{step}]` names message {message}, and there are {messages}")]
    NoMessage {
        /// Its place in `steps`.
        step: usize,
        /// The message.
        message: usize,
        /// How many there are.
        messages: usize,
    },
}

impl<'a> Trace<'a> {
    /// Reads one line.
    ///
    /// # Errors
    /// When it is not a run, or a step names a message that is not there.
    pub fn parse(line: &'a str) -> Result<Trace<'a>, BadTrace> {
        let trace: Trace<'a> = serde_json::from_str(line)?;
        for (at, step) in trace.steps.iter().enumerate() {
            trace.check(at, step)?;
        }
        Ok(trace)
    }

    /// The number of its steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Request and answer of each step, as the agent's provider saw them.
    pub fn exchanges(&self) -> impl Iterator<Item = Exchange<'a>> {
        self.steps.iter().map(|step| {
            let message = |at: usize| self.messages.get(at).copied();
            match (step.prefix_len, &step.req) {
                (Some(length), _) => Exchange {
                    request: self.messages.get(..length).unwrap_or_default().to_vec(),
                    answer: message(length),
                },
                (None, request) => Exchange {
                    request: request.iter().flatten().filter_map(|at| message(*at)).collect(),
                    answer: step.resp.and_then(message),
                },
            }
        })
    }

    /// Whether each request is one text that grows, instead of a list of messages.
    #[must_use]
    pub fn is_scratchpad(&self) -> bool {
        self.shape.as_deref() == Some("scratchpad")
    }

    fn check(&self, at: usize, step: &Step) -> Result<(), BadTrace> {
        let messages = self.messages.len();
        let bad = |message: usize| BadTrace::NoMessage { step: at, message, messages };
        match (step.prefix_len, &step.req) {
            (Some(length), _) if length > messages => Err(bad(length)),
            (Some(_), _) => Ok(()),
            (None, Some(request)) => {
                let beyond = request.iter().chain(&step.resp).find(|message| **message >= messages);
                beyond.map_or(Ok(()), |message| Err(bad(*message)))
            }
            (None, None) => Err(BadTrace::NoRequest(at)),
        }
    }
}

/// Judges a run of the trace format.
#[must_use]
pub fn judge(trace: &Trace<'_>, replay: &Replay) -> Judged {
    let mut follow = replay.follow();
    let model = trace.model.as_deref();
    let mut now = BEGINNING;
    for (step, exchange) in trace.steps.iter().zip(trace.exchanges()) {
        if follow.is_stopped() {
            follow.count(model);
        } else if trace.is_scratchpad() {
            let pad = scratchpad(&exchange.request);
            let call = call_of(Dialect::OpenaiChat, model, pad.iter().map(AsRef::as_ref).collect());
            follow.arrive(&call, replay.history(&call).map(|history| history.end), now);
        } else {
            let call = call_of(Dialect::OpenaiChat, model, exchange.request);
            follow.arrive(&call, replay.history(&call).map(|history| history.end), now);
        }
        now = step.time().unwrap_or(Timestamp(now.0 + STEP_MS)).max(now);
        let reply = reply(exchange.answer, step.usage, follow.is_stopped());
        follow.depart(Dialect::OpenaiChat, &reply, exchange.answer.is_some(), now);
    }
    Judged {
        run_id: trace.run_id.clone().into_owned(),
        agent: trace.agent.clone().map(Cow::into_owned),
        label: trace.class.clone().map(|class| Label { class: class.into_owned(), onset: trace.loop_onset_step }),
        outcome: follow.finish(),
    }
}

impl Step {
    fn time(&self) -> Option<Timestamp> {
        let ms = self.t.filter(|t| t.is_finite())? * 1e3;
        Some(Timestamp(BEGINNING.0 + ms as i64))
    }
}

/// The one user message that a completion-style agent sends: all that was said so far, end to end.
pub fn scratchpad(messages: &[&RawValue]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow, default)]
        content: Option<Content<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content<'a> {
        Text(#[serde(borrow)] Cow<'a, str>),
        Parts(#[serde(borrow)] Vec<Part<'a>>),
    }
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default)]
        text: Cow<'a, str>,
    }
    let mut text = String::new();
    for raw in messages {
        match serde_json::from_str::<Message<'_>>(raw.get()).ok()?.content {
            Some(Content::Text(piece)) => text.push_str(&piece),
            Some(Content::Parts(parts)) => parts.iter().for_each(|part| text.push_str(&part.text)),
            None => {}
        }
    }
    to_raw_value(&serde_json::json!({"role": "user", "content": text})).ok()
}

/// The answer as the provider would have sent it, read by what reads answers. Of one that would not have come only the
/// tokens matter.
fn reply(answer: Option<&RawValue>, tokens: Option<Tokens>, is_stopped: bool) -> Reply {
    let mut tap = Tap::new(Dialect::OpenaiChat);
    if let Some(message) = answer.filter(|_| !is_stopped) {
        tap.json(format!(r#"{{"choices":[{{"index":0,"message":{}}}]}}"#, message.get()).as_bytes());
    }
    let mut reply = tap.into_reply();
    reply.usage = tokens.map(|tokens| Usage {
        input: tokens.prompt_tokens.unwrap_or(0),
        output: tokens.completion_tokens.unwrap_or(0),
        ..Usage::default()
    });
    reply
}

#[cfg(test)]
mod tests;
