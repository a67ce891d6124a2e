//! Which reply goes to which request.
//!
//! Rules are tried in order and the first that fits decides. Directives in the request itself
//! (see the `directive` module) are applied on top of the reply.

use crate::fault::Gate;
use crate::reply::Reply;
use http::HeaderMap;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the provider does. Without rules it echoes.
#[derive(Debug)]
pub struct Script {
    pub(crate) strict: bool,
    pub(crate) refuse_expect: Option<u16>,
    pub(crate) gate: Gate,
    rules: Vec<Rule>,
}

/// When a rule fits.
#[derive(Clone, Debug)]
pub enum When {
    /// Always.
    Always,
    /// The last user or tool text contains this.
    Last(String),
    /// Any user or tool text of the conversation contains this.
    Said(String),
    /// The model is this one.
    Model(String),
    /// The path begins with this; also fits paths that no dialect knows.
    Path(String),
    /// A header has this value.
    Header(String, String),
}

/// What a rule looks at.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) model: &'a str,
    /// The last user or tool text.
    pub(crate) last: &'a str,
    /// All user and tool texts, of earlier requests of a thread too.
    pub(crate) said: &'a str,
    /// How often the model has spoken in this conversation.
    pub(crate) turns: usize,
    /// Names of the tools that the client declared.
    pub(crate) tools: &'a [String],
}

#[derive(Debug)]
struct Rule {
    when: When,
    replies: Vec<Reply>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    /// How often the rule was used: one answer after the other, whoever asks.
    Uses(AtomicUsize),
    /// How often the model has spoken: each conversation has its own place in the list.
    Turns,
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

impl Script {
    /// Echoes, and refuses body fields that the real provider does not know.
    #[must_use]
    pub fn new() -> Script {
        Script { strict: true, refuse_expect: None, gate: Gate::new(), rules: Vec::new() }
    }

    /// Always the same reply.
    #[must_use]
    pub fn always(reply: Reply) -> Script {
        Script::new().when(When::Always, [reply])
    }

    /// An agent's whole task: `steps` different tool calls, then a text. Every conversation gets its own course.
    #[must_use]
    pub fn healthy_agent(steps: usize, answer: &str) -> Script {
        Script::new().healthy_course(When::Always, steps, answer)
    }

    /// The course of [`Script::healthy_agent`] as one rule among others.
    #[must_use]
    pub fn healthy_course(self, when: When, steps: usize, answer: &str) -> Script {
        self.agent(when, agent_steps(steps, answer))
    }

    /// Replies when the last user or tool text contains `needle`.
    #[must_use]
    pub fn on(self, needle: impl Into<String>, reply: Reply) -> Script {
        self.when(When::Last(needle.into()), [reply])
    }

    /// Replies in turn while the rule fits: the first, the second, and so on; the last one stays.
    #[must_use]
    pub fn when(mut self, when: When, replies: impl IntoIterator<Item = Reply>) -> Script {
        let position = Position::Uses(AtomicUsize::new(0));
        self.rules.push(Rule { when, replies: replies.into_iter().collect(), position });
        self
    }

    /// As [`Script::when`], but each conversation walks through the replies by itself.
    #[must_use]
    pub fn agent(mut self, when: When, replies: impl IntoIterator<Item = Reply>) -> Script {
        self.rules.push(Rule { when, replies: replies.into_iter().collect(), position: Position::Turns });
        self
    }

    /// Lets unknown body fields pass.
    #[must_use]
    pub fn lenient(mut self) -> Script {
        self.strict = false;
        self
    }

    /// Answers `expect: 100-continue` with this status, without asking for the body.
    #[must_use]
    pub fn refuse_expect(mut self, status: u16) -> Script {
        self.refuse_expect = Some(status);
        self
    }

    pub(crate) fn choose(&self, heard: &Heard<'_>) -> Option<Reply> {
        let rule = self.rules.iter().find(|rule| rule.when.fits(heard))?;
        let place = match &rule.position {
            Position::Uses(uses) => uses.fetch_add(1, Ordering::SeqCst),
            Position::Turns => heard.turns,
        };
        rule.replies.get(place).or(rule.replies.last()).cloned()
    }

    /// Starts all sequences again.
    pub(crate) fn rewind(&self) {
        for rule in &self.rules {
            if let Position::Uses(uses) = &rule.position {
                uses.store(0, Ordering::SeqCst);
            }
        }
        self.gate.close();
    }
}

impl When {
    fn fits(&self, heard: &Heard<'_>) -> bool {
        match self {
            When::Always => true,
            When::Last(needle) => heard.last.contains(needle),
            When::Said(needle) => heard.said.contains(needle),
            When::Model(model) => heard.model == model,
            When::Path(prefix) => heard.path.starts_with(prefix),
            When::Header(name, value) => heard.headers.get(name).is_some_and(|v| v.as_bytes() == value.as_bytes()),
        }
    }
}

fn agent_steps(steps: usize, answer: &str) -> Vec<Reply> {
    let call = |step: usize| {
        let path = format!("src/part_{step}.rs");
        Reply::tool("read_file", json!({ "path": path })).saying(format!("Step {step}: I look at {path}."))
    };
    (1..=steps).map(call).chain([Reply::text(answer)]).collect()
}
