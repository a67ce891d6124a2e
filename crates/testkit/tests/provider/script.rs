//! Rules, strictness and directives, as clients meet them.

use serde_json::{Value, json};
use sprag_testkit::client::{get, post, post_json};
use sprag_testkit::{Provider, Reply, Script, When};

fn chat(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
}

#[cfg(test)]
async fn say(provider: &Provider, text: &str) -> (u16, Value) {
    let whole = post_json(format!("{}/v1/chat/completions", provider.url()), &chat(text)).fetch().await.unwrap();
    (whole.status.as_u16(), whole.json())
}

#[cfg(test)]
fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn unknown_fields_are_named_in_the_shape_of_the_dialect() {
    let provider = Provider::start(Script::new()).unwrap();
    let message = json!([{"role": "user", "content": "x"}]);
    let cases = [
        ("/v1/chat/completions", json!({"model": "m", "messages": message}), "/error/param"),
        ("/v1/completions", json!({"model": "m", "prompt": "x"}), "/error/param"),
        ("/v1/responses", json!({"model": "m", "input": "x"}), "/error/param"),
        ("/v1/embeddings", json!({"model": "m", "input": "x"}), "/error/param"),
        ("/v1/messages", json!({"model": "m", "messages": message, "max_tokens": 1}), "/error/message"),
        ("/v1/messages/count_tokens", json!({"model": "m", "messages": message}), "/error/message"),
        ("/v1beta/models/g:generateContent", json!({"contents": []}), "/error/message"),
    ];
    for (path, mut body, place) in cases {
        let url = format!("{}{path}", provider.url());
        assert_eq!(post_json(&url, &body).fetch().await.unwrap().status, 200, "{path}");
        body["sprag_run_id"] = "r1".into();
        let whole = post_json(&url, &body).fetch().await.unwrap();
        assert_eq!(whole.status, 400, "{path}");
        let error = whole.json();
        assert!(error.pointer(place).unwrap().as_str().unwrap().contains("sprag_run_id"), "{path}: {error}");
    }
    let lenient = Provider::start(Script::new().lenient()).unwrap();
    let body = json!({"model": "m", "messages": message, "sprag_run_id": "r1"});
    let url = format!("{}/v1/chat/completions", lenient.url());
    assert_eq!(post_json(url, &body).fetch().await.unwrap().status, 200);
}

#[tokio::test]
async fn what_is_missing_or_broken_is_refused() {
    let provider = Provider::start(Script::new()).unwrap();
    let url = format!("{}/v1/messages", provider.url());
    let whole = post_json(&url, &json!({"model": "m", "messages": []})).fetch().await.unwrap();
    assert_eq!(whole.status, 400);
    assert!(whole.json()["error"]["message"].as_str().unwrap().contains("max_tokens"));
    let whole = post(&url, "{\"model\":").fetch().await.unwrap();
    assert_eq!((whole.status.as_u16(), &whole.json()["type"]), (400, &json!("error")));
    let whole = get(format!("{}/v1/nothing", provider.url())).fetch().await.unwrap();
    assert_eq!(whole.status, 404);
}

#[tokio::test]
async fn the_first_rule_that_fits_decides_and_sequences_stay_at_their_end() {
    let script = Script::new()
        .when(When::Last("count".into()), [Reply::text("one"), Reply::text("two")])
        .when(When::Header("x-who".into(), "me".into()), [Reply::text("you")])
        .on("flaky", Reply::status(529).retry_after(2).message("busy"))
        .when(When::Path("/tools/".into()), [Reply::raw(202, "text/plain", "raw bytes")]);
    let provider = Provider::start(script).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(content(&say(&provider, "count!").await.1).to_owned());
    }
    assert_eq!(seen, ["one", "two", "two"]);

    let url = format!("{}/v1/messages", provider.url());
    let body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "flaky"}]});
    let whole = post_json(&url, &body).fetch().await.unwrap();
    assert_eq!((whole.status.as_u16(), whole.header("retry-after")), (529, "2"));
    assert_eq!(whole.json()["error"], json!({"type": "overloaded_error", "message": "busy"}));

    let whole = post_json(url.replace("messages", "chat/completions"), &chat("x")).header("x-who", "me");
    assert_eq!(content(&whole.fetch().await.unwrap().json()), "you");
    let whole = get(format!("{}/tools/list?x=1", provider.url())).fetch().await.unwrap();
    assert_eq!((whole.status.as_u16(), &whole.body[..]), (202, &b"raw bytes"[..]));

    provider.reset();
    assert_eq!(content(&say(&provider, "count!").await.1), "one");
}

#[tokio::test]
async fn each_conversation_has_its_own_course() {
    let provider = Provider::start(Script::healthy_agent(2, "done")).unwrap();
    let mut histories = [chat("a"), chat("b")];
    let mut ends = Vec::new();
    for _ in 0..3 {
        for body in &mut histories {
            let url = format!("{}/v1/chat/completions", provider.url());
            let message = post_json(url, body).fetch().await.unwrap().json()["choices"][0]["message"].clone();
            ends.push(message["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or("end").to_owned());
            let list = body["messages"].as_array_mut().unwrap();
            list.push(message);
            list.push(json!({"role": "tool", "tool_call_id": "c", "content": "result"}));
        }
    }
    let [one, two] = ["{\"path\":\"src/part_1.rs\"}", "{\"path\":\"src/part_2.rs\"}"];
    assert_eq!(ends, [one, one, two, two, "end", "end"]);
}

#[tokio::test]
async fn directives_come_in_prompts_headers_and_queries() {
    let provider = Provider::start(Script::new()).unwrap();
    let (_, answer) = say(&provider, r#"please [[mock:tool name=get_weather args={"city":"Rome"}]]"#).await;
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call, &json!({"name": "get_weather", "arguments": "{\"city\":\"Rome\"}"}));
    assert_eq!(say(&provider, "[[mock:status 503]]").await.0, 503);
    assert_eq!(content(&say(&provider, "[[mock:text hello there]]").await.1), "hello there");
    assert_eq!(content(&say(&provider, "kept [[mock:crlf]]").await.1), "You said: kept");
    assert_eq!(say(&provider, "[[mock:nonsense]]").await.0, 400);

    let url = format!("{}/v1/chat/completions?mock-text=from%20query", provider.url());
    assert_eq!(content(&post_json(&url, &chat("x")).fetch().await.unwrap().json()), "from query");
    let whole = post_json(&url, &chat("x")).header("x-mock-text", "from header").fetch().await.unwrap();
    assert_eq!(content(&whole.json()), "from header");
}
