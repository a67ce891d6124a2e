//! A run as a client would send it, in any dialect.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::loops::progress::State;
use crate::loops::{Arrival, Attempts, Departure, Finding, ProgressRule, RecordedStep, RuleStop, read_turn, try_rule};
use crate::time::Timestamp;
use crate::wire::{Call, Dialect, Mark, Reply, ToolCall, read_history};

/// What the model says, and what comes back.
#[derive(Clone)]
pub(super) struct Step {
    say: String,
    call: Option<(String, String)>,
    result: String,
}

impl Step {
    pub(super) fn call(say: &str, tool: &str, arguments: &str, result: &str) -> Step {
        Step { say: say.into(), call: Some((tool.into(), arguments.into())), result: result.into() }
    }

    pub(super) fn talk(say: &str, reply: &str) -> Step {
        Step { say: say.into(), call: None, result: reply.into() }
    }
}

pub(super) struct Run {
    dialect: Dialect,
    /// The provider keeps the history.
    pub(super) is_kept: bool,
    conversations: Vec<Vec<Value>>,
    at: usize,
    /// Items that the provider has seen already.
    sent: usize,
    transcript: String,
    number: u32,
    calls: u32,
    attempts: Attempts,
    state: State,
    marks: HashMap<u64, Mark>,
    /// What would be on record of the run so far.
    pub(super) recorded: Vec<RecordedStep>,
    pub(super) levels: Vec<Option<f32>>,
    /// The first finding.
    stop: Option<RuleStop>,
}

/// Whatever a test plays: the record of it, judged again by the same rule, ends at the same step with the same proof.
impl Drop for Run {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let trial = try_rule(&self.recorded, &ProgressRule::balanced());
            assert_eq!(trial.stop, self.stop);
            let reached = self.levels.iter().flatten().position(|level| *level >= 1.0);
            let expected: Vec<f32> = self.levels.iter().flatten().copied().collect();
            assert_eq!(trial.stop.is_some(), reached.is_some(), "a level of 1 is a stop");
            let levels: Vec<f32> = trial.levels.iter().map(|(_, level)| *level).collect();
            assert_eq!(levels, expected[..reached.map_or(expected.len(), |at| at + 1)]);
        }
    }
}

impl Run {
    pub(super) fn new(dialect: Dialect) -> Run {
        let mut run = Run {
            dialect,
            is_kept: false,
            conversations: Vec::new(),
            at: 0,
            sent: 0,
            transcript: "Question: who?".into(),
            number: 0,
            calls: 0,
            attempts: Attempts::default(),
            state: State::default(),
            marks: HashMap::new(),
            recorded: Vec::new(),
            levels: Vec::new(),
            stop: None,
        };
        run.begin("do the work");
        run
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Begins another conversation of the run.
    pub(super) fn begin(&mut self, text: &str) {
        let first = match self.dialect {
            Dialect::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        };
        self.conversations.push(vec![first]);
        self.at = self.conversations.len() - 1;
        self.sent = 0;
    }

    pub(super) fn switch(&mut self, conversation: usize) {
        self.at = conversation;
    }

    /// The answer, what comes back, and the next request.
    pub(super) fn play(&mut self, step: &Step) -> Option<Finding> {
        self.calls += 1;
        self.answer(step);
        self.sent = self.conversations[self.at].len() + 1;
        self.carry(step);
        self.ask()
    }

    pub(super) fn ask(&mut self) -> Option<Finding> {
        self.number += 1;
        let body = self.body();
        let call = Call::parse(self.dialect, "", body.as_bytes()).unwrap();
        let history = read_history(&call, |hash| self.marks.get(&hash).copied()).unwrap();
        self.marks.extend(history.marks.iter().copied());
        let turn = read_turn(&call, false);
        let before = self.attempts.arrive(self.number, history.end);
        let now = Timestamp(i64::from(self.number) * 1000);
        let arrival = Arrival { step: self.number, now, end: Some(history.end), turn: &turn, is_declared: true };
        let seen = self.state.arrive(&arrival, before, &ProgressRule::balanced(), None);
        self.levels.push(seen.level);
        let evidence = seen.evidence.unwrap();
        self.recorded.push(RecordedStep { request: self.number, at: now, evidence });
        if let Some(finding) = seen.finding.clone().filter(|_| self.stop.is_none()) {
            self.stop = Some(RuleStop { step: self.number, finding });
        }
        seen.finding
    }

    pub(super) fn fail(&mut self) {
        self.attempts.depart(self.number, false);
    }

    pub(super) fn answer(&mut self, step: &Step) {
        let tool_calls = step.call.iter().map(|(name, arguments)| ToolCall {
            id: self.call_id(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
        let reply =
            Reply { text: step.say.clone(), tool_calls: tool_calls.collect(), complete: true, ..Reply::default() };
        self.attempts.depart(self.number, true);
        let now = Timestamp(i64::from(self.number) * 1000);
        self.state.depart(&Departure {
            step: self.number,
            now,
            reply: &reply,
            is_answered: true,
            cost: None,
            tokens: 0,
        });
    }

    fn call_id(&self) -> String {
        format!("call_{:02}", self.calls)
    }

    fn carry(&mut self, step: &Step) {
        let id = self.call_id();
        self.transcript += &(step.say.clone() + &step.result);
        let input = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let items = &mut self.conversations[self.at];
        match (self.dialect, &step.call) {
            (Dialect::OpenaiChat | Dialect::OpenaiCompletions, Some((name, arguments))) => items.extend([
                json!({"role": "assistant", "content": step.say, "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": step.result}),
            ]),
            (Dialect::OpenaiResponses, Some((name, arguments))) => {
                if !step.say.is_empty() {
                    items.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": step.say}]}));
                    self.sent += 1;
                }
                items.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}));
                items.push(json!({"type": "function_call_output", "call_id": id, "output": step.result}));
            }
            (Dialect::Gemini, Some((name, arguments))) => items.extend([
                json!({"role": "model", "parts": [{"text": step.say}, {"functionCall": {"name": name, "args": input(arguments)}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": step.result}}}]}),
            ]),
            (_, Some((name, arguments))) => items.extend([
                json!({"role": "assistant", "content": [{"type": "text", "text": step.say}, {"type": "tool_use", "id": id, "name": name, "input": input(arguments)}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": step.result}]}),
            ]),
            (_, None) => items.extend([
                json!({"role": "assistant", "content": step.say}),
                json!({"role": "user", "content": step.result}),
            ]),
        }
    }

    fn body(&self) -> String {
        let items = &self.conversations[self.at];
        let kept = if self.is_kept { &items[self.sent.min(items.len() - 1)..] } else { &items[..] };
        let mut body = match self.dialect {
            Dialect::OpenaiCompletions => json!({"prompt": self.transcript}),
            Dialect::OpenaiResponses => json!({"input": kept}),
            Dialect::Gemini => json!({"contents": kept}),
            _ => json!({"messages": kept}),
        };
        if self.is_kept && self.sent > 0 {
            let previous = format!("answer-{}", self.number);
            match self.dialect {
                Dialect::Anthropic => body["thread"] = json!({"type": "continue", "previous_message_id": previous}),
                _ => body["previous_response_id"] = json!(previous),
            }
        }
        body.to_string()
    }
}
