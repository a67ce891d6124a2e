//! How long recording takes. Run with `cargo test --release -p sprag-store --test history recording_speed -- --ignored --nocapture`.
#![expect(clippy::print_stdout, reason = "a test may end by a panic and print")]

use std::time::{Duration, Instant};

use sprag_core::event::Event;
use sprag_core::limits::OPEN_CALLS;
use sprag_core::time::Timestamp;
use sprag_store::history::{History, HistorySettings};

use crate::common::{self, opening, patient, step};

const EVENTS: u32 = 100_000;

fn event(n: u32) -> Event {
    Event {
        at: Timestamp(1_700_000_000_000 + i64::from(n)),
        ..step(&format!("018bcfe56800700080000000{n:08x}"), &format!("run-{}", n / 20), n % 20 + 1)
    }
}

#[test]
#[ignore = "measures"]
fn one_thread() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), HistorySettings { segment_bytes: 1 << 40, ..patient() });
    let events: Vec<Event> = (0..EVENTS).map(event).collect();
    let mut times: Vec<Duration> = Vec::with_capacity(events.len());
    for event in &events {
        let start = Instant::now();
        history.record(event);
        times.push(start.elapsed());
    }
    report("record, one thread", &mut times);
    let bytes = history.status().spool.bytes;
    let start = Instant::now();
    history.flush().unwrap();
    let rate = f64::from(EVENTS) / start.elapsed().as_secs_f64();
    println!("ingest: {rate:.0} events/s, {} bytes an event in the spool", bytes / u64::from(EVENTS));
    let database = std::fs::metadata(dir.path().join("sprag.db")).unwrap().len();
    println!("database: {} bytes an event", database / u64::from(EVENTS));
}

#[test]
#[ignore = "measures"]
fn calls_that_money_is_set_aside_for() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), HistorySettings { segment_bytes: 1 << 40, ..patient() });
    let calls: Vec<_> = (0..EVENTS).map(|n| (opening(&event(n), 1_000_000), event(n))).collect();
    let mut times: Vec<Duration> = Vec::with_capacity(calls.len());
    for (call, event) in &calls {
        let start = Instant::now();
        history.opened(call);
        history.record(event);
        times.push(start.elapsed());
    }
    report("opened and record, one thread", &mut times);
    let bytes = history.status().spool.bytes;
    let start = Instant::now();
    history.flush().unwrap();
    let rate = f64::from(EVENTS) / start.elapsed().as_secs_f64();
    println!("ingest: {rate:.0} calls/s, {} bytes a call in the spool", bytes / u64::from(EVENTS));
}

/// What the next start does after a crash with as many calls under way as there may be.
#[test]
#[ignore = "measures"]
fn charging_a_full_table() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), patient());
    for n in 0..OPEN_CALLS as u32 {
        assert!(history.opened(&opening(&event(n), 1_000_000)));
    }
    history.flush().unwrap();
    drop(history);
    let start = Instant::now();
    let history = common::open(dir.path(), patient());
    println!("open with {} calls to charge: {:?}", history.lost_calls(), start.elapsed());
}

#[test]
#[ignore = "measures"]
fn four_threads_while_ingesting() {
    let dir = tempfile::tempdir().unwrap();
    let history: History = common::open(dir.path(), HistorySettings::default());
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let history = &history;
                scope.spawn(move || {
                    let events: Vec<Event> = (0..EVENTS / 4).map(|n| event(thread * EVENTS + n)).collect();
                    let timed = |event: &Event| {
                        let start = Instant::now();
                        history.record(event);
                        start.elapsed()
                    };
                    events.iter().map(timed).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    report("record, four threads", &mut times);
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("{what}: mean {mean:?}, median {:?}, p99 {:?}, p99.9 {:?}", at(0.5), at(0.99), at(0.999));
}
