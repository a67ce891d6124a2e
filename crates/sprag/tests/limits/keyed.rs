//! Whose calls are counted together.

use serde_json::json;
use sprag_core::wire::Dialect;
use sprag_testkit::client;

use crate::configured::{Configured, JWT_SECRET, stopped, token};
use crate::passed;
use crate::wire::{path, request};

/// One call for each value of these keys.
async fn one_for_each(keys: &str) -> Configured {
    let text = format!("[[defaults.rate_limits]]\nlimit_keys = {keys}\nrequests = 1\nwindow_seconds = 60\n");
    let held = "[providers.openai]\napi_key = \"sk-held-for-everybody\"\n";
    Configured::start(&format!("{held}{text}[jwt]\nsecret_file = SECRET_FILE\nheader = \"x-token\"")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_value_has_a_counter_and_those_without_share_one() {
    let [acme, umbrella] = ["acme", "umbrella"].map(|org| token(&json!({"org": org}), JWT_SECRET));
    let forged = token(&json!({"org": "hooli"}), "some other secret of somebody");
    let other_claim = token(&json!({"sub": "anna"}), JWT_SECRET);
    for (keys, one, other, without) in [
        ("[\"agent\"]", ("x-agent-id", "a"), ("x-agent-id", "b"), vec![("x-agent-id", "default"), ("x-other", "1")]),
        (
            "[\"key\"]",
            ("authorization", "Bearer one"),
            ("authorization", "Bearer two"),
            vec![("x-other", "1"), ("x-other", "2")],
        ),
        ("[\"header:X-Tool\"]", ("x-tool", "a"), ("x-tool", "b"), vec![("x-other", "1"), ("x-other", "2")]),
        (
            "[\"jwt:org\"]",
            ("x-token", acme.as_str()),
            ("x-token", umbrella.as_str()),
            vec![("x-other", "1"), ("x-token", forged.as_str()), ("x-token", other_claim.as_str()), ("x-token", "x")],
        ),
    ] {
        let place = one_for_each(keys).await;
        assert_eq!(passed(&place, 3, &[one]).await, 1, "{keys}");
        assert_eq!(passed(&place, 3, &[other]).await, 1, "{keys}");
        assert_eq!(passed(&place, 3, &[one]).await, 0, "{keys}");
        assert_eq!(passed(&place, 1, &without[..1]).await, 1, "{keys}: absent");
        for absent in without {
            assert_eq!(passed(&place, 1, &[absent]).await, 0, "{keys}: {absent:?} shares the counter of those without");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_key_counts_by_itself_wherever_it_stands() {
    let place = one_for_each("[\"key\"]").await;
    let (_, first) = place.issue_key("default").await;
    let (_, second) = place.issue_key("default").await;
    let bare = first.strip_prefix("Bearer ").unwrap();
    assert_eq!(passed(&place, 2, &[("authorization", &first)]).await, 1);
    assert_eq!(passed(&place, 1, &[("x-api-key", bare)]).await, 0);
    assert_eq!(passed(&place, 2, &[("authorization", &second)]).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_counts_where_the_provider_looks() {
    let place = one_for_each("[\"key\"]").await;
    let ask = async |dialect: Dialect, query: &str, headers: &[(&str, &str)]| {
        let url = place.sprag.url(&format!("{}{query}", path(dialect, false)));
        let call = client::post_json(url, &request(dialect, false, "hi"));
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        stopped(&call.fetch().await.unwrap()).is_empty()
    };
    let (openai, anthropic, gemini) = (Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini);
    assert!(ask(anthropic, "", &[("x-api-key", "real")]).await);
    assert!(ask(anthropic, "", &[("authorization", "Bearer of a subscription")]).await);
    assert!(ask(gemini, "?key=theirs", &[]).await);
    assert!(!ask(gemini, "?k%65y=their%73", &[]).await, "another spelling is not another key");
    assert!(ask(openai, "", &[("authorization", "Bearer one"), ("x-api-key", "a")]).await);
    assert!(!ask(openai, "", &[("authorization", "Bearer one"), ("x-api-key", "b")]).await);
    assert!(!ask(openai, "", &[("x-api-key", "real"), ("authorization", "Bearer one")]).await);
    // Beside another one, or where nobody looks, it makes nobody somebody new.
    assert!(ask(anthropic, "", &[("x-api-key", "real"), ("authorization", "Bearer random-1")]).await);
    assert!(!ask(anthropic, "", &[("x-api-key", "real"), ("authorization", "Bearer random-2")]).await);
    assert!(!ask(openai, "", &[("x-api-key", "random-3")]).await);
    assert!(!ask(openai, "?key=random-4", &[("api-key", "random-5")]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn ip_query_and_model() {
    let place = one_for_each("[\"ip\"]").await;
    assert_eq!(passed(&place, 2, &[("x-forwarded-for", "10.0.0.1")]).await, 1);
    assert_eq!(passed(&place, 2, &[("x-forwarded-for", "10.0.0.2")]).await, 0, "anybody can write that");

    let place = one_for_each("[\"query:tenant\", \"model\"]").await;
    let send = async |path: &str, model: &str| {
        let mut body = request(Dialect::OpenaiChat, false, "hi");
        body["model"] = model.into();
        let answer = client::post_json(place.sprag.url(path), &body).fetch().await.unwrap();
        stopped(&answer).is_empty()
    };
    assert!(send("/v1/chat/completions?tenant=a", "gpt-4o").await);
    assert!(!send("/v1/chat/completions?x=1&tenant=%61", "openai/GPT-4o").await, "another spelling is not another one");
    assert!(send("/v1/chat/completions?tenant=b", "gpt-4o").await);
    assert!(send("/v1/chat/completions?tenant=a", "gpt-4o-mini").await);
    assert!(send("/v1/chat/completions", "gpt-4o").await);
    assert!(!send("/v1/chat/completions?other=a", "gpt-4o").await);
}
