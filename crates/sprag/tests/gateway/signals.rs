//! Stopping: in good order, in a hurry, and when the grace is over.

use std::time::{Duration, Instant};

use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Script, client};
use tokio::net::TcpStream;

use crate::binary::{Binary, events_of, wait_until};
use crate::wire::{STREAMING, path, request};

fn stalling(binary: &Binary, dialect: Dialect) -> client::Call {
    let body = request(dialect, true, "hello");
    client::post_json(binary.url(path(dialect, true)), &body).header("x-mock-stall", "3")
}

async fn refuses_connections(binary: &Binary) {
    let begun = Instant::now();
    while TcpStream::connect(binary.proxy).await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it still takes connections");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_streams_finish_and_leaves_every_event_on_disk() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = Binary::start(home.path(), &provider, "");
    let mut open = Vec::new();
    for dialect in STREAMING {
        for http2 in [false, true] {
            let call = stalling(&binary, dialect);
            let call = if http2 { call.http2() } else { call };
            let mut answer = call.send().await.unwrap();
            answer.read_at_least(1).await.unwrap();
            open.push(answer);
        }
    }
    let mut idle = client::Session::open(&binary.url("/"), false).await.unwrap();
    idle.send(client::get(binary.url("/v1/models"))).await.unwrap().whole().await;

    binary.signal("TERM");
    refuses_connections(&binary).await;
    // One request may still get in between.
    let begun = Instant::now();
    while let Ok(answer) = idle.send(client::get(binary.url("/v1/models"))).await {
        answer.whole().await;
        assert!(begun.elapsed() < Duration::from_secs(20), "an idle connection is closed");
    }
    provider.gate().open();
    for answer in open {
        let answer = answer.whole().await;
        assert!(answer.broken.is_none() && crate::wire::without_metadata(&answer.body).is_some());
    }
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    let events = events_of(&binary.data());
    assert_eq!(events.len(), STREAMING.len() * 2 + 1);
    assert!(events.iter().all(|event| event.ending == Ending::Complete));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_outlast_the_grace_are_cut_and_still_recorded() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = Binary::start(home.path(), &provider, "proxy.drain_seconds = 1");
    let mut open = Vec::new();
    for http2 in [false, true] {
        let call = stalling(&binary, Dialect::OpenaiChat);
        let mut answer = if http2 { call.http2() } else { call }.send().await.unwrap();
        answer.read_at_least(1).await.unwrap();
        open.push(answer);
    }
    let body = request(Dialect::Anthropic, false, "hello");
    let held = client::post_json(binary.url("/v1/messages"), &body).header("x-mock-hold", "");
    let held = tokio::spawn(held.fetch());
    provider.gate().reached(3).await;
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    for answer in open {
        assert!(answer.whole().await.broken.is_some());
    }
    assert!(held.await.unwrap().is_err());
    let events = events_of(&binary.data());
    assert_eq!(events.len(), 3, "{events:?}");
    for event in events {
        assert_eq!(event.ending, Ending::ClientGone);
        assert!(event.usage.unwrap().estimated && event.cost.is_some(), "{event:?}");
    }
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
    assert!(!binary.log().contains("panicked"), "{}", binary.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = Binary::start(home.path(), &provider, "");
    let mut answer = stalling(&binary, Dialect::OpenaiChat).send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    binary.signal("TERM");
    refuses_connections(&binary).await;
    binary.says("draining", 1).await;
    let begun = Instant::now();
    binary.signal("INT");
    assert_eq!(binary.exit_code().await, Some(130));
    assert!(begun.elapsed() < Duration::from_secs(10));
    wait_until(|| provider.open_responses() == 0, || "the upstream call goes on".into()).await;
}
