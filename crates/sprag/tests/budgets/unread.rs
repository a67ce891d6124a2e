//! Requests that nobody here understands, and that may cost money all the same.

use serde_json::{Value, json};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Reserve, Window};
use sprag_core::wire::Dialect;
use sprag_testkit::{Script, client};

use crate::purse::{Purse, budget, chat, reason, wordy};

const COSTLY: [&str; 6] = [
    "/v1/images/generations",
    "/v1/audio/speech",
    "/v1/messages/batches",
    "/v1/batches",
    "/v1/files",
    "/v1beta/models/imagen-4:predict",
];

async fn post(purse: &Purse, path: &str, body: Value) -> String {
    reason(&client::post_json(purse.sprag.url(path), &body).fetch().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_used_up_refuses_them() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 10)).await;
    for path in COSTLY {
        assert_eq!(post(&purse, path, json!({"model": "dall-e-3"})).await, "", "{path}: there is money");
    }
    purse.quiet().await;
    purse.nothing_is_reserved();
    assert_eq!(purse.account("agent:default daily").settled, NanoUsd::ZERO, "what they cost is not known");
    assert_eq!(purse.ask("task", 10).await.status, 200);
    let before = purse.forwarded();
    for path in COSTLY {
        assert_eq!(post(&purse, path, json!({"model": "dall-e-3"})).await, "budget_exceeded", "{path}");
    }
    assert_eq!(purse.forwarded(), before);
    for path in ["/v1/messages/count_tokens", "/v1/batches/b/cancel", "/v1beta/models/gemini-2.5-flash:countTokens"] {
        assert_eq!(post(&purse, path, json!({"messages": [], "contents": []})).await, "", "{path}");
    }
    assert_eq!(reason(&client::get(purse.sprag.url("/v1/models")).fetch().await.unwrap()), "");
    purse.quiet().await;
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_path_gets_around_a_budget() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 10)).await;
    let ask = async |path: &str| {
        let call = client::post_json(purse.sprag.url(path), &chat("hello")).header("x-mock-usage", "input=0 output=7");
        call.fetch().await.unwrap().status.as_u16()
    };
    assert_eq!(ask("/v1/chat/completions/").await, 200);
    purse.quiet().await;
    for path in ["/v1/chat/complet%69ons", "/v1/chat/completions//"] {
        assert_eq!(ask(path).await, 402, "{path}");
    }
    assert_eq!(ask("/v1/chat/completions/.").await, 400);
    assert_eq!(purse.forwarded(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dearest_of_the_models_that_may_answer_is_set_aside() {
    let strict = Budget { reserve: Reserve::WorstCase, kill_run: false, ..budget(Window::Day, 100) };
    let purse = Purse::start_with(Script::new().lenient(), |settings| {
        settings.policies.defaults.budget = strict;
        let cheap = json!({"model": "cheap", "input": "0", "output": "1"});
        settings.prices.overrides.push(serde_json::from_value(cheap).unwrap());
    })
    .await;
    let ask = async |path: &str, models: Value| {
        let body = json!({"model": "cheap", "models": models, "messages": [], "max_tokens": 101});
        post(&purse, path, body).await
    };
    let path = "/v1/chat/completions";
    assert_eq!(ask(path, json!(["cheap"])).await, "");
    assert_eq!(ask(path, json!(["cheap", "gpt-4o"])).await, "budget_exceeded");
    assert_eq!(ask("/openai/openai/deployments/gpt-4o/chat/completions", json!([])).await, "budget_exceeded");
    let within = wordy(&purse, Dialect::OpenaiChat, false, 1, Some(90)).fetch().await.unwrap();
    assert_eq!(within.status, 200);
}
