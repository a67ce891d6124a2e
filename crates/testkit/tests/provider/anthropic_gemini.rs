//! The Anthropic and Gemini dialects of the scripted provider.

use serde_json::{Value, json};
use sprag_core::usage::Usage;
use sprag_testkit::client::{Whole, get, post_json};
use sprag_testkit::{Provider, Reply, Script};

#[cfg(test)]
async fn ask(provider: &Provider, path: &str, body: Value) -> Whole {
    let whole = post_json(format!("{}{path}", provider.url()), &body).fetch().await.unwrap();
    assert_eq!(whole.broken, None);
    whole
}

fn message(text: &str) -> Value {
    json!({"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": text}]})
}

fn contents(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

fn numbers() -> Usage {
    Usage { input: 7, cache_read: 20, cache_write: 3, cache_write_1h: 4, output: 30, reasoning: 10, ..Usage::default() }
}

fn busy() -> Script {
    Script::always(Reply::tool("get", json!({"city": "Rome"})).saying("I look.").reasoning("think").usage(numbers()))
}

#[tokio::test]
async fn messages_as_json() {
    let provider = Provider::start(busy()).unwrap();
    let answer = ask(&provider, "/v1/messages?beta=true", message("x")).await.json();
    assert_eq!(answer["id"], "msg_mock000001");
    assert_eq!(answer["content"][0]["thinking"], "think");
    assert_eq!(answer["content"][1], json!({"type": "text", "text": "I look."}));
    assert_eq!(answer["content"][2]["input"], json!({"city": "Rome"}));
    assert_eq!(answer["stop_reason"], "tool_use");
    let usage = &answer["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(7), &json!(20)));
    assert_eq!((&usage["cache_creation_input_tokens"], &usage["output_tokens"]), (&json!(7), &json!(30)));
    assert_eq!(usage["cache_creation"]["ephemeral_1h_input_tokens"], 4);
}

#[tokio::test]
async fn messages_as_a_stream() {
    let provider = Provider::start(busy()).unwrap();
    let mut body = message("x");
    body["stream"] = true.into();
    let events = ask(&provider, "/v1/messages", body).await.events();
    let mut names: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let first = ["message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop"];
    let end = ["message_delta", "message_stop"];
    assert_eq!(names, [&first[..], &block, &block, &end].concat());
    let part = |key: &str| -> String {
        events.iter().filter_map(|event| event.json()["delta"][key].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(part("text"), "I look.");
    assert_eq!(part("thinking"), "think");
    assert_eq!(part("partial_json"), "{\"city\":\"Rome\"}");
    assert_eq!(events[0].json()["message"]["usage"]["cache_read_input_tokens"], 20);
    let delta = events[events.len() - 2].json();
    assert_eq!((&delta["usage"]["output_tokens"], &delta["delta"]["stop_reason"]), (&json!(30), &json!("tool_use")));
}

#[tokio::test]
async fn a_thread_is_continued_once_and_only_if_it_exists() {
    let provider = Provider::start(Script::healthy_agent(1, "done")).unwrap();
    let mut body = message("go");
    body["thread"] = json!({"type": "create"});
    let first = ask(&provider, "/v1/messages", body).await.json();
    assert_eq!(first["stop_reason"], "tool_use");
    let mut body = message("ignored");
    body["messages"][0]["content"] = json!([{"type": "tool_result", "tool_use_id": "t", "content": "r"}]);
    body["thread"] = json!({"type": "continue", "previous_message_id": first["id"]});
    let second = ask(&provider, "/v1/messages", body.clone()).await.json();
    assert_eq!(second["content"][0]["text"], "done");

    let again = ask(&provider, "/v1/messages", body.clone()).await;
    assert_eq!(again.status, 400);
    assert_eq!(again.json()["error"]["details"]["error_code"], "thread_already_continued");
    body["thread"]["previous_message_id"] = "msg_nobody".into();
    let unknown = ask(&provider, "/v1/messages", body).await;
    assert_eq!((unknown.status.as_u16(), &unknown.json()["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(unknown.json()["error"]["details"]["error_code"], "thread_not_found");
}

#[tokio::test]
async fn a_course_goes_on_in_a_thread_that_repeats_neither_prompt_nor_tools() {
    let provider = Provider::start(Script::new()).unwrap();
    let mut body = message(r#"go [[mock:agent steps=2 args={"n":"$N"}]]"#);
    body["thread"] = json!({"type": "create"});
    body["tools"] = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let answer = ask(&provider, "/v1/messages", body).await.json();
        let block = answer["content"][0].clone();
        seen.push(json!([block["name"], block["input"]["n"], block["text"]]));
        body = message("result");
        body["thread"] = json!({"type": "continue", "previous_message_id": answer["id"]});
    }
    assert_eq!(seen[..2], [json!(["look", "1", null]), json!(["look", "2", null])]);
    assert_eq!(seen[2][2], "Finished after 2 steps.");
}

#[tokio::test]
async fn tokens_are_counted() {
    let provider = Provider::start(Script::always(Reply::text("").usage(numbers()))).unwrap();
    let body = json!({"model": "c", "messages": []});
    assert_eq!(ask(&provider, "/v1/messages/count_tokens", body).await.json(), json!({"input_tokens": 34}));
    let counted = ask(&provider, "/v1beta/models/g:countTokens", contents("x")).await.json();
    assert_eq!(counted, json!({"totalTokens": 34}));
}

#[tokio::test]
async fn gemini_as_json_and_as_two_kinds_of_stream() {
    let provider = Provider::start(busy()).unwrap();
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    let whole = ask(&provider, path, contents("x")).await.json();
    let parts = &whole["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0], json!({"text": "think", "thought": true}));
    assert_eq!(parts[2]["functionCall"], json!({"name": "get", "args": {"city": "Rome"}}));
    let usage = &whole["usageMetadata"];
    assert_eq!((&usage["promptTokenCount"], &usage["candidatesTokenCount"]), (&json!(34), &json!(20)));
    assert_eq!((&usage["thoughtsTokenCount"], &usage["cachedContentTokenCount"]), (&json!(10), &json!(20)));
    assert_eq!(whole["modelVersion"], "gemini-2.5-pro");

    let path = "/v1/models/gemini-2.5-pro:streamGenerateContent";
    let sse = ask(&provider, &format!("{path}?alt=sse"), contents("x")).await;
    assert_eq!(sse.header("content-type"), "text/event-stream");
    assert!(sse.body.ends_with(b"\r\n\r\n"));
    let events: Vec<Value> = sse.events().iter().map(|event| event.json()).collect();
    let array = ask(&provider, path, contents("x")).await;
    assert_eq!(array.header("content-type"), "application/json");
    let elements = array.json().as_array().unwrap().clone();
    for list in [&events, &elements] {
        let last = list.last().unwrap();
        assert_eq!(last["candidates"][0]["finishReason"], "STOP");
        assert_eq!(last["usageMetadata"], *usage);
        assert!(list[..list.len() - 1].iter().all(|chunk| chunk["candidates"][0]["finishReason"].is_null()));
    }
    assert_eq!(events.len(), elements.len());
}

#[tokio::test]
async fn models_in_three_dialects() {
    let provider = Provider::start(Script::new()).unwrap();
    let url = |path: &str| format!("{}{path}", provider.url());
    let openai = get(url("/v1/models")).fetch().await.unwrap().json();
    assert_eq!(openai["data"][0]["object"], "model");
    let anthropic = get(url("/v1/models")).header("anthropic-version", "2023-06-01").fetch().await.unwrap().json();
    assert_eq!(anthropic["data"][0]["type"], "model");
    let gemini = get(url("/v1beta/models")).fetch().await.unwrap().json();
    assert_eq!(gemini["models"][0]["name"], "models/mock-small");
    let one = get(url("/v1/models/gpt-9")).fetch().await.unwrap().json();
    assert_eq!(one["id"], "gpt-9");
}
