//! Whole agents, as a proxy sees them, in every way of calling tools: those that work and those that are stuck.

mod coding;
mod errands;
mod healthy;
mod stuck;

use serde_json::{Value, json};

use super::twins::Twins;
use crate::loops::{Arrival, Departure, Rules, read_turn};
use crate::time::Timestamp;
use crate::wire::{Call, Dialect, Reply, ToolCall, read_history};

/// One step of an agent: what the model says and calls, what comes back, and what the client adds to it.
#[derive(Clone, Default)]
struct Step {
    say: String,
    calls: Vec<(String, Value)>,
    results: Vec<Value>,
    user: String,
}

/// How an agent calls its tools.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Native(Dialect),
    /// The provider keeps the history.
    Kept(Dialect),
    Fence,
    Tag,
    React,
    /// ReAct in one text that grows.
    Transcript,
}

const FORMS: [Form; 10] = [
    Form::Native(Dialect::OpenaiChat),
    Form::Native(Dialect::Anthropic),
    Form::Native(Dialect::OpenaiResponses),
    Form::Native(Dialect::Gemini),
    Form::Kept(Dialect::OpenaiResponses),
    Form::Kept(Dialect::Anthropic),
    Form::Fence,
    Form::Tag,
    Form::React,
    Form::Transcript,
];

fn call(say: impl Into<String>, tool: &str, arguments: Value, result: impl Into<Value>) -> Step {
    Step { say: say.into(), calls: vec![(tool.into(), arguments)], results: vec![result.into()], user: String::new() }
}

fn talk(say: impl Into<String>, user: impl Into<String>) -> Step {
    Step { say: say.into(), user: user.into(), ..Step::default() }
}

/// Plays steps until the run would be stopped: after how many, and why.
fn play(form: Form, is_declared: bool, steps: impl Iterator<Item = Step>) -> Option<(usize, String)> {
    let mut run = Run::new(form, is_declared);
    run.begin("Please do the task until it is done.");
    run.ask();
    steps.enumerate().find_map(|(at, step)| Some((at + 1, run.play(&step)?)))
}

struct Run {
    form: Form,
    is_declared: bool,
    conversations: Vec<Conversation>,
    at: usize,
    number: u32,
    watch: Twins,
    rules: Rules,
}

#[derive(Default)]
struct Conversation {
    items: Vec<Value>,
    /// Items that the provider has seen.
    sent: usize,
    transcript: String,
}

impl Run {
    fn new(form: Form, is_declared: bool) -> Run {
        let (watch, rules) = (Twins::default(), Rules::default());
        Run { form, is_declared, conversations: Vec::new(), at: 0, number: 0, watch, rules }
    }

    /// Begins a conversation of the run; gives its place.
    fn begin(&mut self, task: &str) -> usize {
        self.conversations.push(Conversation { transcript: format!("Question: {task}"), ..Conversation::default() });
        self.at = self.conversations.len() - 1;
        let first = self.message("user", task);
        self.conversations[self.at].items.push(first);
        self.at
    }

    /// The answer, what comes back, and the next request: why that is refused.
    fn play(&mut self, step: &Step) -> Option<String> {
        self.answer(step);
        self.conversations[self.at].sent = self.conversations[self.at].items.len();
        self.carry(step);
        self.ask()
    }

    fn ask(&mut self) -> Option<String> {
        self.number += 1;
        let body = self.body().to_string();
        let call = Call::parse(self.dialect(), "", body.as_bytes()).unwrap();
        let history = read_history(&call, |_| None).unwrap();
        let turn = read_turn(&call, false);
        let Run { number: step, is_declared, .. } = *self;
        let now = Timestamp(i64::from(step) * 5000);
        let arrival = Arrival { step, now, end: Some(history.end), turn: &turn, is_declared };
        let findings = self.watch.arrive(&arrival, &self.rules).findings;
        let decision = self.watch.decide(findings, &self.rules, step);
        let verdict = decision.stops().then_some(decision.enforced)??;
        Some(format!("{}: {}", verdict.finding.loop_type, verdict.finding.proof.summary))
    }

    fn answer(&mut self, step: &Step) {
        let is_native = self.is_native();
        let tool_call = |(at, (name, arguments)): (usize, &(String, Value))| ToolCall {
            id: format!("call_{}_{at}", self.number),
            name: name.clone(),
            arguments: spelled(arguments),
        };
        let tool_calls = step.calls.iter().enumerate().filter(|_| is_native).map(tool_call).collect();
        let text = if is_native { step.say.clone() } else { self.written(step) };
        let reply = Reply { text, tool_calls, complete: true, ..Reply::default() };
        let now = Timestamp(i64::from(self.number) * 5000);
        let departure = Departure { step: self.number, now, reply: &reply, is_answered: true, cost: None, tokens: 0 };
        self.watch.depart(&departure);
    }

    fn carry(&mut self, step: &Step) {
        if !self.is_native() {
            let (said, given) = (self.written(step), self.observed(step));
            let (said_item, given_item) = (self.message("assistant", &said), self.message("user", &given));
            let conversation = &mut self.conversations[self.at];
            conversation.transcript += &format!("\n{said}\n{given}");
            conversation.items.extend([said_item, given_item]);
            return;
        }
        let ids: Vec<String> = (0..step.calls.len()).map(|at| format!("call_{}_{at}", self.number)).collect();
        let calls = || ids.iter().zip(&step.calls).map(|(id, (name, arguments))| (id, name, arguments));
        let results = || ids.iter().zip(&step.calls).zip(&step.results).map(|((id, (name, _)), text)| (id, name, text));
        let mut items = Vec::new();
        match self.dialect() {
            _ if step.calls.is_empty() => items.push(self.message("assistant", &step.say)),
            Dialect::OpenaiResponses => {
                if !step.say.is_empty() {
                    items.push(self.message("assistant", &step.say));
                }
                items.extend(calls().map(|(id, name, arguments)| json!({"type": "function_call", "call_id": id, "name": name, "arguments": spelled(arguments)})));
                self.conversations[self.at].sent += items.len();
                items.extend(
                    results()
                        .map(|(id, _, text)| json!({"type": "function_call_output", "call_id": id, "output": text})),
                );
            }
            Dialect::Gemini => {
                let mut parts = vec![json!({"text": step.say})];
                parts.extend(
                    calls().map(|(_, name, arguments)| json!({"functionCall": {"name": name, "args": arguments}})),
                );
                items.push(json!({"role": "model", "parts": parts}));
                let parts: Vec<Value> = results()
                    .map(|(_, name, text)| json!({"functionResponse": {"name": name, "response": {"output": text}}}))
                    .collect();
                items.push(json!({"role": "user", "parts": parts}));
            }
            Dialect::Anthropic => {
                let mut parts = vec![json!({"type": "text", "text": step.say})];
                parts.extend(calls().map(
                    |(id, name, arguments)| json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
                ));
                items.push(json!({"role": "assistant", "content": parts}));
                self.conversations[self.at].sent += 1;
                let parts: Vec<Value> = results()
                    .map(|(id, _, text)| json!({"type": "tool_result", "tool_use_id": id, "content": text}))
                    .collect();
                items.push(json!({"role": "user", "content": parts}));
            }
            _ => {
                let tool_calls: Vec<Value> = calls().map(|(id, name, arguments)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": spelled(arguments)}})).collect();
                items.push(json!({"role": "assistant", "content": step.say, "tool_calls": tool_calls}));
                items.extend(
                    results().map(|(id, _, text)| json!({"role": "tool", "tool_call_id": id, "content": text})),
                );
            }
        }
        if step.calls.is_empty() {
            self.conversations[self.at].sent += 1;
        }
        if !step.user.is_empty() {
            items.push(self.message("user", &step.user));
        }
        self.conversations[self.at].items.extend(items);
    }

    fn message(&self, role: &str, text: &str) -> Value {
        match (self.dialect(), role) {
            (Dialect::Gemini, "assistant") => json!({"role": "model", "parts": [{"text": text}]}),
            (Dialect::Gemini, _) => json!({"role": role, "parts": [{"text": text}]}),
            _ => json!({"role": role, "content": text}),
        }
    }

    /// The answer of an agent that writes its calls.
    fn written(&self, step: &Step) -> String {
        let mut text = step.say.clone();
        for (tool, arguments) in &step.calls {
            let values = || arguments.as_object().into_iter().flatten();
            text += &match self.form {
                Form::Fence => {
                    let flat: Vec<String> = values().map(|(_, value)| spelled(value)).collect();
                    let shell = matches!(tool.as_str(), "bash" | "python");
                    format!(
                        "\n```bash\n{}{}\n```",
                        if shell { String::new() } else { format!("{tool} ") },
                        flat.join(" ")
                    )
                }
                Form::Tag => {
                    let flat: String = values()
                        .map(|(key, value)| format!("<parameter={key}>{}</parameter>\n", spelled(value)))
                        .collect();
                    format!("\n<function={tool}>\n{flat}</function>")
                }
                _ => format!("\nAction: {tool}\nAction Input: {arguments}"),
            };
        }
        if text.is_empty() { "Hm.".into() } else { text.trim_start().to_owned() }
    }

    fn observed(&self, step: &Step) -> String {
        let mut texts: Vec<String> = step.results.iter().map(spelled).collect();
        texts.extend((!step.user.is_empty()).then(|| step.user.clone()));
        let prefix = if step.calls.is_empty() { "" } else { "Observation: " };
        format!("{prefix}{}", texts.join("\n"))
    }

    fn is_native(&self) -> bool {
        matches!(self.form, Form::Native(_) | Form::Kept(_))
    }

    fn dialect(&self) -> Dialect {
        match self.form {
            Form::Native(dialect) | Form::Kept(dialect) => dialect,
            Form::Transcript => Dialect::OpenaiCompletions,
            _ => Dialect::OpenaiChat,
        }
    }

    fn body(&self) -> Value {
        let Conversation { items, sent, transcript } = &self.conversations[self.at];
        let is_kept = matches!(self.form, Form::Kept(_)) && *sent > 0;
        let items = if is_kept { &items[*sent..] } else { &items[..] };
        let mut body = match self.dialect() {
            Dialect::OpenaiCompletions => json!({"prompt": transcript}),
            Dialect::OpenaiResponses => json!({"input": items}),
            Dialect::Gemini => json!({"contents": items}),
            _ => json!({"messages": items}),
        };
        if is_kept {
            let previous = format!("answer-{}", self.number);
            match self.dialect() {
                Dialect::Anthropic => body["thread"] = json!({"type": "continue", "previous_message_id": previous}),
                _ => body["previous_response_id"] = json!(previous),
            }
        }
        body
    }
}

fn spelled(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A different word for each number.
fn word(n: usize) -> String {
    const A: [&str; 12] = [
        "amber", "birch", "copper", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "jasper", "kelp", "lilac",
    ];
    const B: [&str; 11] =
        ["anchor", "basket", "candle", "drawer", "engine", "folder", "garden", "hammer", "island", "jacket", "kettle"];
    format!("{}_{}", A[n % A.len()], B[n % B.len()])
}
