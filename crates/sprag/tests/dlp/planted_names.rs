//! Secrets in whatever has a name: models, tools, runs, agents, headers, paths. Some of it goes on record.

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Reply, When};

use crate::binary::Binary;
use crate::planted::PLANTED;
use crate::wire::{STREAMING, path, request};

/// Headers that name a run or an agent for Sprag: a secret is no name.
const OWN: [&str; 4] = ["x-sprag-run-id", "x-agentwall-run-id", "x-sprag-agent", "x-agent-id"];
/// Headers that are meant for others, or for nobody.
const OTHERS: [&str; 11] = [
    "x-session-id",
    "x-claude-code-session-id",
    "x-claude-code-agent-id",
    "session-id",
    "thread-id",
    "traceparent",
    "user-agent",
    "x-request-id",
    "originator",
    "cookie",
    "referer",
];

pub(crate) const CONFIG: &str = r#"
[agents.picky.models]
mode = "shadow"
allow = ["another-model"]
[agents.circling.detection.progress]
action = "kill_run"
"#;

/// A name that is cut within its secret, where it is cut.
fn tool() -> String {
    format!("find_the_customer_by_{}", PLANTED[2])
}

/// What the provider says to the calls below.
pub(crate) fn replies() -> [(When, Reply); 2] {
    let message = json!({"role": "assistant", "content": "so it is"});
    let named = json!({
        "id": PLANTED[0], "object": "chat.completion", "model": PLANTED[0], "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        "choices": [{"index": 0, "message": message, "finish_reason": PLANTED[1]}],
    });
    let want = |what: &str| When::Header("x-want".into(), what.into());
    [
        (want("named"), Reply::raw(200, "application/json", named.to_string())),
        (want("tool"), Reply::tool(tool(), json!({"a": 1})).and_tool(PLANTED[0], json!({"b": 2}))),
    ]
}

pub(crate) async fn traffic(binary: &Binary) -> Vec<Whole> {
    let mut answers = Vec::new();
    for agent in ["plain", "strict", "logging", "off", "picky"] {
        for dialect in STREAMING {
            for is_stream in [false, true] {
                for planted in [PLANTED[0], PLANTED[2], PLANTED[3], &"x/".repeat(120), &"x/".repeat(248)] {
                    // Cut within the secret, where it is cut.
                    let model = format!("{planted}{}", if planted.starts_with('x') { PLANTED[0] } else { "" });
                    let mut body = request(dialect, is_stream, "hi");
                    body["model"] = json!(model);
                    let path = path(dialect, is_stream).replace("gemini-2.5-flash", &model);
                    let url = binary.url(&format!("/agents/{agent}{path}"));
                    answers.extend(client::post_json(url, &body).header("x-want", "tool").fetch().await);
                }
            }
        }
        let mut nameless = request(Dialect::OpenaiChat, false, "hi");
        nameless.as_object_mut().unwrap().remove("model");
        let url = binary.url(&format!("/agents/{agent}/v1/chat/completions"));
        answers.extend(client::post_json(url, &nameless).header("x-want", "named").fetch().await);
    }
    answers.extend(circle(binary).await);
    in_headers(binary).await;
    in_paths(binary).await;
    answers
}

/// The same tool again and again, until it is stopped: proofs name it.
async fn circle(binary: &Binary) -> Vec<Whole> {
    let mut answers = Vec::new();
    let mut messages = vec![json!({"role": "user", "content": "find her"})];
    for step in 0..10 {
        let mut body = request(Dialect::OpenaiChat, false, "");
        body["messages"] = json!(messages);
        body["tools"] = json!([{"type": "function", "function": {"name": tool(), "parameters": {}}}]);
        let url = binary.url("/agents/circling/v1/chat/completions");
        let call = client::post_json(url, &body).header("x-want", "tool").header("x-sprag-run-id", "named");
        answers.extend(call.fetch().await);
        let (first, second) = (format!("call_{step}_1"), format!("call_{step}_2"));
        let called = |id: &str, name: &str, arguments: Value| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!({"id": id, "type": "function", "function": function})
        };
        let calls = json!([called(&first, &tool(), json!({"a": 1})), called(&second, PLANTED[0], json!({"b": 2}))]);
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        messages.extend([first, second].map(|id| json!({"role": "tool", "tool_call_id": id, "content": "nobody"})));
    }
    let is_stopped = |answer: &Whole| answer.header("x-sprag-blocked") == "loop_detected";
    assert!(answers.iter().any(is_stopped), "the circle is seen");
    answers
}

async fn in_headers(binary: &Binary) {
    let url = binary.url("/v1/chat/completions");
    let body = request(Dialect::OpenaiChat, false, "hi");
    for planted in &PLANTED[..3] {
        for name in OWN {
            let answer = client::post_json(&url, &body).header(name, planted).fetch().await.unwrap();
            assert_eq!(answer.status, 400, "{name}: {:?}", answer.body);
        }
        let parent = client::post_json(&url, &body).header("x-sprag-run-id", "child");
        assert_eq!(parent.header("x-sprag-parent-run-id", planted).fetch().await.unwrap().status, 400);
        for name in OTHERS {
            let answer = client::post_json(&url, &body).header(name, planted).fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{name}: {:?}", answer.body);
        }
        for (name, status) in [("sprag_run_id", 400), ("sprag_agent", 400), ("prompt_cache_key", 200), ("user", 200)] {
            let mut body = body.clone();
            body[name] = json!(planted);
            assert_eq!(client::post_json(&url, &body).fetch().await.unwrap().status, status, "{name}");
        }
    }
}

async fn in_paths(binary: &Binary) {
    let body = request(Dialect::OpenaiChat, false, "hi");
    for planted in &PLANTED[..4] {
        let escaped = planted.replacen('-', "%2D", 1).replacen('@', "%40", 1);
        for path in [
            format!("/agents/{planted}/v1/chat/completions"),
            format!("/agents/{escaped}/v1/chat/completions"),
            format!("/v1/organization/{planted}/usage"),
            format!("/v1/organization/{escaped}/usage"),
            format!("/v1/organization/{}/{planted}", "deep/".repeat(99)),
            format!("/nowhere/{planted}"),
            format!("/v1/chat/completions?key={planted}&api-key={planted}&mail={escaped}"),
        ] {
            // An agent may be called like an address.
            if !(planted.contains('@') && path.starts_with("/agents/")) {
                client::post_json(binary.url(&path), &body).fetch().await.unwrap();
                client::get(binary.url(&path)).fetch().await.unwrap();
            }
        }
    }
}
