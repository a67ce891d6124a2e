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

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_path_gets_around_the_list() {
    let place = Configured::start("[defaults.models]\nallow = [\"gpt-4o\"]").await;
    let ask = async |path: &str, body: &serde_json::Value| {
        let answer = client::post_json(place.sprag.url(path), body).fetch().await.unwrap();
        (answer.status.as_u16(), stopped(&answer).to_owned())
    };
    let (dear, allowed) = (chat("o3"), chat("gpt-4o"));
    for path in [
        "/v1/chat/complet%69ons",
        "/v1/chat/completions//",
        "//v1/chat//completions",
        "/v1%2Fchat/completions",
        "/openai/v1/Chat/Completions",
    ] {
        assert_eq!(ask(path, &dear).await, (403, "model_not_allowed".to_owned()), "{path}");
    }
    for path in ["/v1/chat/completions/.", "/v1/x/../chat/completions", "/openai/v1/%2e/chat/completions"] {
        let (status, _) = ask(path, &dear).await;
        assert_eq!(status, 400, "{path}");
    }
    assert_eq!(place.provider.log().view().total, 0);
    assert_eq!(ask("/v1/chat/complet%69ons", &allowed).await.1, "");
    assert_eq!(place.provider.requests()[0].path, "/v1/chat/complet%69ons", "sent on as written");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_model_that_may_answer_is_on_the_list() {
    let place = Configured::start("[defaults.models]\nallow = [\"gpt-4o\", \"dall-e-2\"]").await;
    let ask = async |path: &str, body: serde_json::Value| {
        let call = client::post(place.sprag.url(path), body.to_string());
        stopped(&call.header("content-type", "application/json").fetch().await.unwrap()).to_owned()
    };
    let (refused, passed) = ("model_not_allowed", "");
    let deployment = "/azure/openai/deployments/o3/chat/completions?api-version=1";
    assert_eq!(ask(deployment, chat("gpt-4o")).await, refused, "the path says which one answers");
    let with = |models: serde_json::Value| {
        let mut body = chat("gpt-4o");
        body["models"] = models;
        body
    };
    assert_eq!(ask("/v1/chat/completions", with(json!(["gpt-4o", "o3"]))).await, refused);
    assert_eq!(ask("/v1/chat/completions", with(json!(["openai/gpt-4o"]))).await, passed);
    // Of what is not understood, the model at least.
    let images = "/v1/images/generations";
    assert_eq!(ask(images, json!({"model": "dall-e-3", "prompt": "a cat"})).await, refused);
    assert_eq!(ask(images, json!({"model": "dall-e-2", "prompt": "a cat"})).await, passed);
    assert_eq!(ask(images, json!({"prompt": "a cat"})).await, passed);
    assert_eq!(ask("/v1beta/models/imagen-4:predict", json!({})).await, refused);
    assert_eq!(ask("/v1/messages/count_tokens", json!({"model": "claude-opus-4", "messages": []})).await, passed);
    let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b--";
    let upload =
        client::post(place.sprag.url("/v1/files"), form).header("content-type", "multipart/form-data; boundary=b");
    assert_eq!(stopped(&upload.fetch().await.unwrap()), passed);
    assert_eq!(&place.provider.requests().pop().unwrap().body[..], form.as_bytes());
}

fn chat(model: &str) -> serde_json::Value {
    json!({"model": model, "messages": [{"role": "user", "content": "hi"}]})
}
