//! What an agent and a model say to each other, new in every step.

use sprag_core::wire::{Reply, ToolCall};

/// A conversation in which a tool is called again and again.
pub(crate) struct Conversation {
    /// Messages so far, as JSON, with commas between.
    history: String,
    number: usize,
}

impl Conversation {
    pub(crate) fn with_history(bytes: usize) -> Conversation {
        let mut conversation = Conversation::new();
        while conversation.history.len() < bytes {
            conversation.add_turn(900);
        }
        conversation
    }

    pub(crate) fn of_steps(steps: usize) -> Conversation {
        let mut conversation = Conversation::new();
        for _ in 1..steps {
            conversation.add_turn(400);
        }
        conversation
    }

    fn new() -> Conversation {
        let history =
            r#"{"role":"system","content":"You are a careful engineer."},{"role":"user","content":"Fix it."}"#;
        Conversation { history: history.to_owned(), number: 0 }
    }

    /// The next request: the history with a new turn of about `new_bytes`.
    pub(crate) fn next_body(&mut self, new_bytes: usize) -> Vec<u8> {
        let before = self.history.len();
        self.add_turn(new_bytes);
        let body = format!(r#"{{"model":"gpt-4o","messages":[{}]}}"#, self.history).into_bytes();
        // It does not stay: the last request is to be as long as the first.
        self.history.truncate(before);
        body
    }

    /// The next request, with its latest turn alone.
    pub(crate) fn latest_only(&mut self, new_bytes: usize) -> Vec<u8> {
        self.history.clear();
        self.history.push_str(r#"{"role":"user","content":"Fix it."}"#);
        self.add_turn(new_bytes);
        format!(r#"{{"model":"gpt-4o","messages":[{}]}}"#, self.history).into_bytes()
    }

    fn add_turn(&mut self, bytes: usize) {
        self.number += 1;
        let (number, result) = (self.number, prose(self.number, bytes));
        self.history.push_str(&format!(
            concat!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{0:024}","type":"function","#,
                r#""function":{{"name":"grep","arguments":"{{\"pattern\":\"value_{0}\",\"path\":\"src\"}}"}}}}]}}"#,
                r#",{{"role":"tool","tool_call_id":"call_{0:024}","content":"{1}"}}"#
            ),
            number, result
        ));
    }

    /// What the model called next.
    pub(crate) fn reply(&self) -> Reply {
        let number = self.number + 1;
        let call = ToolCall {
            id: format!("call_{number:024}"),
            name: "grep".into(),
            arguments: format!(r#"{{"pattern":"value_{number}","path":"src"}}"#),
        };
        Reply { tool_calls: vec![call], complete: true, ..Reply::default() }
    }

    /// A whole answer of the model.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        self.number += 1;
        format!(
            concat!(
                r#"{{"id":"chatcmpl-{0:012}","object":"chat.completion","created":1770000000,"model":"gpt-4o","choices":"#,
                r#"[{{"index":0,"message":{{"role":"assistant","content":"{1}"}},"finish_reason":"stop"}}],"#,
                r#""usage":{{"prompt_tokens":200,"completion_tokens":64,"total_tokens":264}}}}"#
            ),
            self.number,
            prose(self.number, 256)
        )
        .into_bytes()
    }

    /// One chunk of a stream.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        self.number += 1;
        format!(
            concat!(
                r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1770000000,"model":"gpt-4o","#,
                r#""choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":null}}]}}"#,
                "\n\n"
            ),
            prose(self.number, 5)
        )
        .into_bytes()
    }
}

/// Made-up words that do not repeat, of about so many bytes.
fn prose(seed: usize, bytes: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ta", "ren", "mo", "shi", "lak", "ver", "no", "pul", "i", "cor", "dan", "es", "fu", "gri", "hol", "as"];
    let mut random = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < bytes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        for part in 0..1 + (random >> 8) % 4 {
            text.push_str(SYLLABLES[(random >> (16 + 4 * part)) as usize % 16]);
        }
        text.push(' ');
    }
    text
}
