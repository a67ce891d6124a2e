//! `traceparent` on its way in and out.

use sprag_core::event::RunOrigin;
use sprag_testkit::client::Call;

use crate::collector::{CLIENT, Collector, Manner, SERVER};
use crate::configured::Configured;
use crate::scene::{chat, fetch, place};

const TRACE: &str = "ad5b72550a81ce246661189fd2cedff3";
const SPAN: &str = "78a768f2645dcecd";

fn call(place: &Configured, headers: &[(&str, &str)]) -> Call {
    headers.iter().fold(chat(place, "plain", "gpt-4o", "hello"), |call, (name, value)| call.header(name, value))
}

/// What the provider got last.
fn sent(place: &Configured) -> (String, String) {
    let request = place.provider.requests().last().unwrap().clone();
    (request.header("traceparent").to_owned(), request.header("tracestate").to_owned())
}

#[tokio::test]
async fn a_call_is_a_part_of_its_callers_trace_and_the_provider_of_ours() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    let traceparent = format!("00-{TRACE}-{SPAN}-01");
    fetch(call(&place, &[("traceparent", &traceparent), ("tracestate", "vendor=1,other=2")])).await;
    let spans = collector.has_calls(1).await;
    let own = spans.iter().find(|span| span.kind == SERVER).unwrap();
    assert_eq!((own.trace.as_str(), own.parent.as_str()), (TRACE, SPAN));
    let upstream = spans.iter().find(|span| span.kind == CLIENT).unwrap();
    let (out, state) = sent(&place);
    assert_eq!(out, format!("00-{TRACE}-{}-01", upstream.id));
    assert_eq!(state, "vendor=1,other=2", "what belongs to others passes");
}

#[tokio::test]
async fn a_trace_names_its_run_as_before() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    for span in ["78a768f2645dcecd", "1111111111111111"] {
        fetch(call(&place, &[("traceparent", &format!("00-{TRACE}-{span}-01"))])).await;
    }
    let events = place.sprag.settled(2).await;
    let runs: Vec<_> = events.iter().map(|event| event.run.clone().unwrap()).collect();
    assert_eq!((&runs[0].id, runs[1].step), (&runs[1].id, 2));
    assert_eq!(runs[1].origin, RunOrigin::Trace);
}

#[tokio::test]
async fn a_call_without_a_trace_begins_one() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    for (number, traceparent) in
        ["", "00-zz-1-01", "00-00000000000000000000000000000000-78a768f2645dcecd-01"].iter().enumerate()
    {
        fetch(call(&place, &[("traceparent", traceparent), ("tracestate", "vendor=1")])).await;
        let spans = collector.has_calls(number + 1).await;
        let own = spans.iter().filter(|span| span.kind == SERVER).nth(number).unwrap();
        assert_eq!((own.trace.len(), own.parent.as_str()), (32, ""));
        let (out, state) = sent(&place);
        assert!(out.starts_with(&format!("00-{}-", own.trace)) && out.ends_with("-01"), "{out}");
        assert_eq!(state, "", "it belonged to a trace that nobody can name");
    }
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_record_is_not_recorded() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    fetch(call(&place, &[("traceparent", &format!("00-{TRACE}-{SPAN}-00"))])).await;
    let (out, _) = sent(&place);
    assert!(out.starts_with(&format!("00-{TRACE}-")) && out.ends_with("-00") && !out.contains(SPAN), "{out}");
    // Whatever comes after it in the queue has it before.
    fetch(call(&place, &[])).await;
    let spans = collector.has_calls(1).await;
    assert!(spans.iter().all(|span| span.trace != TRACE));
}

#[tokio::test]
async fn without_traces_the_header_passes_as_it_came() {
    let place = place("").await;
    for traceparent in [format!("00-{TRACE}-{SPAN}-01"), "nonsense".to_owned()] {
        fetch(call(&place, &[("traceparent", &traceparent), ("tracestate", "vendor=1")])).await;
        assert_eq!(sent(&place), (traceparent, "vendor=1".to_owned()));
    }
    fetch(call(&place, &[])).await;
    assert_eq!(sent(&place), (String::new(), String::new()));
}
