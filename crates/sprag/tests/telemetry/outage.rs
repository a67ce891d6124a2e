//! A collector that is away, refuses, talks nonsense or never answers: calls go on, spans are counted, nothing else
//! happens.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::binary::wait_until;
use crate::collector::{Collector, Manner};
use crate::configured::Configured;
use crate::scene::{chat, fetch, metrics, place};

async fn call(place: &Configured) {
    assert_eq!(fetch(chat(place, "plain", "gpt-4o", "hello")).await.status, 200);
}

fn failed(place: &Configured) -> u64 {
    place.sprag.app.tracer.as_ref().unwrap().counts().failed
}

/// Waits until a batch was given up.
async fn gives_up(place: &Configured, before: u64) {
    wait_until(|| failed(place) > before, || format!("{:?}", place.sprag.app.tracer.as_ref().unwrap().counts())).await;
}

#[tokio::test]
async fn one_that_is_away() {
    // Nobody listens there.
    let place = place("[telemetry]\notlp = \"http://127.0.0.1:1\"\n").await;
    call(&place).await;
    gives_up(&place, 0).await;
    let page = metrics(&place).await;
    assert_eq!(page.value("sprag_link_up", &[("link", "otlp")]), 0.0);
    assert!(page.value("sprag_link_failures_total", &[("link", "otlp")]) >= 1.0);
    assert!(page.value("sprag_trace_spans_total", &[("result", "failed")]) >= 3.0);
    assert_eq!(page.value("sprag_trace_spans_total", &[("result", "exported")]), 0.0);
}

#[tokio::test]
async fn one_that_refuses_and_comes_to_its_senses() {
    let collector = Collector::start(Manner::Refuses(400)).await;
    let place = place(&collector.config()).await;
    call(&place).await;
    gives_up(&place, 0).await;
    collector.be(Manner::Refuses(503));
    let before = failed(&place);
    call(&place).await;
    gives_up(&place, before).await;
    assert_eq!(metrics(&place).await.value("sprag_link_up", &[("link", "otlp")]), 0.0);
    collector.be(Manner::Takes);
    call(&place).await;
    collector.has_calls(1).await;
    let is_up = || place.sprag.app.tracer.as_ref().unwrap().counts().is_up;
    wait_until(is_up, || "it is not seen to be back".to_owned()).await;
    let page = metrics(&place).await;
    assert_eq!(page.value("sprag_link_up", &[("link", "otlp")]), 1.0);
    assert_eq!(page.value("sprag_trace_spans_total", &[("result", "exported")]), collector.spans().len() as f64);
}

#[tokio::test]
async fn one_that_takes_them_and_babbles() {
    for manner in [Manner::Babbles, Manner::Floods] {
        let collector = Collector::start(manner).await;
        let place = place(&collector.config()).await;
        for calls in 1..=2 {
            call(&place).await;
            collector.has_calls(calls).await;
        }
        let counts = || place.sprag.app.tracer.as_ref().unwrap().counts();
        let spans = || collector.spans().len() as u64;
        wait_until(|| counts().exported + counts().failed >= spans(), || format!("{:?}", counts())).await;
        assert_eq!((counts().exported, counts().failed), (spans(), 0), "{manner:?}: nothing is sent twice");
    }
}

#[tokio::test]
async fn one_that_does_not_even_speak_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(&[0, 255, 13, 10, 7].repeat(1000)).await;
        }
    });
    let place = place(&format!("[telemetry]\notlp = \"http://{address}\"\n")).await;
    call(&place).await;
    gives_up(&place, 0).await;
    call(&place).await;
}

#[tokio::test]
async fn one_that_never_answers_holds_up_no_end() {
    let collector = Collector::start(Manner::Hangs).await;
    let place = place(&format!("{}[proxy]\ndrain_seconds = 1\n", collector.config())).await;
    for _ in 0..3 {
        call(&place).await;
    }
    let Configured { sprag, .. } = place;
    let begun = Instant::now();
    sprag.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_last_spans_are_exported_before_the_end() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    for _ in 0..3 {
        call(&place).await;
    }
    let Configured { sprag, .. } = place;
    sprag.stop().await;
    let calls = collector.spans().iter().filter(|span| span.name == "chat gpt-4o").count();
    assert_eq!(calls, 3, "without waiting for more");
}
