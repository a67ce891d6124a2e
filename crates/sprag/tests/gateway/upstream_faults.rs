//! Upstreams that are away, late or wrong, before the first byte of an answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sprag::config::{Settings, Timeouts};
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{CutAt, CutHow, Fault, Gate, Provider, Reply, Script};

use crate::sprag::{Sprag, without_dlp};
use crate::wire::{STREAMING, path, request};

/// Changes the time-outs of every provider.
pub(crate) fn set_timeouts(settings: &mut Settings, change: impl Fn(&mut Timeouts)) {
    for provider in settings.providers.values_mut() {
        change(&mut Arc::make_mut(provider).timeouts);
    }
}

async fn call(sprag: &Sprag, dialect: Dialect, is_stream: bool) -> Whole {
    let body = request(dialect, is_stream, "hello");
    client::post_json(sprag.url(path(dialect, is_stream)), &body).fetch().await.unwrap()
}

/// The message, where the dialect's SDKs look for it.
fn message(dialect: Dialect, answer: &Whole) -> String {
    let body = answer.json();
    let error = &body["error"];
    match dialect {
        Dialect::Anthropic => {
            assert_eq!(body["type"], "error");
            assert!(error["type"].is_string());
        }
        Dialect::Gemini => {
            assert_eq!(error["code"], answer.status.as_u16());
            assert!(error["status"].is_string());
        }
        _ => assert!(error["type"].is_string() && error["code"].is_string()),
    }
    error["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_a_502_that_says_what_to_check() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start(&provider).await;
    let address = provider.address();
    provider.shutdown().await;
    for dialect in STREAMING {
        let answer = call(&sprag, dialect, true).await;
        assert_eq!(answer.status, 502, "{dialect:?}");
        let message = message(dialect, &answer);
        assert!(message.contains(&address.to_string()) && message.contains("refused"), "{message}");
        assert!(message.contains("[providers."), "{message}");
    }
    for event in sprag.settled(STREAMING.len()).await {
        assert_eq!((event.ending, event.status), (Ending::UpstreamGone, 502));
        assert!(event.error.unwrap().contains("refused"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_was_sent_is_not_sent_again() {
    for how in [CutHow::Close, CutHow::Reset] {
        let provider =
            Provider::start(Script::always(Reply::echo().fault(Fault::Cut { at: CutAt::Head, how }))).unwrap();
        let sprag = Sprag::start(&provider).await;
        assert_eq!(call(&sprag, Dialect::OpenaiChat, false).await.status, 502);
        assert_eq!(sprag.settled(1).await[0].ending, Ending::UpstreamGone);
        assert_eq!(provider.log().view().total, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_is_one_on_a_connection_that_was_used_before() {
    let cut = Reply::echo().fault(Fault::Cut { at: CutAt::Head, how: CutHow::Reset });
    let provider = Provider::start(Script::new().on("cut", cut)).unwrap();
    let sprag = Sprag::start(&provider).await;
    assert_eq!(call(&sprag, Dialect::OpenaiChat, false).await.status, 200);
    let body = request(Dialect::OpenaiChat, false, "cut");
    let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!(answer.status, 502);
    assert_eq!(provider.log().view().total, 2);
    assert_eq!(provider.log().view().connections, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_never_begins_is_a_504() {
    let gate = Gate::new();
    let provider = Provider::start(Script::always(Reply::echo().fault(Fault::Hold(gate.clone())))).unwrap();
    let limit = Duration::from_millis(150);
    for whole in [false, true] {
        let sprag = Sprag::start_with(&provider, |settings| {
            set_timeouts(settings, |t| if whole { t.total = Some(limit) } else { t.first_byte = limit });
        })
        .await;
        for dialect in [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini] {
            let answer = call(&sprag, dialect, false).await;
            assert_eq!(answer.status, 504);
            assert!(message(dialect, &answer).contains("150ms"), "{}", message(dialect, &answer));
        }
        for event in sprag.settled(3).await {
            assert_eq!((event.ending, event.status), (Ending::TimedOut, 504));
            let usage = event.usage;
            assert!(usage.is_none() || usage.unwrap().estimated, "a prompt that was sent may have been read");
        }
    }
    provider.wait_for(|log| log.open_responses == 0).await.expect("the calls were given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_upstream_pass_with_status_and_bytes() {
    for status in [400u16, 401, 403, 404, 429, 500, 503, 529] {
        let reply = Reply::status(status).message(format!("no: {status} \"quoted\" é")).retry_after(7);
        let provider = Provider::start(Script::always(reply.header("x-should-retry", "true"))).unwrap();
        let sprag = Sprag::start(&provider).await;
        for dialect in STREAMING {
            for is_stream in [false, true] {
                let url = format!("{}{}", provider.url(), path(dialect, is_stream));
                let direct = client::post_json(url, &request(dialect, is_stream, "hello")).fetch().await.unwrap();
                let answer = call(&sprag, dialect, is_stream).await;
                assert_eq!(answer.status.as_u16(), status);
                assert_eq!(answer.body, direct.body, "{dialect:?}");
                assert_eq!((answer.header("retry-after"), answer.header("x-should-retry")), ("7", "true"));
            }
        }
        for event in sprag.settled(STREAMING.len() * 2).await {
            assert_eq!((event.ending, event.status), (Ending::UpstreamError, status));
            assert!(event.cost.is_none() && !event.blocked);
            assert!(!event.error.unwrap_or_default().contains("quoted"), "its words may quote the prompt");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn garbled_json_passes_unchanged_and_is_recorded() {
    for framing in [Fault::ContentLength, Fault::Chunked] {
        let reply = Reply::text("some words").fault(Fault::Garble { event: 0 }).fault(framing);
        let provider = Provider::start(Script::always(reply)).unwrap();
        let sprag = Sprag::start(&provider).await;
        for dialect in STREAMING {
            let answer = call(&sprag, dialect, false).await;
            assert!(answer.status == 200 && serde_json::from_slice::<Value>(&answer.body).is_err());
            assert!(!String::from_utf8_lossy(&answer.body).contains("sprag"), "{dialect:?}");
        }
        for event in sprag.settled(STREAMING.len()).await {
            assert_eq!(event.ending, Ending::UpstreamError);
            assert!(event.usage.unwrap().estimated);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_garbled_passes_and_the_rest_is_read() {
    let reply = Reply::text("some words to be said").fault(Fault::Garble { event: 1 });
    let provider = Provider::start(Script::always(reply)).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        settings.responses.metadata = false;
        without_dlp(settings);
    })
    .await;
    for dialect in STREAMING {
        let url = format!("{}{}", provider.url(), path(dialect, true));
        let direct = client::post_json(url, &request(dialect, true, "hello")).fetch().await.unwrap();
        let answer = call(&sprag, dialect, true).await;
        // Ids count on from call to call.
        assert_eq!(answer.events().len(), direct.events().len());
        assert_eq!(answer.body.len(), direct.body.len());
    }
    assert_eq!(sprag.settled(STREAMING.len()).await.len(), STREAMING.len());
}
