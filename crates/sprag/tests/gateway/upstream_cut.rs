//! Upstreams that break off or fall silent in the middle of an answer.

use std::time::Duration;

use serde_json::Value;
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{CutAt, CutHow, Encoding, Fault, Gate, Provider, Reply, Script};

use crate::sprag::{Sprag, without_dlp};
use crate::upstream_faults::set_timeouts;
use crate::wire::{STREAMING, path, request};

const TEXT: &str = "one two three four five six seven eight nine ten";

async fn stream(sprag: &Sprag, dialect: Dialect) -> Whole {
    client::post_json(sprag.url(path(dialect, true)), &request(dialect, true, "hello")).fetch().await.unwrap()
}

/// The stream ended in the error event of its dialect, as its SDKs expect one; gives the message.
fn error_of(dialect: Dialect, answer: &Whole) -> String {
    assert_eq!((answer.status.as_u16(), &answer.broken), (200, &None));
    let events = answer.events();
    let last = events.last().unwrap();
    let data: Value = serde_json::from_str(&last.data).unwrap();
    assert!(!events.iter().any(|event| event.data == "[DONE]" || event.event == "message_stop"));
    match dialect {
        Dialect::OpenaiResponses => {
            assert_eq!((last.event.as_str(), &data["type"]), ("error", &Value::from("error")));
            let numbers: Vec<u64> = events.iter().map(|e| e.json()["sequence_number"].as_u64().unwrap()).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
            data["message"].as_str().unwrap().to_owned()
        }
        Dialect::Anthropic => {
            assert_eq!((last.event.as_str(), &data["type"]), ("error", &Value::from("error")));
            assert!(data["error"]["type"].is_string());
            data["error"]["message"].as_str().unwrap().to_owned()
        }
        Dialect::Gemini => {
            assert!(data["error"]["code"].is_u64() && data["error"]["status"].is_string());
            data["error"]["message"].as_str().unwrap().to_owned()
        }
        _ => data["error"]["message"].as_str().unwrap().to_owned(),
    }
}

/// Every event of the answer is whole JSON.
fn assert_sound(answer: &Whole) {
    assert!(answer.body.ends_with(b"\n\n"), "{:?}", answer.body);
    for event in answer.events() {
        assert!(serde_json::from_str::<Value>(&event.data).is_ok(), "{}", event.data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_ends_in_the_error_of_its_dialect() {
    for how in [CutHow::Close, CutHow::Reset] {
        for at in [CutAt::Events(0), CutAt::Events(3), CutAt::Bytes(400)] {
            let provider = Provider::start(Script::always(Reply::text(TEXT).fault(Fault::Cut { at, how }))).unwrap();
            let sprag = Sprag::start(&provider).await;
            for dialect in STREAMING {
                let answer = stream(&sprag, dialect).await;
                assert!(error_of(dialect, &answer).contains("broke off"), "{dialect:?}");
                assert_sound(&answer);
            }
            for event in sprag.settled(STREAMING.len()).await {
                assert_eq!((event.ending, event.status, event.stream), (Ending::UpstreamGone, 200, true));
                let usage = event.usage.unwrap();
                assert!(usage.estimated && usage.input > 0, "{event:?}");
                assert!(event.cost.is_some(), "what was said is billed");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_falls_silent_ends_in_the_error_of_its_dialect() {
    let gate = Gate::new();
    let stall = Fault::Stall { after_events: 3, until: gate };
    let provider = Provider::start(Script::always(Reply::text(TEXT).fault(stall))).unwrap();
    let limit = Duration::from_millis(200);
    for whole in [false, true] {
        let sprag = Sprag::start_with(&provider, |settings| {
            set_timeouts(settings, |t| if whole { t.total = Some(limit) } else { t.idle = limit });
        })
        .await;
        for dialect in STREAMING {
            let answer = stream(&sprag, dialect).await;
            assert!(error_of(dialect, &answer).contains("silent"), "{dialect:?}");
            assert_sound(&answer);
        }
        for event in sprag.settled(STREAMING.len()).await {
            assert_eq!(event.ending, Ending::TimedOut);
            assert!(event.usage.unwrap().estimated && event.cost.is_some());
        }
    }
    provider.wait_for(|log| log.open_responses == 0).await.expect("the upstream calls were ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_time_is_kept_also_when_bytes_keep_coming() {
    let dribble = Fault::Dribble { bytes: 20, every: Duration::from_millis(20) };
    let provider = Provider::start(Script::always(Reply::text(TEXT.repeat(20)).fault(dribble))).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        set_timeouts(settings, |t| t.total = Some(Duration::from_millis(300)));
    })
    .await;
    let answer = stream(&sprag, Dialect::OpenaiChat).await;
    error_of(Dialect::OpenaiChat, &answer);
    assert_eq!(sprag.settled(1).await[0].ending, Ending::TimedOut);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_is_cut_never_looks_whole() {
    for framing in [Fault::ContentLength, Fault::Chunked] {
        for encoding in [None, Some(Encoding::Gzip)] {
            let cut = Fault::Cut { at: CutAt::Bytes(60), how: CutHow::Close };
            let mut reply = Reply::text(TEXT).fault(framing.clone()).fault(cut);
            reply = encoding.into_iter().fold(reply, |reply, encoding| reply.fault(Fault::Encode(encoding)));
            let provider = Provider::start(Script::always(reply)).unwrap();
            for metadata in [true, false] {
                let sprag = Sprag::start_with(&provider, |settings| settings.responses.metadata = metadata).await;
                for dialect in STREAMING {
                    let body = request(dialect, false, "hello");
                    let call = client::post_json(sprag.url(path(dialect, false)), &body);
                    // A connection that is cut before the head has gone out gives no answer at all.
                    let Ok(answer) = call.header("accept-encoding", "gzip").fetch().await else { continue };
                    let is_refused = answer.status == 502 && answer.json()["error"]["message"].is_string();
                    assert!(is_refused || answer.broken.is_some(), "{dialect:?} {framing:?} {answer:?}");
                }
                for event in sprag.settled(STREAMING.len()).await {
                    assert_eq!(event.ending, Ending::UpstreamGone);
                    let is_billed = event.usage.is_some_and(|usage| usage.estimated && usage.input > 0);
                    assert!(is_billed, "the upstream had begun to answer, however it was framed: {event:?}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_falls_silent_is_a_504_or_a_cut() {
    for framing in [Fault::ContentLength, Fault::Chunked] {
        let stall = Fault::Stall { after_events: 1, until: Gate::new() };
        let cut = Fault::Whitespace(10);
        let reply = Reply::text(TEXT).fault(cut).fault(stall).fault(framing.clone());
        let provider = Provider::start(Script::always(reply)).unwrap();
        let sprag = Sprag::start_with(&provider, |settings| {
            set_timeouts(settings, |t| t.idle = Duration::from_millis(200));
        })
        .await;
        let body = request(Dialect::OpenaiChat, false, "hello");
        let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        assert!(answer.status == 504 || answer.broken.is_some(), "{framing:?} {answer:?}");
        assert_eq!(sprag.settled(1).await[0].ending, Ending::TimedOut);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_too_long_to_be_read_passes_and_is_no_failure() {
    let long = Fault::Oversized(sprag_core::limits::SSE_EVENT_BYTES + 1);
    let provider = Provider::start(Script::always(Reply::text(TEXT).fault(long.clone()))).unwrap();
    let sprag = Sprag::start(&provider).await;
    let answer = stream(&sprag, Dialect::OpenaiChat).await;
    assert_eq!(answer.events().last().unwrap().data, "[DONE]");
    assert_eq!(sprag.settled(1).await[0].ending, Ending::Complete);

    // In the middle of such an event nothing can be said any more.
    let cut = Fault::Cut { at: CutAt::Bytes(sprag_core::limits::SSE_EVENT_BYTES + 500), how: CutHow::Close };
    let provider = Provider::start(Script::always(Reply::text(TEXT).fault(long).fault(cut))).unwrap();
    let sprag = Sprag::start(&provider).await;
    let body = request(Dialect::OpenaiChat, true, "hello");
    let call = client::post_json(sprag.url(path(Dialect::OpenaiChat, true)), &body).header("x-mock-stall", "2");
    let mut answer = call.send().await.unwrap();
    answer.read_at_least(sprag_core::limits::SSE_EVENT_BYTES + 1).await.unwrap();
    provider.gate().open();
    while let Ok(piece) = answer.next().await {
        assert!(piece.is_some(), "it came to an end");
    }
    assert_eq!(sprag.settled(1).await[0].ending, Ending::UpstreamGone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_stream_that_is_cut_is_cut_for_the_client() {
    for encoding in Encoding::ALL {
        let cut = Fault::Cut { at: CutAt::Events(4), how: CutHow::Close };
        let reply = Reply::text(TEXT).fault(Fault::Encode(encoding)).fault(cut);
        let provider = Provider::start(Script::always(reply)).unwrap();
        let sprag = Sprag::start_with(&provider, |settings| {
            settings.responses.metadata = false;
            without_dlp(settings);
        })
        .await;
        let body = request(Dialect::Anthropic, true, "hello");
        let call = client::post_json(sprag.url("/v1/messages"), &body).header("accept-encoding", encoding.name());
        // A cut that comes with the first bytes may take the head of the answer with it.
        let is_cut = call.fetch().await.map_or(true, |answer| answer.broken.is_some());
        assert!(is_cut, "an error event cannot be said inside {}", encoding.name());
        assert_eq!(sprag.settled(1).await[0].ending, Ending::UpstreamGone);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_ends_early_but_politely_has_still_cut_its_answer() {
    let cut =
        Reply::raw(200, "text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n");
    let finished = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
                    \"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n";
    for framing in [Fault::Chunked, Fault::ContentLength] {
        for (reply, ending) in
            [(cut.clone(), Ending::UpstreamGone), (Reply::raw(200, "text/event-stream", finished), Ending::Complete)]
        {
            let provider = Provider::start(Script::always(reply.fault(framing.clone()))).unwrap();
            let sprag = Sprag::start_with(&provider, |settings| settings.responses.metadata = false).await;
            let answer = stream(&sprag, Dialect::OpenaiChat).await;
            assert!(answer.broken.is_none());
            // Behind a length told ahead there is no room for another event.
            let is_told = ending == Ending::UpstreamGone && matches!(framing, Fault::Chunked);
            let says_cut = String::from_utf8_lossy(&answer.body).contains("sprag_upstream_cut");
            assert_eq!(says_cut, is_told, "{framing:?} {ending:?}");
            let event = &sprag.settled(1).await[0];
            assert_eq!((event.ending, event.usage.unwrap().estimated), (ending, ending != Ending::Complete));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_event_without_its_blank_line_still_counts() {
    let whole = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\n\n\
                 event: message_stop\ndata: {\"type\":\"message_stop\"}";
    let provider =
        Provider::start(Script::always(Reply::raw(200, "text/event-stream", whole).fault(Fault::Chunked))).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| settings.responses.metadata = false).await;
    let answer = stream(&sprag, Dialect::Anthropic).await;
    assert_eq!(String::from_utf8_lossy(&answer.body), whole);
    assert_eq!(sprag.settled(1).await[0].ending, Ending::Complete);
}
