//! Clients that leave in the middle, and clients that take their time.

use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{Ending as Ended, Fault, Gate, Provider, Reply, Script, client};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::sprag::Sprag;
use crate::upstream_faults::set_timeouts;
use crate::wire::{STREAMING, path, request};

const TEXT: &str = "one two three four five six seven eight nine ten";

fn stalling(gate: &Gate) -> Script {
    Script::always(Reply::text(TEXT).fault(Fault::Stall { after_events: 5, until: gate.clone() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_stream_ends_the_upstream_call_and_pays() {
    let gate = Gate::new();
    for http2 in [false, true] {
        let provider = Provider::start(stalling(&gate)).unwrap();
        let sprag = Sprag::start(&provider).await;
        for (at, dialect) in STREAMING.into_iter().enumerate() {
            let call = client::post_json(sprag.url(path(dialect, true)), &request(dialect, true, "hello"));
            let call = if http2 { call.http2() } else { call };
            let mut answer = call.send().await.unwrap();
            assert!(!answer.read_at_least(1).await.unwrap().is_empty());
            provider.wait_for(|log| log.open_responses == 1).await.unwrap();
            answer.abort();
            let log = provider.wait_for(|log| log.aborted == at + 1 && log.open_responses == 0).await.unwrap();
            assert!(matches!(log.requests.back().unwrap().ending, Ended::ClientLeft { at_byte: 1.. }));
        }
        for event in sprag.settled(STREAMING.len()).await {
            assert_eq!((event.ending, event.status), (Ending::ClientGone, 200));
            let usage = event.usage.unwrap();
            assert!(usage.estimated && usage.input > 0 && event.cost.is_some(), "{event:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_head_ends_the_upstream_call_and_pays() {
    let gate = Gate::new();
    let provider = Provider::start(Script::always(Reply::text(TEXT).fault(Fault::Hold(gate.clone())))).unwrap();
    let sprag = Sprag::start(&provider).await;
    for dialect in STREAMING {
        let call = client::post_json(sprag.url(path(dialect, false)), &request(dialect, false, "hello"));
        let waiting = tokio::spawn(call.send());
        provider.wait_for(|log| log.open_responses == 1).await.unwrap();
        waiting.abort();
        provider.wait_for(|log| log.open_responses == 0).await.expect("the upstream call was ended");
    }
    for event in sprag.settled(STREAMING.len()).await {
        assert_eq!((event.ending, event.status), (Ending::ClientGone, 0));
        assert!(event.usage.unwrap().estimated && event.usage.unwrap().output == 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_its_request_costs_nothing() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start(&provider).await;
    let mut socket = TcpStream::connect(sprag.proxy).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{\"model\":";
    socket.write_all(head.as_bytes()).await.unwrap();
    drop(socket);
    let event = &sprag.settled(1).await[0];
    assert_eq!((event.ending, event.usage, event.cost), (Ending::ClientGone, None, None));
    assert_eq!(provider.log().view().total, 0, "nothing was sent on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_so_far_is_what_is_counted() {
    let gate = Gate::new();
    let reply =
        |after_events| Reply::text(TEXT).delta_chars(4).fault(Fault::Stall { after_events, until: gate.clone() });
    let provider = Provider::start(Script::new().on("short", reply(3)).on("long", reply(9))).unwrap();
    let sprag = Sprag::start(&provider).await;
    for word in ["short", "long"] {
        let body = request(Dialect::OpenaiChat, true, word);
        let mut answer = client::post_json(sprag.url("/v1/chat/completions"), &body).send().await.unwrap();
        let wanted = if word == "short" { 3 } else { 9 };
        let mut seen = Vec::new();
        while sprag_testkit::sse::events(&seen).len() < wanted {
            seen.extend_from_slice(&answer.next().await.unwrap().unwrap());
        }
        answer.abort();
    }
    let events = sprag.settled(2).await;
    let outputs: Vec<u64> = events.iter().map(|event| event.usage.unwrap().output).collect();
    assert!(outputs.iter().min() > Some(&0) && outputs.iter().max() > outputs.iter().min(), "{outputs:?}");
}

const LAST_EVENT: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_slows_the_upstream_and_gets_everything() {
    const BYTES: usize = 64 << 20;
    let event = format!("data: {{\"padding\":\"{}\"}}\n\n", "x".repeat(60_000));
    let body = event.repeat(BYTES / event.len()) + LAST_EVENT;
    let dribble = Fault::Dribble { bytes: 64 << 10, every: std::time::Duration::ZERO };
    let reply = Reply::raw(200, "text/event-stream", body.clone()).fault(Fault::Chunked).fault(dribble);
    let provider = Provider::start(Script::always(reply)).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| settings.responses.metadata = false).await;
    let call = client::post_json(sprag.url("/v1/messages"), &request(Dialect::Anthropic, true, "hello"));
    let mut answer = call.send().await.unwrap();
    let first = answer.next().await.unwrap().unwrap();
    // The sockets' buffers fill, then nothing moves until the client reads on: one call that begins and ends
    // meanwhile shows that time has passed.
    let other = client::get(sprag.url("/v1/models")).fetch().await.unwrap();
    assert_eq!(other.status, 200);
    assert_eq!(provider.open_responses(), 1, "64 MiB do not fit into buffers");
    let rest = answer.whole().await;
    assert!(rest.broken.is_none());
    assert_eq!(first.len() + rest.body.len(), body.len());
    assert_eq!(provider.log().view().requests[0].ending, Ended::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_client_takes_is_not_the_upstream_s() {
    let event = format!("data: {{\"padding\":\"{}\"}}\n\n", "x".repeat(60_000));
    let body = event.repeat(500) + LAST_EVENT;
    let dribble = Fault::Dribble { bytes: 16 << 10, every: std::time::Duration::ZERO };
    let reply = Reply::raw(200, "text/event-stream", body.clone()).fault(Fault::Chunked).fault(dribble);
    let provider = Provider::start(Script::always(reply)).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        settings.responses.metadata = false;
        set_timeouts(settings, |t| t.idle = std::time::Duration::from_millis(300));
    })
    .await;
    for http2 in [false, true] {
        let call = client::post_json(sprag.url("/v1/messages"), &request(Dialect::Anthropic, true, "hello"));
        let mut answer = if http2 { call.http2() } else { call }.send().await.unwrap();
        let mut read = answer.next().await.unwrap().unwrap().len();
        for _ in 0..2 {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            read += answer.read_at_least(4 << 20).await.unwrap().len();
        }
        let rest = answer.whole().await;
        assert!(rest.broken.is_none());
        assert_eq!(read + rest.body.len(), body.len(), "no error was put in");
    }
}
