//! One call of a simulated agent, through the proxy, as a client makes it.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::provider::SCENE;
use super::scene::Role;

/// Connections to the proxy.
#[derive(Clone)]
pub(super) struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    proxy: SocketAddr,
}

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    /// The model's message, as it goes into the conversation.
    Message(Value),
    /// Sprag refused the call, or cut it.
    Stopped { reason: String, why: String },
}

const ANSWER_BYTES: usize = 1 << 20;

impl Caller {
    pub(super) fn new(proxy: SocketAddr) -> Caller {
        Caller { client: Client::builder(TokioExecutor::new()).build_http(), proxy }
    }

    /// Sends the conversation and reads the answer to its end.
    pub(super) async fn send(&self, role: Role, task: u32, step: u32, messages: &[Value]) -> Result<Answer> {
        let body = json!({"model": role.model(), "stream": true, "max_completion_tokens": 600, "messages": messages});
        let request = Request::post(format!("http://{}/v1/chat/completions", self.proxy))
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, "Bearer demo")
            .header("x-sprag-agent", role.name())
            .header("x-session-id", run(role, task))
            .header(SCENE, format!("{}.{task}.{step}", role.name()))
            .body(Full::new(Bytes::from(body.to_string())))?;
        let answer = self.client.request(request).await.context("calling the proxy")?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        let stopped = head.headers.get("x-sprag-blocked").and_then(|reason| reason.to_str().ok());
        let text = String::from_utf8_lossy(&body);
        if let Some(reason) = stopped {
            return Ok(Answer::Stopped { reason: reason.to_owned(), why: why(&text) });
        }
        anyhow::ensure!(head.status.is_success(), "the proxy answered {}: {text}", head.status);
        Ok(read_stream(&text))
    }
}

/// The name of an agent's run.
pub(super) fn run(role: Role, task: u32) -> String {
    format!("{}-{task}", role.name())
}

/// The reason of a refusal, for people: the proof where there is one, the message otherwise.
fn why(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let error = &body["error"];
    let told = error["proof"]["summary"].as_str().or_else(|| error["message"].as_str());
    told.unwrap_or_default().to_owned()
}

/// The message that the events of a stream make, or the stop that ended it.
fn read_stream(text: &str) -> Answer {
    let (mut said, mut call) = (String::new(), None);
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    for event in events.filter_map(|data| serde_json::from_str::<Value>(data).ok()) {
        if let Some(error) = event.get("error") {
            let told = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            return Answer::Stopped { reason: told("type"), why: why(&event.to_string()) };
        }
        let delta = &event["choices"][0]["delta"];
        said.push_str(delta["content"].as_str().unwrap_or_default());
        if let Some(made) = delta["tool_calls"].get(0) {
            call = Some(json!({"id": made["id"], "type": "function", "function": made["function"]}));
        }
    }
    let mut message = json!({"role": "assistant", "content": said});
    if let Some(call) = call {
        message["tool_calls"] = json!([call]);
    }
    Answer::Message(message)
}
