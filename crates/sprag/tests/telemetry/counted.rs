//! What the page counts is what happened.

use serde_json::json;
use sprag_testkit::client;

use crate::binary::wait_until;
use crate::page::Page;
use crate::scene::{chat, fetch, looping, metrics, place, traffic};

#[tokio::test]
async fn every_call_is_counted_once_by_where_it_went_and_how_it_ended() {
    let place = place("").await;
    let calls = traffic(&place).await;
    let page = metrics(&place).await;
    assert_eq!(page.sum("sprag_requests_total", &[]), calls as f64);
    let of = |provider, dialect, outcome| {
        page.value("sprag_requests_total", &[("provider", provider), ("dialect", dialect), ("outcome", outcome)])
    };
    assert_eq!(of("anthropic", "anthropic", "complete"), 2.0);
    assert_eq!(of("gemini", "gemini", "complete"), 2.0);
    assert_eq!(of("openai", "openai_embeddings", "complete"), 1.0);
    assert_eq!(of("openai", "opaque", "complete"), 1.0, "a list of models");
    assert_eq!(of("openai", "openai_chat", "upstream_error"), 1.0);
    // Two stops, and a body that is no JSON.
    assert_eq!(of("openai", "openai_chat", "refused"), 3.0);
    assert_eq!(page.sum("sprag_request_duration_seconds_count", &[]), calls as f64);
    let sent = calls as f64 - 3.0;
    assert_eq!(page.sum("sprag_overhead_seconds_count", &[]), sent);
    assert_eq!(page.sum("sprag_upstream_duration_seconds_count", &[]), sent);
    assert_eq!(page.sum("sprag_upstream_first_byte_seconds_count", &[]), sent);
    assert!(page.value("sprag_upstream_duration_seconds_sum", &[("provider", "openai")]) > 0.0);
}

#[tokio::test]
async fn stops_tokens_money_and_findings_are_counted_by_kind() {
    let place = place("").await;
    traffic(&place).await;
    let (page, events) = (metrics(&place).await, place.sprag.events());
    let stops = |reason| page.value("sprag_stops_total", &[("reason", reason)]);
    assert_eq!((stops("model_not_allowed"), stops("dlp_blocked"), stops("run_killed")), (1.0, 1.0, 0.0));
    assert_eq!(page.value("sprag_shadow_stops_total", &[("reason", "budget_exceeded")]), 1.0);
    let usage = |part: fn(&sprag_core::usage::Usage) -> u64| {
        events.iter().filter_map(|e| e.usage.as_ref()).map(part).sum::<u64>() as f64
    };
    assert_eq!(page.sum("sprag_tokens_total", &[("kind", "output")]), usage(|usage| usage.output));
    assert_eq!(page.sum("sprag_tokens_total", &[("kind", "input")]), usage(|usage| usage.input));
    let cost: i64 = events.iter().filter_map(|event| event.cost).map(|cost| cost.0).sum();
    assert!(cost > 0 && (page.sum("sprag_cost_usd_total", &[]) - cost as f64 / 1e9).abs() < 1e-12);
    assert!(page.value("sprag_cost_usd_total", &[("provider", "openai"), ("model", "gpt-4o")]) > 0.0);
    assert_eq!(page.value("sprag_unpriced_requests_total", &[]), 1.0);
    let found = |outcome| page.value("sprag_dlp_findings_total", &[("kind", "OPENAI_KEY"), ("outcome", outcome)]);
    assert_eq!((found("redacted"), found("blocked")), (1.0, 1.0));
    assert!(page.value("sprag_dlp_seconds_count", &[("direction", "request")]) > 10.0);
    assert!(page.value("sprag_dlp_seconds_count", &[("direction", "answer")]) > 10.0);
}

#[tokio::test]
async fn detectors_are_timed_and_their_verdicts_counted() {
    let place = looping("").await;
    for _ in 0..3 {
        fetch(chat(&place, "plain", "gpt-4o", "the same").header("x-sprag-run-id", "circle")).await;
    }
    place.sprag.settled(3).await;
    let page = metrics(&place).await;
    assert_eq!(page.value("sprag_detection_seconds_count", &[]), 2.0, "the third meets a kill first");
    let verdicts = [("detector", "repeat"), ("action", "kill_run")];
    assert_eq!(page.value("sprag_loop_verdicts_total", &verdicts), 1.0, "{}", page.text);
    assert_eq!(page.value("sprag_stops_total", &[("reason", "loop_detected")]), 1.0);
    assert_eq!(page.value("sprag_stops_total", &[("reason", "run_killed")]), 1.0);
    assert_eq!(page.value("sprag_kills", &[]), 1.0);
}

#[tokio::test]
async fn what_is_under_way_is_read_when_somebody_asks() {
    let place = place("").await;
    let body = json!({"model": "gpt-4o-mini", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let call = client::post_json(place.sprag.url("/agents/funded/v1/chat/completions"), &body);
    let mut answer = call.header("x-mock-stall", "2").send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    let page = metrics(&place).await;
    let now = |page: &Page, name| page.value(name, &[]);
    assert_eq!((now(&page, "sprag_requests_in_flight"), now(&page, "sprag_reservations")), (1.0, 1.0));
    assert_eq!((now(&page, "sprag_runs"), now(&page, "sprag_recording")), (1.0, 1.0));
    assert_eq!(page.value("sprag_connections", &[("listener", "proxy")]), 1.0);
    drop(answer);
    place.sprag.settled(1).await;
    let open = &place.sprag.app.metrics.proxy_connections;
    let is_closed = || open.load(std::sync::atomic::Ordering::Relaxed) == 0;
    wait_until(is_closed, || "the connection is still counted".to_owned()).await;
    let page = metrics(&place).await;
    assert_eq!((now(&page, "sprag_requests_in_flight"), now(&page, "sprag_reservations")), (0.0, 0.0));
    assert_eq!(page.value("sprag_connections", &[("listener", "proxy")]), 0.0);
    assert_eq!(page.value("sprag_events_total", &[("as", "whole")]), 1.0);
    assert_eq!(now(&page, "sprag_events_ingested_total"), 1.0);
    assert!(now(&page, "sprag_ingest_lag_seconds") < 30.0);
}

#[tokio::test]
async fn the_process_is_told_under_the_usual_names() {
    let place = place("").await;
    let page = metrics(&place).await;
    assert_eq!(page.value("sprag_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let started = page.value("process_start_time_seconds", &[]);
    assert!(started <= now && started > now - 600.0, "{started} {now}");
    if cfg!(target_os = "linux") {
        assert!(page.value("process_resident_memory_bytes", &[]) > 1e6);
        assert!(page.value("process_open_fds", &[]) > 3.0);
        assert!(page.families.contains_key("process_cpu_seconds_total"));
    }
}
