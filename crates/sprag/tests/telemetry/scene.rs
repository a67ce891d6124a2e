//! A Sprag that is watched, and traffic of every kind.

use serde_json::json;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Reply, Script, When};

use crate::configured::Configured;
use crate::page::Page;
use crate::wire::{STREAMING, path, request};

pub(crate) const TOKEN: &str = "admin-token-of-the-tests-0123456789";
pub(crate) const VIEWER: &str = "viewer-token-of-the-tests-0123456789";

/// Tokens, and an agent of each kind that is stopped.
pub(crate) const CONFIG: &str = r#"
admin.token = "admin-token-of-the-tests-0123456789"
admin.viewer_token = "viewer-token-of-the-tests-0123456789"
[agents.picky.models]
allow = ["claude-*"]
[agents.strict.dlp]
profile = "strict"
[agents.funded.budget]
daily_limit = 100
[agents.watched.budget]
daily_limit = 0.000001
mode = "shadow"
"#;

/// A Sprag with these tables and keys besides.
pub(crate) async fn place(more: &str) -> Configured {
    Configured::start_with(script(), &format!("{CONFIG}{more}"), true).await
}

/// The same with detection of loops, which kills a run at the second request of the same bytes.
pub(crate) async fn looping(more: &str) -> Configured {
    let rule = "[detection.repeat]\nmode = \"enforce\"\naction = \"kill_run\"\nthreshold_identical_requests = 2\n";
    Configured::start_with(script(), &format!("{CONFIG}{rule}{more}"), false).await
}

pub(crate) fn script() -> Script {
    Script::new()
        .when(When::Header("x-want".into(), "error".into()), [Reply::status(500).message("no")])
        .when(When::Always, [Reply::text("The answer is 42.")])
}

pub(crate) fn chat(place: &Configured, agent: &str, model: &str, text: &str) -> Call {
    let body = json!({"model": model, "messages": [{"role": "user", "content": text}]});
    client::post_json(place.sprag.url(&format!("/agents/{agent}/v1/chat/completions")), &body)
}

pub(crate) async fn fetch(call: Call) -> Whole {
    call.fetch().await.unwrap()
}

/// What the page says to somebody who may look.
pub(crate) async fn metrics(place: &Configured) -> Page {
    let call = client::get(format!("http://{}/metrics", place.sprag.admin));
    let answer = fetch(call.header("authorization", &format!("Bearer {VIEWER}"))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    Page::read(std::str::from_utf8(&answer.body).unwrap())
}

/// Traffic of every kind: every dialect, streams, errors, stops, findings, a model without a price. Gives how many calls
/// that were.
pub(crate) async fn traffic(place: &Configured) -> usize {
    let mut calls = 0;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let call =
                client::post_json(place.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hello"));
            assert_eq!(fetch(call).await.status, 200, "{dialect:?} {is_stream}");
            calls += 1;
        }
    }
    let embeddings = Dialect::OpenaiEmbeddings;
    let others = [
        client::post_json(place.sprag.url(path(embeddings, false)), &request(embeddings, false, "hello")),
        client::get(place.sprag.url("/v1/models")),
        chat(place, "plain", "gpt-4o", "hello").header("x-want", "error"),
        chat(place, "picky", "gpt-4o", "hello"),
        chat(place, "strict", "gpt-4o", "my key is sk-1234567890abcdef"),
        chat(place, "plain", "gpt-4o", "my key is sk-1234567890abcdef"),
        chat(place, "plain", "a-model-that-nobody-sells", "hello"),
        chat(place, "funded", "gpt-4o-mini", "hello"),
        chat(place, "watched", "gpt-4o-mini", "hello"),
        client::post(place.sprag.url("/v1/chat/completions"), "{\"model\": "),
    ];
    for call in others {
        fetch(call).await;
        calls += 1;
    }
    place.sprag.settled(calls).await;
    calls
}
