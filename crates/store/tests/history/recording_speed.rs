//! How long recording takes. Run with `cargo test --release -p sprag-store --test history recording_speed -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may end by a panic and print")]

use std::time::{Duration, Instant};

use sprag_core::event::Event;
use sprag_core::limits::OPEN_CALLS;
use sprag_core::loops::StepEvidence;
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

/// What a processor does for a call in all, as under the comparison's load: new runs of one agent, batches as they come about at ten
/// thousand calls a second. Time on the processor, so that other work on the machine counts little.
#[test]
#[ignore = "measures"]
fn everything_for_one_event() {
    const BATCH: u32 = 5_000;
    for (what, calls_in_a_run) in [("every call a new run", 1), ("runs of twenty calls", 20)] {
        let dir = tempfile::tempdir().unwrap();
        let history = common::open(dir.path(), patient());
        let named = |kind: &str, n: u32| format!("{kind}_0rfq{n:06x}8xk2m9x0a7h1c0q2");
        let made = |n: u32| {
            let mut event = step(&named("req", n), &named("run", n / calls_in_a_run), n % calls_in_a_run + 1);
            event.at = Timestamp(1_700_000_000_000 + i64::from(n) / 10);
            event.evidence = StepEvidence::from_bytes(&[16, 0, 0]);
            event
        };
        let (mut record, mut ingest) = (Duration::ZERO, Duration::ZERO);
        for batch in 0..EVENTS / BATCH {
            let events: Vec<Event> = (0..BATCH).map(|n| made(batch * BATCH + n)).collect();
            let (begun, begun_aside) = (on_processor("thread-self"), on_processor(&writer()));
            for event in &events {
                history.record(event);
            }
            record += on_processor("thread-self") - begun;
            history.flush().unwrap();
            ingest += on_processor(&writer()) - begun_aside;
        }
        println!("{what}: record {:?}, ingest {:?} an event", record / EVENTS, ingest / EVENTS);
    }
}

/// The folder of the thread that writes the database.
fn writer() -> String {
    let mut threads = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap());
    let is_writer = |name: &str| name.trim() == "history";
    let found = threads.find(|thread| is_writer(&std::fs::read_to_string(thread.path().join("comm")).unwrap()));
    format!("self/task/{}", found.unwrap().file_name().to_str().unwrap())
}

/// How long a thread has been on a processor. Linux brings it up to date when the thread stops, and every few milliseconds.
fn on_processor(thread: &str) -> Duration {
    std::thread::yield_now();
    let told = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
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
