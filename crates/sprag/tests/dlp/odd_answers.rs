//! Answers that end where nobody expects it, or come as something else than they are.

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::event::Ending;
use sprag_core::limits::JSON_REPLY_BYTES;
use sprag_core::wire::Dialect;
use sprag_testkit::client;
use sprag_testkit::{Encoding, Fault, Reply, Script, When};

use crate::configured::Configured;
use crate::scene::{HIDDEN, KEY, MAIL, call, place_saying, text};
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

/// A stream of the Responses API that says a key in two pieces.
fn fetched() -> String {
    let (head, tail) = KEY.split_at(9);
    let delta = |number: u32, text: &str| {
        json!({"type": "response.output_text.delta", "sequence_number": number, "item_id": "i", "output_index": 0,
            "content_index": 0, "delta": text})
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 10, "total_tokens": 20});
    let content = json!([{"type": "output_text", "text": format!("It is {KEY} .")}]);
    let whole = json!({"id": "resp_1", "model": "gpt-4o", "status": "completed", "usage": usage,
        "output": [{"type": "message", "content": content}]});
    let done = json!({"type": "response.completed", "sequence_number": 3, "response": whole});
    let events = [delta(0, &format!("It is {head}")), delta(1, tail), delta(2, " ."), done];
    events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).concat()
}

#[tokio::test]
async fn streams_that_are_fetched_later_are_looked_at() {
    for fault in [Fault::Chunked, Fault::ContentLength, Fault::Encode(Encoding::Gzip)] {
        let reply = Reply::raw(200, "text/event-stream", fetched()).fault(fault.clone());
        let place = Configured::start_with(Script::always(reply).lenient(), "", true).await;
        for path in ["/v1/responses/resp_1?stream=true", "/v1/something/else"] {
            let answer = client::get(place.sprag.url(path)).fetch().await.unwrap();
            let told = text(&answer);
            assert!(!told.contains("1234567890"), "{fault:?} {path}: {told}");
            let said: Vec<Value> =
                answer.events().iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
            let pieces: String = said.iter().filter_map(|event| event["delta"].as_str()).collect();
            assert_eq!(pieces, format!("It is {HIDDEN} ."), "{fault:?} {path}");
            let whole = &said.last().unwrap()["response"]["output"][0]["content"][0]["text"];
            assert_eq!(whole, &format!("It is {HIDDEN} ."));
        }
        for event in place.sprag.settled(2).await {
            assert_eq!((event.ending, event.status, event.stream), (Ending::Complete, 200, true));
            assert_eq!((event.usage, event.cost), (None, None), "it was paid for when it was made");
            assert!(event.dlp.unwrap().total > 0);
        }
    }
}

#[tokio::test]
async fn own_values_come_back_in_what_is_fetched_for_their_run() {
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Ask [EMAIL_1] now."});
    let fetched = Reply::raw(200, "text/event-stream", format!("data: {delta}\n\n"));
    let script = Script::new().when(When::Path("/v1/responses/resp_1".into()), [fetched]).lenient();
    let place = Configured::start_with(script, "", true).await;
    let body = request(Dialect::OpenaiResponses, false, &format!("Ask {MAIL}")).to_string();
    call(&place, Dialect::OpenaiResponses, false, body).header("x-sprag-run-id", "task").fetch().await.unwrap();
    for (run, told) in [("task", MAIL), ("another", "[EMAIL_1]")] {
        let fetch = client::get(place.sprag.url("/v1/responses/resp_1?stream=true")).header("x-sprag-run-id", run);
        let answer = text(&fetch.fetch().await.unwrap());
        assert!(answer.contains(&format!("Ask {told} ")), "{run}: {answer}");
    }
}

#[tokio::test]
async fn a_fetched_stream_is_broken_off_where_it_may_not_pass() {
    let reply = Reply::raw(200, "text/event-stream", fetched());
    let place = Configured::start_with(Script::always(reply).lenient(), STRICT, true).await;
    let answer = client::get(place.sprag.url("/v1/responses/resp_1?stream=true")).fetch().await.unwrap();
    let last: Value = serde_json::from_str(&answer.events().last().unwrap().data).unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("sprag_dlp")), "{last}");
    assert!(!text(&answer).contains("1234567890"));
    let event = &place.sprag.settled(1).await[0];
    assert_eq!((event.blocked, event.block_reason.as_deref()), (true, Some("dlp_blocked")));

    // Nobody knows how an error is said there.
    let unknown = json!({"words": format!("It is {KEY} .")});
    let reply = Reply::raw(200, "text/event-stream", format!("data: {unknown}\n\n"));
    let place = Configured::start_with(Script::always(reply).lenient(), STRICT, true).await;
    // The connection may be cut before the head is out, or behind it.
    if let Ok(mut answer) = client::get(place.sprag.url("/v1/something/else")).send().await {
        assert!(answer.read_at_least(usize::MAX).await.is_err(), "nobody takes it for whole");
    }
    assert!(place.sprag.settled(1).await[0].blocked);
}

#[tokio::test]
async fn what_is_too_long_to_be_looked_at_passes_only_where_nothing_is_stopped() {
    let long = format!("\"{}\"", "a".repeat(JSON_REPLY_BYTES - 1));
    for (body, config, status) in [
        (&long[..], "", 200),
        (&long[..], STRICT, 502),
        (&format!("\"{}\"", "a".repeat(JSON_REPLY_BYTES - 2))[..], STRICT, 200),
    ] {
        let reply = Reply::raw(200, "application/json", body.to_owned()).fault(Fault::ContentLength);
        let place = Configured::start_with(Script::always(reply).lenient(), config, true).await;
        let answer = client::get(place.sprag.url("/v1/batches/b_1")).fetch().await.unwrap();
        assert_eq!(answer.status, status, "{config} {}", body.len());
    }
}

#[tokio::test]
async fn a_key_in_a_path_is_not_on_record() {
    let reply = Reply::raw(200, "application/json", "{}");
    let place = Configured::start_with(Script::always(reply).lenient(), "", true).await;
    client::get(place.sprag.url(&format!("/v1/organization/{KEY}/usage"))).fetch().await.unwrap();
    assert_eq!(place.sprag.settled(1).await[0].path, format!("GET /v1/organization/{HIDDEN}/usage"));
}
