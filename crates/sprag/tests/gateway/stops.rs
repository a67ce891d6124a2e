//! How a stop looks on the wire, for every dialect, form and client. The stop is a model without a price where
//! such models are refused: what is looked at is the same for every reason.

use serde_json::{Value, json};
use sprag::config::Settings;
use sprag::config::file::{Compat, Unpriced};
use sprag_core::event::Ending;
use sprag_core::wire::{Dialect, Form, Manner, Reason};
use sprag_testkit::{Provider, Script, client};

use crate::sprag::Sprag;
use crate::wire::{STREAMING, request};

const CLIENTS: [(&str, &str, u16); 6] = [
    ("claude-cli/2.1.325 (external, sdk-cli)", "x-app", 451),
    ("codex_exec/0.166.0 (Debian)", "originator", 400),
    ("GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)", "x-app", 400),
    ("ai-sdk-openai/4.0.114 runtime/node.js/24", "x-app", 403),
    ("OpenAI/Python 3.49.0", "x-app", 403),
    ("curl/8", "x-app", 403),
];

async fn start(change: impl FnOnce(&mut Settings)) -> (Provider, Sprag) {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        settings.prices.unpriced = Unpriced::Block;
        change(settings);
    });
    let sprag = sprag.await;
    (provider, sprag)
}

fn manner(settings: &mut Settings, manner: Manner) {
    settings.responses.reasons.insert(Reason::ModelNotAllowed, manner);
}

fn assistant(settings: &mut Settings) {
    manner(settings, Manner { form: Some(Form::Assistant), ..Manner::default() });
}

/// Where a request for a model without a price goes.
fn path(dialect: Dialect, is_stream: bool) -> &'static str {
    match (dialect, is_stream) {
        (Dialect::Gemini, true) => "/v1beta/models/nobody-knows:streamGenerateContent?alt=sse",
        (Dialect::Gemini, false) => "/v1beta/models/nobody-knows:generateContent",
        _ => crate::wire::path(dialect, is_stream),
    }
}

fn body(dialect: Dialect, is_stream: bool) -> String {
    let mut body = request(dialect, is_stream, "hello");
    if dialect != Dialect::Gemini {
        body["model"] = json!("nobody-knows");
    }
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_the_one_at_which_the_client_gives_up() {
    let (provider, sprag) = start(|_| {}).await;
    for dialect in STREAMING.into_iter().chain([Dialect::OpenaiEmbeddings]) {
        for (user_agent, header, status) in CLIENTS {
            for is_stream in [false, true] {
                let call = client::post(sprag.url(path(dialect, is_stream)), body(dialect, is_stream));
                let call = call.header("user-agent", user_agent).header(header, "codex_exec");
                let answer = call.fetch().await.unwrap();
                assert_eq!(answer.status, status, "{user_agent} {dialect:?}");
                assert_eq!(answer.header("content-type"), "application/json", "SDKs raise before a stream begins");
                assert_eq!(answer.header("x-sprag-blocked"), "model_not_allowed");
                assert_eq!(answer.header("x-should-retry"), "false");
                let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
                assert!(message.contains("[sprag: model_not_allowed, run "), "{message}");
            }
        }
    }
    let count = 6 * CLIENTS.len() * 2;
    let events = sprag.settled(count).await;
    assert!(events.iter().all(|e| e.blocked && e.ending == Ending::Refused && e.status != 200));
    assert_eq!(provider.log().view().total, 0, "what was refused was not sent on");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_adaption_everyone_gets_the_table() {
    let (_provider, sprag) = start(|settings| settings.responses.adapt = false).await;
    for (user_agent, header, _) in CLIENTS {
        let call = client::post(sprag.url("/v1/responses"), body(Dialect::OpenaiResponses, true));
        let call = call.header("user-agent", user_agent).header(header, "codex_exec");
        assert_eq!(call.fetch().await.unwrap().status, 403, "{user_agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assistant_says_it_in_every_dialect() {
    let (provider, sprag) = start(assistant).await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let call = client::post(sprag.url(path(dialect, is_stream)), body(dialect, is_stream));
            let answer = call.header("user-agent", CLIENTS[1].0).header("x-sprag-run-id", "r1").fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{dialect:?}");
            let expected = if is_stream { "text/event-stream; charset=utf-8" } else { "application/json" };
            assert_eq!(answer.header("content-type"), expected);
            assert_eq!(answer.header("x-sprag-blocked"), "model_not_allowed");
            assert_eq!((answer.header("x-should-retry"), answer.header("x-sprag-run-id")), ("false", "r1"));
            assert!(!answer.header("x-sprag-step").is_empty() && !answer.header("x-sprag-request-id").is_empty());
            let said = if is_stream { last_data(&answer.body) } else { answer.json() };
            assert_eq!(said["sprag"]["block_reason"], "model_not_allowed", "{dialect:?}");
            assert_eq!(said["sprag"]["run_id"], "r1");
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(text.contains("nobody-knows") && text.contains("sprag-policy"), "{text}");
        }
    }
    let events = sprag.settled(STREAMING.len() * 2).await;
    assert!(events.iter().all(|e| e.blocked && e.status == 200 && e.cost.is_none() && e.ending == Ending::Refused));
    assert_eq!(provider.log().view().total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_get_an_error_where_others_get_the_assistant() {
    let (_provider, sprag) = start(assistant).await;
    let call = client::post(sprag.url("/v1/embeddings"), body(Dialect::OpenaiEmbeddings, false));
    let answer = call.fetch().await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.json()["error"]["type"], "model_not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gemini_stream_without_events_is_a_list() {
    let (_provider, sprag) = start(assistant).await;
    let url = sprag.url("/v1beta/models/nobody-knows:streamGenerateContent");
    let answer = client::post(url, body(Dialect::Gemini, true)).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    assert_eq!(answer.json()[0]["candidates"][0]["finishReason"], "STOP");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_metadata_the_assistant_says_only_its_text() {
    let (_provider, sprag) = start(|settings| {
        assistant(settings);
        settings.responses.metadata = false;
    })
    .await;
    let call = client::post(sprag.url("/v1/messages"), body(Dialect::Anthropic, false));
    assert_eq!(call.fetch().await.unwrap().json().get("sprag"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_text_are_as_configured() {
    let (_provider, sprag) = start(|settings| {
        manner(settings, Manner { form: None, status: Some(418), text: Some("No tea: {message}".into()) });
    })
    .await;
    for (user_agent, ..) in CLIENTS {
        let call = client::post(sprag.url("/v1/messages"), body(Dialect::Anthropic, false));
        let answer = call.header("user-agent", user_agent).fetch().await.unwrap();
        assert_eq!(answer.status, 418, "{user_agent}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("No tea: model `nobody-knows` has no price") && !message.contains("[sprag"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_gateways_are_imitated() {
    let (_provider, sprag) = start(|settings| {
        settings.responses.compat = vec![Compat::Agentwall, Compat::Fairvisor];
    })
    .await;
    let call = client::post(sprag.url("/v1/chat/completions"), body(Dialect::OpenaiChat, false));
    let answer = call.header("x-agentwall-run-id", "task-1").fetch().await.unwrap();
    assert_eq!(answer.header("x-fairvisor-reason"), "model_not_allowed");
    assert_eq!(answer.json()["error"]["code"], "agentwall_model");
    assert_eq!(answer.json()["error"]["run_id"], "task-1");
    assert_eq!((answer.header("x-agentwall-run-id"), answer.header("x-agentwall-step")), ("task-1", "1"));
    let call = client::post_json(sprag.url("/v1/chat/completions"), &request(Dialect::OpenaiChat, false, "hello"));
    let answer = call.header("x-agentwall-run-id", "task-1").fetch().await.unwrap();
    assert_eq!(answer.header("x-agentwall-step"), "2");
    assert_eq!(answer.header("x-agentwall-cost"), answer.header("x-sprag-cost-usd"));
    assert_eq!(answer.json()["agentwall"], answer.json()["sprag"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_to_everyone_alike() {
    let (_provider, sprag) = start(assistant).await;
    for (user_agent, ..) in CLIENTS {
        let call = client::post(sprag.url("/v1/responses"), "[]").header("user-agent", user_agent);
        let answer = call.fetch().await.unwrap();
        assert_eq!(answer.status, 400);
        assert!(answer.headers.get("x-sprag-blocked").is_none() && answer.headers.get("x-should-retry").is_none());
    }
}

/// The last JSON in a stream.
fn last_data(stream: &[u8]) -> Value {
    let text = std::str::from_utf8(stream).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).next_back().unwrap()
}
