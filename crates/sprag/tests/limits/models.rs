//! Models that an agent may not ask, wherever the request names them.

use serde_json::json;
use sprag_core::wire::Dialect;
use sprag_testkit::client;

use crate::configured::{Configured, stopped};
use crate::wire::{STREAMING, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn each_dialect_names_its_model_in_its_own_place() {
    let place = Configured::start("[defaults.models]\nallow = [\"none-of-these\"]").await;
    for dialect in STREAMING.into_iter().chain([Dialect::OpenaiEmbeddings]) {
        for is_stream in [false, true] {
            let call = client::post_json(place.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hi"));
            let answer = call.fetch().await.unwrap();
            assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, "model_not_allowed"), "{dialect:?}");
            let told = answer.json();
            let message = told["error"]["message"].as_str().unwrap();
            assert!(message.contains("add it to `models.allow`: none-of-these"), "{message}");
        }
    }
    let deployment = "/azure/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21";
    let body = json!({"messages": [{"role": "user", "content": "hi"}]});
    let answer = client::post_json(place.sprag.url(deployment), &body).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, "model_not_allowed"), "{}", answer.json());
    let nameless = client::post_json(place.sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!(stopped(&nameless), "model_not_allowed", "the provider would choose one");
    assert_eq!(place.provider.log().view().total, 0);
    assert_eq!(client::get(place.sprag.url("/v1/models")).fetch().await.unwrap().status, 200, "no model is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_and_spellings_are_known() {
    let place =
        Configured::start("[defaults.models]\nallow = [\"gpt-4o*\", \"gemini-2.5-flash\", \"claude-sonnet-4-5\"]")
            .await;
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini] {
        let call = client::post_json(place.sprag.url(path(dialect, false)), &request(dialect, false, "hi"));
        assert_eq!(stopped(&call.fetch().await.unwrap()), "", "{dialect:?}");
    }
    for (model, is_allowed) in
        [("gpt-4o-2024-08-06", true), ("openai/gpt-4o", true), ("gpt-4", false), ("my-gpt-4o", false), ("o3", false)]
    {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        let answer = client::post_json(place.sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        assert_eq!(stopped(&answer).is_empty(), is_allowed, "{model}");
    }
}
