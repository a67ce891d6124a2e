//! One call in each form, seen from the client, the provider and the record.

use serde_json::{Value, json};
use sprag::config::file::Unpriced;
use sprag_core::event::Ending;
use sprag_testkit::{Provider, Script, client, sse};

use crate::sprag::Sprag;

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_call_comes_back_with_its_run_and_cost() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start(&provider).await;
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]});
    let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!(answer.status, 200);
    let parsed: Value = serde_json::from_slice(&answer.body).unwrap();
    let meta = &parsed["sprag"];
    assert_eq!(meta["step"], 1);
    assert_eq!(meta["provider"], "openai");
    assert_eq!(answer.header("x-sprag-run-id"), meta["run_id"]);
    assert_eq!(answer.header("x-sprag-step"), "1");
    let cost = answer.header("x-sprag-cost-usd").parse::<f64>().unwrap();
    assert!(cost > 0.0 && meta["cost_usd"] == cost);

    let events = sprag.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].ending, Ending::Complete);
    assert_eq!(events[0].id, answer.header("x-sprag-request-id"));
    assert_eq!(events[0].cost.unwrap().as_usd(), cost);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_asked_for_and_taken_out_again() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start(&provider).await;
    let body = json!({"model": "gpt-4o", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    let events = sse::events(&answer.body);
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|e| serde_json::from_str(&e.data).unwrap()).collect();
    assert!(chunks.iter().all(|chunk| chunk["choices"] != json!([])), "the usage chunk was not asked for");
    assert_eq!(chunks.last().unwrap()["sprag"]["step"], 1);
    assert_eq!(provider.requests()[0].json()["stream_options"], json!({"include_usage": true}));
    let event = &sprag.events()[0];
    assert!(event.stream && event.cost.is_some() && !event.usage.unwrap().estimated);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_says_whose_it_is_and_that_a_retry_is_no_use() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| settings.prices.unpriced = Unpriced::Block).await;
    let body = json!({"model": "home-made", "messages": [{"role": "user", "content": "hello"}], "sprag_run_id": "r1"});
    let answer = client::post_json(sprag.url("/agents/bot/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("x-sprag-blocked"), "model_not_allowed");
    assert_eq!(answer.header("x-should-retry"), "false");
    assert_eq!(answer.header("x-sprag-run-id"), "r1");
    let parsed: Value = serde_json::from_slice(&answer.body).unwrap();
    let error = &parsed["error"];
    assert_eq!(
        (&error["type"], &error["run_id"], &error["agent"]),
        (&json!("model_not_allowed"), &json!("r1"), &json!("bot"))
    );
    assert_eq!(parsed["block_reason"], "model_not_allowed");
    assert!(provider.requests().is_empty(), "nothing was forwarded");
    let event = &sprag.settled(1).await[0];
    assert!(event.blocked && event.ending == Ending::Refused && event.cost.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_makes_no_sense_is_still_its_agents() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start(&provider).await;
    let answer = client::post(sprag.url("/agents/bot/v1/chat/completions"), "not json").fetch().await.unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap()["error"]["agent"], "bot");
    assert_eq!(sprag.settled(1).await[0].agent.as_str(), "bot");
}
