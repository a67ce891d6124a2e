//! A simulated agent: it talks one dialect through Sprag, calls tools and reads what they give.

use serde_json::{Value, json};

use crate::say::{self, unique};
use crate::stage::{Play, Said, Stage};

/// The dialects that have tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Talk {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

impl Talk {
    pub(crate) const ALL: [Talk; 4] = [Talk::Chat, Talk::Responses, Talk::Anthropic, Talk::Gemini];
}

/// An agent at work. Each step asks the model, which answers with what the test says, and reads a tool's result.
pub(crate) struct Agent<'a> {
    stage: &'a Stage,
    talk: Talk,
    items: Vec<Value>,
    headers: Vec<(String, String)>,
    pub(crate) is_stream: bool,
}

/// What the model says.
#[derive(Clone, Debug)]
pub(crate) enum Model<'a> {
    /// Calls a tool with arguments.
    Call(&'a str, Value),
    /// Only text.
    Text(&'a str),
}

impl<'a> Agent<'a> {
    pub(crate) fn new(stage: &'a Stage, talk: Talk, task: &str) -> Agent<'a> {
        let headers = vec![("authorization".into(), "Bearer k1".into())];
        let mut agent = Agent { stage, talk, items: Vec::new(), headers, is_stream: false };
        agent.hears(task);
        agent
    }

    /// From now on it talks to another Sprag.
    #[allow(dead_code, reason = "shared by suites that use different parts of it")]
    pub(crate) fn moves_to(&mut self, stage: &'a Stage) {
        self.stage = stage;
    }

    /// The run has a name.
    pub(crate) fn declared(self, run: &str) -> Agent<'a> {
        self.with_header("x-sprag-run-id", run)
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Agent<'a> {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn streaming(mut self) -> Agent<'a> {
        self.is_stream = true;
        self
    }

    /// A person says something.
    pub(crate) fn hears(&mut self, text: &str) {
        self.items.push(match self.talk {
            Talk::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => say::user(text),
        });
    }

    /// Sends the conversation as it stands; the model would say `model`. Nothing is added to the conversation.
    pub(crate) async fn sends(&self, model: &Model<'_>) -> (Said, Answer) {
        let answer = Answer::new(self.talk, model);
        let said = self.sends_for(answer.play(self.is_stream)).await;
        (said, answer)
    }

    /// Sends the conversation as it stands, whatever the provider then does.
    pub(crate) async fn sends_for(&self, play: Play) -> Said {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.stage.ask_with(self.path(), &headers, &self.body(), play).await
    }

    /// One step of work: the model calls a tool, the tool gives `result`.
    pub(crate) async fn calls(&mut self, tool: &str, arguments: Value, result: &str) -> Said {
        let (said, answer) = self.sends(&Model::Call(tool, arguments)).await;
        if said.status == 200 {
            self.items.extend(answer.items.clone());
            self.items.push(answer.result(self.talk, result));
        }
        said
    }

    /// One step of talk: the model says something, then a person does.
    pub(crate) async fn talks(&mut self, text: &str, reply: &str) -> Said {
        let (said, answer) = self.sends(&Model::Text(text)).await;
        if said.status == 200 {
            self.items.extend(answer.items.clone());
            self.hears(reply);
        }
        said
    }

    pub(crate) fn path(&self) -> &'static str {
        match (self.talk, self.is_stream) {
            (Talk::Chat, _) => "/v1/chat/completions",
            (Talk::Responses, _) => "/v1/responses",
            (Talk::Anthropic, _) => "/v1/messages",
            (Talk::Gemini, false) => "/v1beta/models/gemini-2.5-flash:generateContent",
            (Talk::Gemini, true) => "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        }
    }

    pub(crate) fn body(&self) -> Value {
        let (items, stream) = (&self.items, self.is_stream);
        match self.talk {
            Talk::Chat => json!({"model": "gpt-4o", "messages": items, "stream": stream}),
            Talk::Responses => json!({"model": "gpt-4.1", "input": items, "stream": stream}),
            Talk::Anthropic => {
                json!({"model": "claude-haiku-4-5", "max_tokens": 100, "messages": items, "stream": stream})
            }
            Talk::Gemini => json!({"contents": items}),
        }
    }
}

/// The model's answer, as the provider sends it and as the client echoes it.
pub(crate) struct Answer {
    talk: Talk,
    items: Vec<Value>,
    call_id: String,
    tool: String,
}

impl Answer {
    fn new(talk: Talk, model: &Model<'_>) -> Answer {
        let call_id = unique("call_");
        let (items, tool) = match (talk, model) {
            (Talk::Chat, Model::Text(text)) => (say::chat_message(text, &[]), ""),
            (Talk::Chat, Model::Call(tool, arguments)) => {
                let function = json!({"name": tool, "arguments": arguments.to_string()});
                let call = json!({"id": call_id, "type": "function", "function": function});
                (json!({"role": "assistant", "content": null, "tool_calls": [call]}), *tool)
            }
            (Talk::Responses, Model::Text(text)) => {
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                (json!({"type": "message", "id": unique("msg_"), "role": "assistant", "content": content}), "")
            }
            (Talk::Responses, Model::Call(tool, arguments)) => (
                json!({"type": "function_call", "id": unique("fc_"), "call_id": call_id, "name": tool,
                    "arguments": arguments.to_string()}),
                *tool,
            ),
            (Talk::Anthropic, Model::Text(text)) => (json!({"type": "text", "text": text}), ""),
            (Talk::Anthropic, Model::Call(tool, arguments)) => {
                (json!({"type": "tool_use", "id": call_id, "name": tool, "input": arguments}), *tool)
            }
            (Talk::Gemini, Model::Text(text)) => (json!({"text": text}), ""),
            (Talk::Gemini, Model::Call(tool, arguments)) => {
                (json!({"functionCall": {"name": tool, "args": arguments}}), *tool)
            }
        };
        let echoed = match talk {
            Talk::Chat | Talk::Responses => vec![items],
            Talk::Anthropic => vec![json!({"role": "assistant", "content": [items]})],
            Talk::Gemini => vec![json!({"role": "model", "parts": [items]})],
        };
        Answer { talk, items: echoed, call_id, tool: tool.to_owned() }
    }

    pub(crate) fn play(&self, is_stream: bool) -> Play {
        let item = &self.items[0];
        match (self.talk, is_stream) {
            (Talk::Chat, false) => say::chat(item),
            (Talk::Chat, true) => say::chat_stream(item),
            (Talk::Responses, false) => say::responses(&unique("resp_"), &self.items),
            (Talk::Responses, true) => say::responses_stream(&unique("resp_"), &self.items),
            (Talk::Anthropic, false) => say::anthropic(&unique("msg_"), item["content"].as_array().unwrap()),
            (Talk::Anthropic, true) => say::anthropic_stream(&unique("msg_"), item["content"].as_array().unwrap()),
            (Talk::Gemini, false) => say::gemini(item["parts"].as_array().unwrap()),
            (Talk::Gemini, true) => say::gemini_stream(item["parts"].as_array().unwrap()),
        }
    }

    fn result(&self, talk: Talk, text: &str) -> Value {
        let id = &self.call_id;
        match talk {
            Talk::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Talk::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
            Talk::Anthropic => {
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
            }
            Talk::Gemini => {
                let response = json!({"name": self.tool, "response": {"output": text}});
                json!({"role": "user", "parts": [{"functionResponse": response}]})
            }
        }
    }
}
