//! Tokens that nobody reported are counted, and marked as counted.

use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Encoding, Fault, Provider, Reply, Script, When};

use crate::sprag::{Sprag, without_dlp};
use crate::wire::{STREAMING, path, request, without_metadata};

const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

async fn call(sprag: &Sprag, dialect: Dialect, is_stream: bool) -> Whole {
    let body = request(dialect, is_stream, "What does the fox do?");
    client::post_json(sprag.url(path(dialect, is_stream)), &body).fetch().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_usage_are_counted_and_still_say_what_they_cost() {
    let chunked = Reply::text(TEXT).no_usage().fault(Fault::Chunked);
    for reply in [Reply::text(TEXT).no_usage(), chunked] {
        let provider = Provider::start(Script::always(reply)).unwrap();
        let sprag = Sprag::start(&provider).await;
        for dialect in STREAMING {
            for is_stream in [false, true] {
                let answer = call(&sprag, dialect, is_stream).await;
                assert!(without_metadata(&answer.body).is_some(), "{dialect:?} {is_stream}");
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let cost = text.split("\"cost_usd\":").nth(1).unwrap().split(',').next().unwrap();
                assert!(cost.parse::<f64>().unwrap() > 0.0, "{dialect:?} {is_stream}: {cost}");
            }
        }
        for event in sprag.settled(STREAMING.len() * 2).await {
            let usage = event.usage.unwrap();
            assert_eq!(event.ending, Ending::Complete, "{event:?}");
            assert!(usage.estimated, "{:?} {}", event.dialect, event.stream);
            assert!((8..=12).contains(&usage.output), "{:?} {}: {usage:?}", event.dialect, event.stream);
            assert!((4..=12).contains(&usage.input), "{usage:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_answer_without_usage_is_counted_too() {
    for encoding in Encoding::ALL {
        let reply = Reply::text(TEXT).no_usage().fault(Fault::Encode(encoding));
        let provider = Provider::start(Script::always(reply)).unwrap();
        let sprag = Sprag::start_with(&provider, |settings| {
            settings.responses.metadata = false;
            without_dlp(settings);
        })
        .await;
        for is_stream in [false, true] {
            let body = request(Dialect::OpenaiChat, is_stream, "hi");
            let call = client::post_json(sprag.url("/v1/chat/completions"), &body);
            let answer = call.header("accept-encoding", encoding.name()).fetch().await.unwrap();
            assert_eq!(answer.header("content-encoding"), encoding.name());
        }
        for event in sprag.settled(2).await {
            assert_eq!(event.ending, Ending::Complete);
            assert!(event.usage.unwrap().estimated && event.usage.unwrap().output >= 8, "{encoding:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_usage_is_taken_as_it_is() {
    let provider = Provider::start(Script::always(Reply::text(TEXT))).unwrap();
    let sprag = Sprag::start(&provider).await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            call(&sprag, dialect, is_stream).await;
        }
    }
    for event in sprag.settled(STREAMING.len() * 2).await {
        assert!(!event.usage.unwrap().estimated, "{event:?}");
        assert!(event.cost.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_calls_are_counted_as_output() {
    let reply = Reply::tool("search", serde_json::json!({"query": "fox ".repeat(40)})).no_usage();
    let provider = Provider::start(Script::always(reply)).unwrap();
    let sprag = Sprag::start(&provider).await;
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini] {
        call(&sprag, dialect, true).await;
    }
    for event in sprag.settled(4).await {
        assert!(event.usage.unwrap().output >= 40, "{:?} {:?}", event.dialect, event.usage);
        assert_eq!(event.tools, ["search"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_on_record_when_its_last_byte_arrives() {
    let long: String = (0..7000).map(|n| format!("The quick brown fox jumps over the lazy dog {n}. ")).collect();
    for metadata in [true, false] {
        for framing in [Fault::ContentLength, Fault::Chunked] {
            let reply = Reply::text(long.clone()).delta_chars(5000).no_usage().fault(framing.clone());
            let text = Reply::raw(200, "text/plain", long.clone()).fault(framing.clone());
            let script = Script::new().when(When::Header("x-want".into(), "text".into()), [text]);
            let provider = Provider::start(script.when(When::Always, [reply])).unwrap();
            let sprag = Sprag::start_with(&provider, |settings| settings.responses.metadata = metadata).await;
            for (at, dialect) in STREAMING.into_iter().enumerate() {
                for is_stream in [false, true] {
                    assert!(call(&sprag, dialect, is_stream).await.broken.is_none());
                    // Without waiting for anything.
                    let count = at * 2 + usize::from(is_stream) + 1;
                    assert_eq!(sprag.events().len(), count, "{dialect:?} {is_stream} {metadata} {framing:?}");
                }
            }
            let body = request(Dialect::OpenaiChat, false, &long);
            let call = client::post_json(sprag.url("/v1/chat/completions"), &body).header("x-want", "text");
            assert_eq!(call.fetch().await.unwrap().body.len(), long.len());
            assert_eq!(sprag.events().len(), STREAMING.len() * 2 + 1, "an answer that is not read, {framing:?}");
        }
    }
}
