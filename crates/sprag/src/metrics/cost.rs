//! What counting a call costs, and what noting its way and making its spans do:
//!
//! ```sh
//! cargo test --release -p sprag --lib counting_cost -- --ignored --nocapture
//! ```
//!
//! The same call is counted by one thread and by several at once, which then meet at the same counters.

use std::hint::black_box;
use std::time::Instant;

use http::HeaderMap;
use serde_json::json;
use sprag_core::wire::Reply;

use super::*;
use crate::app::App;
use crate::clock::{Clock, Ids};
use crate::config::{Flags, Sources, load};
use crate::gateway::Leg;

const BATCHES: u32 = 300;
const BATCH: u32 = 1000;

fn call() -> Event {
    let event = json!({
        "id": "req_1", "at": 0, "kind": "llm_call", "agent": "researcher", "provider": "openai",
        "dialect": "openai_chat", "path": "POST /v1/chat/completions", "model": "gpt-4o", "status": 200,
        "ending": "complete", "total_ms": 1234, "overhead_us": 90, "run": {"id": "task-7", "step": 3, "origin": "declared"},
        "usage": {"input": 1000, "cache_read": 204, "output": 88}, "cost": 3_120_000,
    });
    serde_json::from_value(event).unwrap()
}

/// What is noted on the way of a call that passes every step.
fn noted(app: &App, headers: &HeaderMap) -> Trail {
    let mut trail = Trail::new(app, headers, Instant::now());
    let read_at = Instant::now();
    trail.judged = Some(Leg::since(Instant::now()));
    trail.detected = Some(Leg::since(Instant::now()));
    trail.inspected = Some(Leg::since(Instant::now()));
    trail.mark_sent(read_at, Instant::now());
    trail.answered_with = Some(200);
    trail.mark_first_byte(Instant::now());
    trail.add_answer_inspected(Instant::now());
    trail.priced_as = Some("gpt-4o".into());
    trail
}

fn app(more: &str) -> (std::sync::Arc<App>, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("sprag.toml");
    std::fs::write(&file, more).unwrap();
    let flags = Flags { config: Some(file), data: Some(home.path().join("data")), ..Flags::default() };
    let settings = load(&Sources { flags, ..Sources::default() }).unwrap().settings;
    (App::new(settings, Clock::Real, Ids::Random).unwrap(), home)
}

/// What one takes, in the best of many batches: whatever else the machine does is not in it. Of several threads the slowest
/// counts.
fn each_ns(threads: u32, work: impl Fn() + Sync) -> u128 {
    let batch_ns = || {
        let begun = Instant::now();
        (0..BATCH).for_each(|_| work());
        begun.elapsed().as_nanos() / u128::from(BATCH)
    };
    let best_ns = || (0..BATCHES).map(|_| batch_ns()).min().unwrap();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(best_ns)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    })
}

#[test]
#[ignore = "it measures, and only an optimised program"]
fn counting_cost() {
    let (event, headers, reply) = (call(), HeaderMap::new(), Reply::default());
    let (plain, _home) = app("");
    let provider = plain.settings.load().providers["openai"].clone();
    let trail = noted(&plain, &headers);
    let count = |by_agent| plain.metrics.count(black_box(&event), black_box(&trail), by_agent);
    println!("noting the way of a call       {:>6} ns", each_ns(1, || drop(black_box(noted(&plain, &headers)))));
    println!("counting it                    {:>6} ns", each_ns(1, || count(false)));
    println!("counting it, by agent too      {:>6} ns", each_ns(1, || count(true)));
    println!("counting it, on two threads    {:>6} ns", each_ns(2, || count(false)));
    println!(
        "all of it, without traces      {:>6} ns",
        each_ns(1, || noted(&plain, &headers).finish(&plain, &provider, &event, &reply, Instant::now()))
    );
    let (traced, _home) = app("[telemetry]\notlp = \"http://127.0.0.1:1\"\n");
    println!(
        "all of it, with spans          {:>6} ns",
        each_ns(1, || noted(&traced, &headers).finish(&traced, &provider, &event, &reply, Instant::now()))
    );
    let (unsampled, _home) = app("[telemetry]\notlp = \"http://127.0.0.1:1\"\nsample_ratio = 0\n");
    println!(
        "all of it, trace not recorded  {:>6} ns",
        each_ns(1, || noted(&unsampled, &headers).finish(&unsampled, &provider, &event, &reply, Instant::now()))
    );
}
