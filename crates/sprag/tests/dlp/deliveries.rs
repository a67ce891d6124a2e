//! Ways in which bodies come: compressed, long, in pieces, broken off; and what stands beside the text in them.

use std::io::Write;

use bytes::Bytes;
use serde_json::json;
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{CutAt, CutHow, Fault, Reply, Script, When};

use crate::configured::{Configured, stopped};
use crate::scene::{HIDDEN, KEY, MAIL, call, place, place_saying, sent, spoken, text};
use crate::wire::{STREAMING, request};

fn gzip(body: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_requests_are_looked_at() {
    let place = place("").await;
    for dialect in STREAMING {
        let body = request(dialect, false, &format!("My API key is {KEY}")).to_string();
        for (name, bytes) in [("gzip", gzip(&body)), ("zstd", zstd::encode_all(body.as_bytes(), 0).unwrap())] {
            let answer = call(&place, dialect, false, bytes).header("content-encoding", name).fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{}", text(&answer));
            assert_eq!(sent(&place), body.replace(KEY, HIDDEN), "{dialect:?} {name}");
            assert_eq!(place.provider.requests().last().unwrap().header("content-encoding"), "");
        }
    }
}

#[tokio::test]
async fn long_answers_are_looked_at() {
    let long = "lorem ipsum dolor ".repeat(40_000);
    let said = format!("{long}{KEY} and {MAIL} {long}");
    for fault in [Fault::ContentLength, Fault::Chunked] {
        let place = place_saying(Reply::text(said.clone()).delta_chars(10_000).fault(fault), "").await;
        for dialect in STREAMING {
            for is_stream in [false, true] {
                let body = request(dialect, is_stream, &format!("I am {MAIL}")).to_string();
                let answer = call(&place, dialect, is_stream, body).fetch().await.unwrap();
                let told = spoken(dialect, is_stream, &answer);
                assert!(told.text == said.replace(KEY, HIDDEN), "{dialect:?} {is_stream}");
                assert_eq!(told.about["step"], 1);
            }
        }
    }
}

#[tokio::test]
async fn error_answers_do_not_quote_the_key() {
    let said = format!("Incorrect API key provided: {KEY}. You are {MAIL}.");
    let place = place_saying(Reply::status(401).message(said), "").await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let body = request(dialect, is_stream, &format!("I am {MAIL}")).to_string();
            let answer = call(&place, dialect, is_stream, body).fetch().await.unwrap();
            assert_eq!((answer.status.as_u16(), stopped(&answer)), (401, ""));
            let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
            assert_eq!(message, format!("Incorrect API key provided: {HIDDEN}. You are {MAIL}."), "{dialect:?}");
        }
    }
    for event in place.sprag.settled(STREAMING.len() * 2).await {
        assert_eq!((event.ending, event.status), (Ending::UpstreamError, 401));
        assert!(!serde_json::to_string(&event).unwrap().contains("1234567890"));
    }
}

#[tokio::test]
async fn an_answer_in_words_of_its_own_does_not_quote_the_key() {
    for kind in ["text/plain", "text/html; charset=utf-8", "", "application/json", "application/problem+xml"] {
        let said = format!("Bad gateway. Incorrect API key provided: {KEY}");
        let place = place_saying(Reply::raw(502, kind, said), "").await;
        let body = request(Dialect::OpenaiChat, false, "hi").to_string();
        let answer = call(&place, Dialect::OpenaiChat, false, body).fetch().await.unwrap();
        assert_eq!(answer.status, 502, "{kind}");
        assert!(!text(&answer).contains("1234567890"), "{kind}: {}", text(&answer));
    }
}

/// What is hidden of a request must be put back into its answer, whatever the request is.
#[tokio::test]
async fn other_calls_of_the_api_get_their_own_back() {
    let said = json!({"id": "asst_1", "instructions": format!("Mail [EMAIL_1]. {KEY}")});
    for fault in [Fault::ContentLength, Fault::Chunked, Fault::Encode(sprag_testkit::Encoding::Gzip)] {
        let reply = Reply::raw(200, "application/json", said.to_string()).fault(fault.clone());
        let place = Configured::start_with(Script::always(reply).lenient(), "", true).await;
        let url = place.sprag.url("/v1/assistants");
        let body = json!({"model": "gpt-4o", "instructions": format!("Mail {MAIL}. {KEY}")});
        let run = |call: sprag_testkit::client::Call| call.header("x-sprag-run-id", "task");
        let answer = run(sprag_testkit::client::post_json(&url, &body)).fetch().await.unwrap();
        assert_eq!(place.provider.requests()[0].json()["instructions"], format!("Mail [EMAIL_1]. {HIDDEN}"));
        assert_eq!(answer.json()["instructions"], format!("Mail {MAIL}. {HIDDEN}"), "{fault:?} {}", text(&answer));
        assert_eq!(place.sprag.settled(1).await[0].ending, Ending::Complete);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_gives_no_part_of_a_key() {
    for events in 1..14 {
        let cut = Fault::Cut { at: CutAt::Events(events), how: CutHow::Close };
        let said = format!("Your key is {KEY} indeed.");
        let place = place_saying(Reply::text(said).delta_chars(4).fault(cut), "").await;
        for dialect in STREAMING {
            let body = request(dialect, true, "hi").to_string();
            let answer = call(&place, dialect, true, body).fetch().await.unwrap();
            let written = text(&answer);
            assert!(!written.contains("1234567890abcdef"), "{dialect:?} {events}: {written}");
        }
        place.sprag.settled(STREAMING.len()).await;
    }
}

#[tokio::test]
async fn a_stream_without_its_closing_event_passes_whole() {
    let chunk = |delta: serde_json::Value, finish: serde_json::Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "model": "gpt-4o", "choices": choices})
        )
    };
    let (head, tail) = KEY.split_at(9);
    let stream = chunk(json!({"role": "assistant", "content": format!("It is {head}")}), json!(null))
        + &chunk(json!({"content": tail}), json!(null))
        + &chunk(json!({}), json!("stop"));
    for ending in ["", "data: [DONE]\n\n", "data: [DONE]"] {
        let whole = Bytes::from(format!("{stream}{ending}"));
        let place = place_saying(Reply::raw(200, "text/event-stream", whole), "").await;
        let body = request(Dialect::OpenaiChat, true, "hi").to_string();
        let answer = call(&place, Dialect::OpenaiChat, true, body).fetch().await.unwrap();
        let events = answer.events();
        let values = events.iter().filter_map(|event| serde_json::from_str::<serde_json::Value>(&event.data).ok());
        let said: String =
            values.filter_map(|event| Some(event.pointer("/choices/0/delta/content")?.as_str()?.to_owned())).collect();
        assert_eq!(said, format!("It is {HIDDEN}"), "{ending:?}: {}", text(&answer));
        assert_eq!(place.sprag.settled(1).await[0].ending, Ending::Complete, "{ending:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_on_record_with_what_was_found() {
    let said = format!("Your key is {KEY} indeed, and so on.");
    let place = place_saying(Reply::text(said).delta_chars(4), "").await;
    for dialect in STREAMING {
        let body = request(dialect, true, &format!("I am {MAIL}")).to_string();
        let mut answer = call(&place, dialect, true, body).header("x-mock-stall", "12").send().await.unwrap();
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains("REDACTED") {
            read.extend(answer.next().await.unwrap().unwrap());
        }
        assert!(!String::from_utf8_lossy(&read).contains("1234567890abcdef"));
        answer.abort();
    }
    for event in place.sprag.settled(STREAMING.len()).await {
        assert_eq!(event.ending, Ending::ClientGone);
        let seen: Vec<String> = event.dlp.unwrap().list.into_iter().map(|seen| seen.entity).collect();
        assert_eq!(seen, ["EMAIL", "OPENAI_KEY"]);
    }
}

#[tokio::test]
async fn usage_that_nobody_asked_for_is_still_left_out() {
    let place = place_saying(Reply::text(format!("It is {KEY}")).delta_chars(3), "").await;
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiCompletions] {
        let mut body = request(dialect, true, &format!("My {KEY}"));
        body.as_object_mut().unwrap().remove("stream_options");
        let answer = call(&place, dialect, true, body.to_string()).fetch().await.unwrap();
        assert_eq!(spoken(dialect, true, &answer).text, format!("It is {HIDDEN}"));
        assert!(!text(&answer).contains("\"usage\":{"), "{}", text(&answer));
        let seen: serde_json::Value = serde_json::from_str(&sent(&place)).unwrap();
        assert_eq!(seen["stream_options"]["include_usage"], true);
        assert!(!sent(&place).contains(KEY));
    }
    for event in place.sprag.settled(2).await {
        let usage = event.usage.unwrap();
        assert!(usage.output > 0 && !usage.estimated && event.cost.is_some_and(|cost| cost.0 > 0), "{event:?}");
    }
}

/// The client quotes what it got; an agent that goes in circles is stopped as ever.
#[tokio::test]
async fn loops_are_found_and_runs_go_on() {
    let reply = Reply::tool("look_up", json!({"key": KEY, "to": "[EMAIL_1]"}));
    for is_stream in [false, true] {
        let script = Script::new().when(When::Always, [reply.clone()]);
        let place = Configured::start_with(script, "", false).await;
        let mut messages = vec![json!({"role": "user", "content": format!("Find {MAIL} with {KEY}.")})];
        let mut runs = Vec::new();
        let stop = loop {
            assert!(runs.len() < 12, "nobody stops it");
            let mut body = request(Dialect::OpenaiChat, is_stream, "");
            body["messages"] = json!(messages);
            let answer = call(&place, Dialect::OpenaiChat, is_stream, body.to_string()).fetch().await.unwrap();
            runs.push(answer.header("x-sprag-run-id").to_owned());
            if !stopped(&answer).is_empty() {
                break stopped(&answer).to_owned();
            }
            assert!(!sent(&place).contains(KEY) && !sent(&place).contains(MAIL), "{}", sent(&place));
            let arguments = crate::scene::arguments(Dialect::OpenaiChat, is_stream, &answer);
            assert_eq!(arguments, json!({"key": HIDDEN, "to": MAIL}));
            let id = format!("call_{}", runs.len());
            let function = json!({"name": "look_up", "arguments": arguments.to_string()});
            messages.push(json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": function}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "not found"}));
        };
        assert_eq!(stop, "loop_detected");
        assert!(runs.len() > 3 && runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    }
}
