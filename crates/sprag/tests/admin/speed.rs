//! How fast the pages are over a large history. Run with
//! `cargo test --release -p sprag --test admin speed -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "it measures, and says what")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::World;

const EVENTS: i64 = 1_000_000;
const STEPS: i64 = 10;
const AGENTS: i64 = 200;
const DAYS: i64 = 29;
const ASKED: usize = 50;
/// What a person does not notice.
const BAR: Duration = Duration::from_millis(50);

/// As many events in a tenth as many runs over a month, some of them stopped, failed, unpriced or with findings.
fn fill(world: &World, now: i64) {
    let step_ms = DAYS * 24 * 60 * 60 * 1000 / EVENTS;
    for n in 0..EVENTS {
        let (run, step, at) = (n / STEPS, n % STEPS + 1, now - (EVENTS - n) * step_ms);
        let is_stopped = run % 50 == 0 && step == STEPS;
        let mut more = json!({
            "id": format!("req_{n:012}"), "agent": format!("agent-{}", run % AGENTS), "cost": 1000 + n % 5000,
            "model": (["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-pro"][(run % 4) as usize]),
            "run": {"id": format!("task-{run:08}"), "step": step, "origin": "declared"},
            "usage": {"input": 1200, "cache_read": 300, "output": 90}, "finish": "tool_calls", "tools": ["read_file"],
        });
        let fields = more.as_object_mut().unwrap();
        if is_stopped {
            let reason = if run % 100 == 0 { "loop_detected" } else { "budget_exceeded" };
            fields.extend(
                json!({"blocked": true, "block_reason": reason, "status": 429, "ending": "refused"})
                    .as_object()
                    .unwrap()
                    .clone(),
            );
        }
        if n % 97 == 0 {
            let seen = json!({"entity": "EMAIL", "direction": "request", "outcome": "redacted", "path": "messages[0]", "start": 0, "length": 5, "hint": "a…"});
            fields.insert("dlp".into(), json!({"total": 1, "list": [seen]}));
        }
        world.record(at, more);
        if n % 50_000 == 0 {
            world.sprag.app.history.flush().unwrap();
        }
    }
    world.sprag.app.history.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn pages_answer_at_once_over_a_million_events() {
    let world = World::start().await;
    let start = Instant::now();
    fill(&world, world.sprag.app.clock.now().0);
    println!("{EVENTS} events, {} runs, {AGENTS} agents: filled in {:?}", EVENTS / STEPS, start.elapsed());
    let bytes = std::fs::metadata(world.sprag.data.path().join("sprag.db")).unwrap().len();
    println!("database: {} MB", bytes >> 20);
    let cookie = world.sign_in().await;
    let mut slow = Vec::new();
    for path in [
        "/",
        "/?span=day",
        "/?span=month&top=stops",
        "/runs",
        "/runs?agent=agent-7",
        "/runs?status=expired&model=gpt-4o",
        "/runs?min_cost=1",
        "/runs?id=task-00000042",
        "/runs?agent=agent-7&status=killed",
        "/events",
        "/events?agent=agent-7",
        "/events?agent=agent-7&model=no-such-model",
        "/events?show=stopped",
        "/events?reason=budget_exceeded&within=7d",
        "/events?show=findings",
        "/events?show=admin",
        "/events?model=gpt-4o-mini",
        "/events?run=task-00000042",
    ] {
        let mut took = Vec::with_capacity(ASKED);
        for _ in 0..ASKED {
            let begun = Instant::now();
            let answer = world.ask(path).header("cookie", &cookie).fetch().await.unwrap();
            took.push(begun.elapsed());
            assert_eq!(answer.status, 200, "{path}");
        }
        took.sort_unstable();
        let (median, p95) = (took[ASKED / 2], took[ASKED * 95 / 100]);
        println!("{path:<48} median {:>7.2} ms, p95 {:>7.2} ms", median.as_secs_f64() * 1e3, p95.as_secs_f64() * 1e3);
        if p95 > BAR {
            slow.push(path);
        }
    }
    assert!(slow.is_empty(), "over {BAR:?}: {slow:?}");
}

/// Calls that are timed.
const CALLS: usize = 2_000;
/// A person who clicks fast.
const CLICK: Duration = Duration::from_millis(200);

/// Sends calls one after the other; gives the median and the 99th percentile of how long they took.
async fn time_calls(world: &World) -> (Duration, Duration) {
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        assert_eq!(world.call(&[]).await.status, 200);
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    (took[CALLS / 2], took[CALLS * 99 / 100])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn calls_do_not_wait_for_somebody_who_clicks() {
    let world = World::start().await;
    fill(&world, world.sprag.app.clock.now().0);
    let cookie = world.sign_in().await;
    time_calls(&world).await;
    for _ in 0..3 {
        let quiet = time_calls(&world).await;
        let clicking = async {
            let mut clicks = tokio::time::interval(CLICK);
            for path in ["/", "/runs", "/events", "/agents", "/budgets", "/dlp", "/detectors"].iter().cycle() {
                clicks.tick().await;
                let answer = world.ask(path).header("cookie", &cookie).fetch().await.unwrap();
                assert_eq!(answer.status, 200, "{path}");
            }
        };
        let clicked = tokio::select! {
            clicked = time_calls(&world) => clicked,
            () = clicking => unreachable!("it clicks for ever"),
        };
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        println!(
            "calls: median {:.3} ms, p99 {:.3} ms; while somebody clicks: median {:.3} ms, p99 {:.3} ms",
            ms(quiet.0),
            ms(quiet.1),
            ms(clicked.0),
            ms(clicked.1)
        );
    }
}
