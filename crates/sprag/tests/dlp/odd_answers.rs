//! Answers that end where nobody expects it, or come as something else than they are.

use bytes::Bytes;
use serde_json::json;
use sprag_core::wire::Dialect;
use sprag_testkit::client;
use sprag_testkit::{Fault, Reply, Script};

use crate::configured::Configured;
use crate::scene::{HIDDEN, KEY, call, place_saying, text};
use crate::wire::request;

const STRICT: &str = "[defaults.dlp]\nprofile = \"strict\"\n";

fn chunk(content: &str) -> String {
    let choices = json!([{"index": 0, "delta": {"content": content}, "finish_reason": null}]);
    format!("data: {}\n", json!({"id": "c", "object": "chat.completion.chunk", "model": "gpt-4o", "choices": choices}))
}

async fn asked(reply: Reply, config: &str) -> String {
    let place = place_saying(reply, config).await;
    let body = request(Dialect::OpenaiChat, true, "hi").to_string();
    text(&call(&place, Dialect::OpenaiChat, true, body).fetch().await.unwrap())
}

#[tokio::test]
async fn a_last_event_that_never_ends_is_looked_at_also_where_the_length_is_known() {
    let stream = Bytes::from(format!("{}\n{}", chunk("It is so. "), chunk(&format!("My key is {KEY}"))));
    for fault in [Fault::ContentLength, Fault::Chunked] {
        let reply = || Reply::raw(200, "text/event-stream", stream.clone()).fault(fault.clone());
        let told = asked(reply(), "").await;
        assert!(told.contains(HIDDEN) && !told.contains("1234567890"), "{fault:?}: {told}");
        let told = asked(reply(), STRICT).await;
        assert!(told.contains("It is so.") && !told.contains("1234567890"), "{fault:?}: {told}");
    }
}

#[tokio::test]
async fn the_last_word_of_a_stream_without_an_end_comes_through() {
    let stream = Bytes::from(format!("{}\n", chunk("see mia")));
    for fault in [Fault::ContentLength, Fault::Chunked] {
        let told = asked(Reply::raw(200, "text/event-stream", stream.clone()).fault(fault.clone()), "").await;
        assert!(told.contains("mia"), "{fault:?}: {told}");
    }
}

#[tokio::test]
async fn nothing_passes_behind_the_end_of_a_stream() {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let end = format!("{}\ndata: {finish}\n\ndata: [DONE]\n\n", chunk("Done. "));
    let stream = Bytes::from(format!("{end}{}\n{}", chunk(KEY), chunk(KEY).trim_end()));
    let told = asked(Reply::raw(200, "text/event-stream", stream), "").await;
    assert!(told.contains("[DONE]") && !told.contains("1234567890"), "{told}");
}

#[tokio::test]
async fn events_under_another_name_are_looked_at_as_events() {
    let (head, tail) = KEY.split_at(9);
    let stream = Bytes::from(format!("{}\n{}\ndata: [DONE]\n\n", chunk(&format!("It is {head}")), chunk(tail)));
    for kind in ["text/plain", "Text/Plain; charset=utf-8", ""] {
        let told = asked(Reply::raw(200, kind, stream.clone()), "").await;
        assert!(told.contains(HIDDEN) && !told.contains(tail), "{kind:?}: {told}");
    }
}

#[tokio::test]
async fn answers_that_are_fetched_later_are_looked_at() {
    let said =
        json!({"id": "resp_1", "output": [{"content": [{"type": "output_text", "text": format!("It is {KEY}")}]}]});
    let reply = Reply::raw(200, "application/json", said.to_string());
    let place = Configured::start_with(Script::always(reply).lenient(), "", true).await;
    let answer = client::get(place.sprag.url("/v1/responses/resp_1")).fetch().await.unwrap();
    assert_eq!(answer.json()["output"][0]["content"][0]["text"], format!("It is {HIDDEN}"));
}

#[tokio::test]
async fn a_key_in_a_path_is_not_on_record() {
    let reply = Reply::raw(200, "application/json", "{}");
    let place = Configured::start_with(Script::always(reply).lenient(), "", true).await;
    client::get(place.sprag.url(&format!("/v1/organization/{KEY}/usage"))).fetch().await.unwrap();
    assert_eq!(place.sprag.settled(1).await[0].path, format!("GET /v1/organization/{HIDDEN}/usage"));
}
