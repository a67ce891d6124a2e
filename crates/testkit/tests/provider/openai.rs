//! The OpenAI dialects of the scripted provider.

use serde_json::{Value, json};
use sprag_core::usage::Usage;
use sprag_testkit::client::{Whole, post_json};
use sprag_testkit::{Provider, Reply, Script};

#[cfg(test)]
async fn ask(provider: &Provider, path: &str, body: Value) -> Whole {
    let whole = post_json(format!("{}{path}", provider.url()), &body).fetch().await.unwrap();
    assert_eq!(whole.broken, None);
    whole
}

fn chat(text: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": text}]})
}

fn numbers() -> Usage {
    Usage { input: 70, cache_read: 20, cache_write: 10, output: 30, reasoning: 12, ..Usage::default() }
}

#[tokio::test]
async fn chat_echoes_by_default() {
    let provider = Provider::start(Script::new()).unwrap();
    let whole = ask(&provider, "/v1/chat/completions", chat("hello there")).await;
    assert_eq!(whole.status, 200);
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    let answer = whole.json();
    assert_eq!(answer["id"], "chatcmpl-mock000001");
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: hello there");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert!(answer["usage"]["total_tokens"].as_u64().unwrap() > 1);
}

#[tokio::test]
async fn chat_calls_tools_in_parallel_and_reports_numbers() {
    let reply = Reply::tool("get", json!({"city": "Rome"})).and_tool("put", json!({"n": 1})).usage(numbers());
    let provider = Provider::start(Script::always(reply)).unwrap();
    let mut body = chat("x");
    let answer = ask(&provider, "/v1/chat/completions", body.clone()).await.json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], Value::Null);
    assert_eq!(message["tool_calls"][1]["function"], json!({"name": "put", "arguments": "{\"n\":1}"}));
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    let usage = &answer["usage"];
    assert_eq!((usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64()), (Some(100), Some(30)));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 20);
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 12);

    body["stream"] = true.into();
    let events = ask(&provider, "/v1/chat/completions", body).await.events();
    let mut arguments = [String::new(), String::new()];
    for event in &events {
        for call in event.json()["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            arguments[index].push_str(call["function"]["arguments"].as_str().unwrap());
        }
    }
    assert_eq!(arguments, ["{\"city\":\"Rome\"}", "{\"n\":1}"]);
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(events[events.len() - 2].json()["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn usage_is_streamed_exactly_when_asked_for() {
    let provider = Provider::start(Script::always(Reply::text("some words").usage(numbers()))).unwrap();
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let mut body = if path.contains("chat") { chat("x") } else { json!({"model": "m", "prompt": "x"}) };
        body["stream"] = true.into();
        let chunks = chunks(&ask(&provider, path, body.clone()).await);
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()), "{path}");
        assert!(chunks.iter().all(|chunk| chunk["choices"].as_array().unwrap().len() == 1));

        body["stream_options"] = json!({"include_usage": true});
        let chunks = self::chunks(&ask(&provider, path, body).await);
        let (last, others) = chunks.split_last().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["total_tokens"], 130);
        assert!(others.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)), "{path}");
    }
}

#[tokio::test]
async fn absent_usage_is_absent_everywhere() {
    let provider = Provider::start(Script::always(Reply::text("t").no_usage())).unwrap();
    let mut body = chat("x");
    assert_eq!(ask(&provider, "/v1/chat/completions", body.clone()).await.json().get("usage"), None);
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let chunks = chunks(&ask(&provider, "/v1/chat/completions", body).await);
    assert!(chunks.iter().all(|chunk| chunk["usage"].is_null()));
}

#[tokio::test]
async fn several_choices_refusal_and_reasoning() {
    let provider = Provider::start(Script::new().on("no", Reply::refusal("I will not.").reasoning("hm"))).unwrap();
    let mut body = chat("fine");
    body["n"] = 3.into();
    let answer = ask(&provider, "/v1/chat/completions", body).await.json();
    assert_eq!(answer["choices"][2]["message"]["content"], "You said: fine (choice 2)");

    let mut body = chat("no");
    let message = ask(&provider, "/v1/chat/completions", body.clone()).await.json()["choices"][0]["message"].clone();
    assert_eq!((&message["content"], &message["refusal"]), (&Value::Null, &json!("I will not.")));
    assert_eq!(message["reasoning_content"], "hm");
    body["stream"] = true.into();
    let chunks = chunks(&ask(&provider, "/v1/chat/completions", body).await);
    let refusal: String = chunks.iter().filter_map(|c| c["choices"][0]["delta"]["refusal"].as_str()).collect();
    assert_eq!(refusal, "I will not.");
}

#[tokio::test]
async fn completions_answer_the_prompt() {
    let provider = Provider::start(Script::new()).unwrap();
    let answer = ask(&provider, "/v1/completions", json!({"model": "m", "prompt": "once"})).await.json();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["choices"][0]["text"], "You said: once");
}

#[tokio::test]
async fn responses_stream_numbers_every_event_and_repeats_the_text() {
    let reply = Reply::tool("get", json!({"a": 1})).saying("I look.").reasoning("think").usage(numbers());
    let provider = Provider::start(Script::always(reply)).unwrap();
    let body = json!({"model": "gpt-5", "input": "x", "stream": true});
    let events = ask(&provider, "/v1/responses", body).await.events();
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.json()["sequence_number"], place);
        assert_eq!(event.json()["type"], event.event.as_str());
    }
    let mut names: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let last = events.last().unwrap().json()["response"].clone();
    assert_eq!(last["output"][1]["content"][0]["text"], "I look.");
    assert_eq!(last["output"][2]["arguments"], "{\"a\":1}");
    assert_eq!(last["usage"]["input_tokens"], 100);
    assert_eq!(last["usage"]["input_tokens_details"]["cached_tokens"], 20);
    assert_eq!(events[0].json()["response"]["status"], "in_progress");
}

#[tokio::test]
async fn only_issued_responses_can_be_continued() {
    let provider = Provider::start(Script::healthy_agent(2, "done")).unwrap();
    let first = ask(&provider, "/v1/responses", json!({"model": "m", "input": "go"})).await.json();
    assert_eq!(first["output"][1]["type"], "function_call");
    let output = json!([{"type": "function_call_output", "call_id": "c", "output": "r"}]);
    let next = |id: &Value| json!({"model": "m", "input": output, "previous_response_id": id});
    let second = ask(&provider, "/v1/responses", next(&first["id"])).await.json();
    assert_eq!(second["output"][1]["arguments"], "{\"path\":\"src/part_2.rs\"}");
    let third = ask(&provider, "/v1/responses", next(&second["id"])).await.json();
    assert_eq!(third["output"][0]["content"][0]["text"], "done");

    let unknown = ask(&provider, "/v1/responses", next(&json!("resp_nobody"))).await;
    assert_eq!((unknown.status.as_u16(), &unknown.json()["error"]["param"]), (400, &json!("previous_response_id")));
}

#[tokio::test]
async fn embeddings_give_one_vector_for_each_input() {
    let provider = Provider::start(Script::new()).unwrap();
    let body = json!({"model": "e", "input": ["a", "b"], "dimensions": 4});
    let answer = ask(&provider, "/v1/embeddings", body).await.json();
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 4);
    let body = json!({"model": "e", "input": "a", "dimensions": 1, "encoding_format": "base64"});
    assert_eq!(ask(&provider, "/v1/embeddings", body).await.json()["data"][0]["embedding"], "AAAAAA==");
}

#[cfg(test)]
fn chunks(whole: &Whole) -> Vec<Value> {
    let events = whole.events();
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done.data, "[DONE]");
    chunks.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}
