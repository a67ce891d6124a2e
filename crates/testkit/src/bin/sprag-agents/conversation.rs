//! One run as its agent sees it: a conversation that grows with each answer and each result of a tool.
//!
//! The texts are made of words by chance, the same in each program run with the same name. Sizes are those of coding agents: a long run
//! begins with files in its context. Nothing in them is a secret and every result is new, so nothing stops a run.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes of the instructions and of the result of one tool call, in a short and in a long run.
const SHORT: Sizes = Sizes { instructions: 2_000, result: 1_000 };
const LONG: Sizes = Sizes { instructions: 60_000, result: 4_000 };
/// Bytes of what the model says beside its tool call.
const SAID_BYTES: usize = 120;
/// Bytes of a token, about.
const TOKEN_BYTES: usize = 4;

const WORDS: [&str; 32] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge",
    "marsh", "north", "oasis", "plain", "quarry", "ridge", "shoal", "tarn", "upland", "valley", "wharf", "yard",
    "zenith", "arch", "brook", "cliff", "dune", "field", "glade", "harbour",
];

const TOOLS: &str = r#"[{"type":"function","function":{"name":"read_file","description":"Reads a file of the project.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]"#;

#[derive(Clone, Copy)]
struct Sizes {
    instructions: usize,
    result: usize,
}

/// A run under way.
pub(crate) struct Conversation {
    messages: String,
    sizes: Sizes,
    chance: u64,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    tool_calls: Vec<ToolCall<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    id: &'a str,
}

impl Conversation {
    /// The beginning of a run. `task` is unlike that of all other runs.
    pub(crate) fn new(task: &str, is_long: bool) -> Conversation {
        let sizes = if is_long { LONG } else { SHORT };
        let chance = task.bytes().fold(0x9E37_79B9_7F4A_7C15, |seed: u64, byte| mixed(seed ^ u64::from(byte)));
        let mut begun = Conversation { messages: String::new(), sizes, chance };
        let instructions = begun.text(sizes.instructions);
        begun.messages = format!(
            r#"{{"role":"system","content":"You work on a project. {instructions}"}},{{"role":"user","content":"Task {task}: read all parts."}}"#
        );
        begun
    }

    /// The body of the next call.
    pub(crate) fn body(&self) -> String {
        format!(r#"{{"model":"gpt-4o","max_tokens":500,"tools":{TOOLS},"messages":[{}]}}"#, self.messages)
    }

    /// What the scripted provider shall answer, as headers that it understands: a tool call and some words like no others, and the
    /// usage of a conversation of this length.
    pub(crate) fn wanted(&mut self) -> [(&'static str, String); 3] {
        let text = self.text(SAID_BYTES).replace("\\n", " ");
        let path = format!("src/{}_{}.rs", text.split(' ').next().unwrap_or("part"), self.chance % 100_000);
        let (input, output) = (self.messages.len() / TOKEN_BYTES, 40 + self.chance % 400);
        [
            ("x-mock-tool", format!(r#"name=read_file args={{"path":"{path}"}}"#)),
            ("x-mock-text", text),
            ("x-mock-usage", format!("input={input} output={output}")),
        ]
    }

    /// Takes the answer in, and a result for each tool that it calls. Without any, the user asks for more.
    pub(crate) fn go_on(&mut self, answer: &[u8]) -> Result<(), String> {
        let unreadable = |error: serde_json::Error| format!("an answer that cannot be read: {error}");
        let answer: Answer<'_> = serde_json::from_slice(answer).map_err(unreadable)?;
        let message = answer.choices.first().ok_or("an answer without a choice")?.message.get();
        let said: Said<'_> = serde_json::from_str(message).map_err(unreadable)?;
        self.messages.push(',');
        self.messages.push_str(message);
        for call in &said.tool_calls {
            let result = self.text(self.sizes.result);
            self.messages.push_str(&format!(r#",{{"role":"tool","tool_call_id":"{}","content":"{result}"}}"#, call.id));
        }
        if said.tool_calls.is_empty() {
            let more = self.text(self.sizes.result);
            self.messages.push_str(&format!(r#",{{"role":"user","content":"{more}"}}"#));
        }
        Ok(())
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            self.chance = mixed(self.chance);
            text.push_str(WORDS[(self.chance >> 59) as usize]);
            text.push_str(if self.chance & 15 == 0 { ".\\n" } else { " " });
        }
        text
    }
}

/// The next number of a sequence without a pattern (splitmix64).
fn mixed(number: u64) -> u64 {
    let next = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let next = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let next = (next ^ (next >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    next ^ (next >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use serde_json::Value;

    const ANSWER: &str = r#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function"}]}}]}"#;

    fn messages(conversation: &Conversation) -> Vec<Value> {
        let body: Value = serde_json::from_str(&conversation.body()).unwrap();
        body["messages"].as_array().unwrap().clone()
    }

    #[test]
    fn every_step_carries_what_was_said_before_and_a_new_result() {
        let mut run = Conversation::new("a-1", false);
        let first = messages(&run);
        run.go_on(ANSWER.as_bytes()).unwrap();
        run.go_on(ANSWER.as_bytes()).unwrap();
        let later = messages(&run);
        assert_eq!(later[..2], first[..]);
        assert_eq!((later.len(), later[3]["tool_call_id"].as_str()), (6, Some("call_1")));
        assert_ne!(later[3]["content"], later[5]["content"]);
    }

    #[test]
    fn long_runs_are_long_from_the_first_step() {
        let bytes = |is_long| Conversation::new("a-1", is_long).body().len();
        assert!(bytes(false) < 4_000 && bytes(true) > 60_000);
    }

    #[test]
    fn no_two_answers_are_alike() {
        let mut run = Conversation::new("a-1", false);
        let (first, second) = (run.wanted(), run.wanted());
        assert!(first[0].1 != second[0].1 && first[1].1 != second[1].1, "{first:?} {second:?}");
        assert!(first.iter().all(|(_, value)| value.is_ascii() && !value.contains('\\')), "{first:?}");
    }

    #[test]
    fn no_two_runs_are_alike() {
        assert_ne!(Conversation::new("a-1", false).body(), Conversation::new("a-2", false).body());
    }
}
