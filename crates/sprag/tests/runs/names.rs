//! Runs and agents that the caller names, and names that cannot be one.

use serde_json::{Value, json};

use crate::say;
use crate::stage::{Play, Said, Stage};

const CHAT: &str = "/v1/chat/completions";

fn body(fields: Value) -> Value {
    let mut body = json!({"model": "gpt-4o", "messages": [say::user(&say::unique("Do "))]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

fn answer() -> Play {
    say::chat(&say::chat_message("ok", &[]))
}

async fn ask(stage: &Stage, headers: &[(&str, &str)], fields: Value) -> Said {
    stage.ask_with(CHAT, headers, &body(fields), answer()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_run_beats_everything() {
    let stage = Stage::start().await;
    let session = ("x-claude-code-session-id", "s");
    let trace = ("traceparent", "00-ad5b72550a81ce246661189fd2cedff3-78a768f2645dcecd-03");
    let header = ask(&stage, &[("x-sprag-run-id", "task-1"), session, trace], json!({"sprag_run_id": "task-2"})).await;
    assert_eq!(header.place(), ("task-1", 1));
    let compat = ask(&stage, &[("x-agentwall-run-id", "task-1"), session], json!({})).await;
    assert_eq!(compat.place(), ("task-1", 2));
    let field = ask(&stage, &[session, trace], json!({"sprag_run_id": "task-2"})).await;
    assert_eq!(field.place(), ("task-2", 1));
    let field = ask(&stage, &[session], json!({"agentwall_run_id": "task-2"})).await;
    assert_eq!(field.place(), ("task-2", 2));
    let sent = stage.last_body();
    assert!(sent.get("agentwall_run_id").is_none() && sent["model"] == "gpt-4o", "{sent}");
    assert_eq!(ask(&stage, &[session, trace], json!({})).await.place(), ("s", 1));
    assert_eq!(ask(&stage, &[trace], json!({})).await.place(), ("s", 2), "the trace was last seen there");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_ids_are_bounded_and_printable() {
    let stage = Stage::start().await;
    for id in ["x".repeat(128), "é".repeat(128), "with spaces".into()] {
        assert_eq!(ask(&stage, &[], json!({"sprag_run_id": id})).await.place(), (id.as_str(), 1), "{id}");
    }
    assert_eq!(ask(&stage, &[("x-sprag-run-id", &"x".repeat(128))], json!({})).await.step, 2);
    let long = "x".repeat(129);
    for id in [long.as_str(), "a\nb", "a\u{0}b", "tab\there", "\u{7f}", ""] {
        let said = ask(&stage, &[], json!({"sprag_run_id": id})).await;
        assert_eq!(said.status, 400, "{id:?}");
        assert!(said.json()["error"]["message"].as_str().unwrap().contains("128 printable characters"), "{id:?}");
    }
    assert_eq!(ask(&stage, &[("x-sprag-run-id", &long)], json!({})).await.status, 400);
    assert_eq!(ask(&stage, &[], json!({"sprag_run_id": 7})).await.status, 400);

    // A header that is no text at all is not a header that is absent.
    let unreadable = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-play: 0\r\nx-sprag-run-id: caf\u{0}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
    );
    let bytes: Vec<u8> = unreadable.bytes().map(|byte| if byte == 0 { 0xe9 } else { byte }).collect();
    let raw = sprag_testkit::client::raw(stage.sprag.proxy, &bytes).await.unwrap();
    assert!(raw.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&raw));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_name_is_told_in_the_callers_dialect() {
    let stage = Stage::start().await;
    for header in [("x-sprag-run-id", "a\tb"), ("x-sprag-agent", "a b")] {
        let anthropic = json!({"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [say::user("x")]});
        let said = stage.ask_with("/v1/messages", &[header], &anthropic, answer()).await;
        assert_eq!((said.status, &said.json()["type"]), (400, &json!("error")));
        assert_eq!(said.json()["error"]["type"], "invalid_request_error");
        let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]});
        let path = "/v1beta/models/gemini-2.5-flash:generateContent";
        let said = stage.ask_with(path, &[header], &gemini, answer()).await;
        assert_eq!((said.status, &said.json()["error"]["code"]), (400, &json!(400)));
        let said = stage.ask_with(CHAT, &[header], &body(json!({})), answer()).await;
        assert_eq!((said.status, &said.json()["error"]["type"]), (400, &json!("invalid_request")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_is_in_the_path_the_header_or_the_body() {
    let stage = Stage::start().await;
    let (sprag, other) = (("x-sprag-agent", "by-header"), ("x-agent-id", "by-other-header"));
    let field = json!({"agentwall_agent_id": "by-field"});
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a Value, &'a str);
    let cases: [Case<'_>; 7] = [
        ("/agents/by-path/v1/chat/completions", &[sprag, other], &field, "by-path"),
        ("/agents/by-path/openai/v1/chat/completions", &[], &json!({}), "by-path"),
        ("/agents/team%3Abot%40x/v1/chat/completions", &[], &json!({}), "team:bot@x"),
        (CHAT, &[other, sprag], &field, "by-header"),
        (CHAT, &[other], &field, "by-other-header"),
        (CHAT, &[], &field, "by-field"),
        (CHAT, &[], &json!({}), "default"),
    ];
    for (path, headers, fields, agent) in cases {
        let said = stage.ask_with(path, headers, &body(fields.clone()), answer()).await;
        said.place();
        assert_eq!(stage.sprag.events().last().unwrap().agent.as_str(), agent, "{path}");
    }
    for bad in ["a b", "a/b", "ü", "", &"x".repeat(65)] {
        let said = ask(&stage, &[], json!({"sprag_agent": bad})).await;
        assert_eq!(said.status, 400, "{bad:?}");
        assert!(said.json()["error"]["message"].as_str().unwrap().contains("agent name"), "{bad:?}");
    }
    assert_eq!(ask(&stage, &[("x-sprag-agent", &"x".repeat(64))], json!({})).await.status, 200);
    assert_eq!(stage.ask("/agents/a%20b/v1/chat/completions", &body(json!({})), answer()).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_run_belongs_to_its_agent() {
    let stage = Stage::start().await;
    for agent in ["a", "b"] {
        let said = ask(&stage, &[("x-sprag-agent", agent)], json!({"sprag_run_id": "task"})).await;
        assert_eq!(said.place(), ("task", 1), "{agent}");
    }
    // One task may use two providers.
    let anthropic =
        json!({"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [say::user("x")], "sprag_run_id": "task"});
    let play = say::anthropic(&say::unique("msg_"), &[]);
    let said = stage.ask_with("/v1/messages", &[("x-sprag-agent", "a"), ("x-api-key", "z")], &anthropic, play).await;
    assert_eq!(said.place(), ("task", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_clients_are_runs() {
    let stage = Stage::start().await;
    let uuid = "01a1de3a-be8f-7bd1-9837-04f2e6ead61f";
    for (at, header) in ["x-session-id", "session_id", "session-id", "thread-id"].into_iter().enumerate() {
        let id = format!("{uuid}{at}");
        assert_eq!(ask(&stage, &[(header, &id)], json!({})).await.place(), (id.as_str(), 1));
        assert_eq!(ask(&stage, &[(header, &id)], json!({})).await.place(), (id.as_str(), 2), "{header}");
    }
    let user = format!(r#"{{"device_id":"d","account_uuid":"","session_id":"{uuid}"}}"#);
    assert_eq!(ask(&stage, &[], json!({"metadata": {"user_id": user}})).await.place(), (uuid, 1));
    assert_eq!(ask(&stage, &[], json!({"prompt_cache_key": uuid})).await.place(), (uuid, 2));
    let kept = say::unique("conv_");
    let responses = json!({"model": "gpt-4.1", "input": "x", "conversation": {"id": kept}});
    let said = stage.ask("/v1/responses", &responses, say::responses(&say::unique("resp_"), &[])).await;
    assert_eq!(said.place(), (kept.as_str(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cache_key_for_all_conversations_is_no_session() {
    let stage = Stage::start().await;
    let mut runs = Vec::new();
    for conversation in 0..3 {
        let message = say::chat_message(&format!("{conversation}"), &[]);
        let opening = say::user(&format!("Task {conversation}"));
        let body =
            |messages: Value| json!({"model": "gpt-4o", "prompt_cache_key": "support-bot-v2", "messages": messages});
        let first = stage.ask(CHAT, &body(json!([opening])), say::chat(&message)).await;
        let second = stage.ask(CHAT, &body(json!([opening, message, say::user("Go on.")])), answer()).await;
        assert_eq!(second.place(), (first.run.as_str(), 2));
        assert!(!runs.contains(&first.run));
        runs.push(first.run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_rewritten_history() {
    let stage = Stage::start().await;
    let session = [("x-claude-code-session-id", "ff667cca-b06c-4c6a-b824-3e6680aed9b1")];
    for step in 1..=3 {
        let messages = json!([say::user(&format!("Everything is new at step {step}"))]);
        let body = json!({"model": "claude-haiku-4-5", "max_tokens": 9, "messages": messages});
        let play = say::anthropic(&say::unique("msg_"), &[]);
        assert_eq!(stage.ask_with("/v1/messages", &session, &body, play).await.place(), (session[0].1, step));
    }
}
