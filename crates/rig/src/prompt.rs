//! Bodies of requests, as coding agents send them: a system message, a history of tool calls and their results (prose,
//! code, records), and a last message that is new in each request.

use serde_json::{Value, json};

use crate::words::Words;

/// Models that the mock is asked for; both have a price in Sprag's table.
pub const OPENAI_MODEL: &str = "gpt-4o";
pub const ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";

const SYSTEM: &str = "You are a careful software engineer. Read before you write, and run the tests after each change.";

/// A body whose end is new every time.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub bytes: Vec<u8>,
    /// Where the new words stand.
    pub slot: std::ops::Range<usize>,
}

impl Prompt {
    /// A chat request of about `size` bytes, of which the last `new_bytes` are new each time.
    pub fn chat(size: usize, new_bytes: usize, is_stream: bool, seed: u64) -> Prompt {
        let mut words = Words::new(seed);
        let mut history = vec![json!({"role": "system", "content": SYSTEM})];
        let mut length = 200 + new_bytes;
        let mut number = 0;
        while length < size {
            let left = size - length;
            let turn = turn(&mut words, number, left);
            length += turn.iter().map(|message| message.to_string().len() + 1).sum::<usize>();
            history.extend(turn);
            number += 1;
        }
        // The flag stands in front, where the mock looks for it.
        let history: Vec<String> = history.iter().map(Value::to_string).collect();
        let head = format!(
            r#"{{"model":"{OPENAI_MODEL}","stream":{is_stream},"messages":[{},{{"role":"user","content":""#,
            history.join(",")
        );
        let tail = r#""}]}"#;
        let mut bytes = head.clone().into_bytes();
        bytes.resize(head.len() + new_bytes, b' ');
        bytes.extend_from_slice(tail.as_bytes());
        Prompt { bytes, slot: head.len()..head.len() + new_bytes }
    }
}

/// A call of a tool and what it gave, in about `budget` bytes at most.
fn turn(words: &mut Words, number: usize, budget: usize) -> Vec<Value> {
    let id = format!("call_{number:06}");
    if budget < 700 {
        return vec![json!({"role": "user", "content": words.text(budget.saturating_sub(40).max(16))})];
    }
    let size = 300 + usize::try_from(words.number(2200)).unwrap_or(0).min(budget - 600);
    let result = match number % 3 {
        0 => code(words, size),
        1 => records(words, size),
        _ => words.text(size),
    };
    let path = format!("src/{}/{}.rs", words.word().to_owned(), words.word());
    vec![
        json!({"role": "assistant", "content": words.text(60), "tool_calls": [{"id": id, "type": "function", "function":
            {"name": "read_file", "arguments": json!({"path": path, "limit": words.number(500)}).to_string()}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

/// Source code, with the quotes and line ends that JSON must escape.
fn code(words: &mut Words, size: usize) -> String {
    let mut text = String::new();
    while text.len() < size {
        let (a, b) = (words.word().to_owned(), words.word().to_owned());
        match words.number(4) {
            0 => text.push_str(&format!("    let {a} = load(\"{b}\")?;\n")),
            1 => text.push_str(&format!("    if {a}.{b}() > {} {{\n", words.number(9999))),
            2 => text.push_str(&format!("fn {a}_{b}({a}: &str) -> Result<{b}> {{\n")),
            _ => text.push_str(&format!("    // {a} {b}\n")),
        }
    }
    text
}

fn records(words: &mut Words, size: usize) -> String {
    let mut rows = Vec::new();
    let mut length = 0;
    while length < size {
        let row = json!({"line": words.number(5000), "note": words.text(60), "at": format!("2026-03-{:02}T10:{:02}:00Z", 1 + words.number(28), words.number(60))});
        length += row.to_string().len();
        rows.push(row);
    }
    Value::Array(rows).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_their_size_and_are_json() {
        for size in [1024, 10_240, 102_400, 1_048_576] {
            let mut prompt = Prompt::chat(size, 200, false, 7);
            Words::new(1).fill(&mut prompt.bytes[prompt.slot.clone()]);
            let value: Value = serde_json::from_slice(&prompt.bytes).unwrap();
            assert!(value["messages"].as_array().unwrap().len() > 1);
            let off = prompt.bytes.len().abs_diff(size);
            assert!(off < 100 + size / 20, "{size}: {} bytes", prompt.bytes.len());
        }
    }
}
