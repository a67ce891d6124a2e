//! Nothing that was recorded is lost or counted twice, however the process ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic and print")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};

use sprag_core::event::Event;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, Recorded, Span};
use sprag_store::{DataDir, StoreError};

use crate::common::{self, Home, all_events, key, on_every_history, patient, step};

const RUNS: u64 = 5;

/// Not a test of its own: the process that is killed. It says each id after it was recorded.
#[test]
fn child_that_records_until_killed() {
    let Some((history, name)) = common::open_as_child() else { return };
    let mut out = std::io::stdout();
    out.write_all(b"\n").unwrap();
    for n in 0_u64.. {
        let event = Event {
            cost: Some(NanoUsd(n as i64 + 1)),
            at: Timestamp(1_700_000_000_000 + n as i64),
            ..step(&format!("{name}-{n}"), &format!("r{}", n % RUNS), 1)
        };
        assert_eq!(history.record(&event), Recorded::Whole);
        out.write_all(format!("recorded {}\n", event.id).as_bytes()).unwrap();
        // Not far ahead of what has arrived, so that the end comes while something is sent.
        while history.status().shared.is_some_and(|shared| shared.sent + 600 < n) {
            std::thread::yield_now();
        }
    }
}

on_every_history!(a_killed_process_loses_and_doubles_nothing, two_processes_cannot_share_a_directory);

fn a_killed_process_loses_and_doubles_nothing(home: &Home) {
    let mut acknowledged = HashSet::new();
    for round in 0..6 {
        let mut child = home.start_child("crash::child_that_records_until_killed", &format!("p{round}"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let until_kill = RandomState::new().hash_one(round) % 4000;
        let is_ack = |line: String| line.strip_prefix("recorded ").map(str::to_owned);
        acknowledged.extend(lines.by_ref().filter_map(is_ack).take(until_kill as usize + 1));
        child.kill().unwrap();
        // What it said between our last look and its end counts as well.
        acknowledged.extend(lines.filter_map(is_ack));
        child.wait().unwrap();
    }

    let history = home.open();
    history.flush().unwrap();
    let events = all_events(&history, &EventFilter::default());
    let found: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let missing: Vec<&String> = acknowledged.iter().filter(|id| !found.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "{} of {} lost: {missing:?}", missing.len(), acknowledged.len());
    // At most one more for each process: recorded, but killed before it could say so.
    assert!(events.len() <= acknowledged.len() + 6, "{} events, {} acknowledged", events.len(), acknowledged.len());

    let mut expected: HashMap<String, (u64, NanoUsd)> = HashMap::new();
    for event in &events {
        let sums = expected.entry(event.run.as_ref().unwrap().id.to_string()).or_default();
        sums.0 += 1;
        sums.1 += event.cost.unwrap();
    }
    for (id, (steps, cost)) in &expected {
        let run = history.run(&key(id)).unwrap().unwrap();
        assert_eq!((run.steps, run.cost), (*steps, *cost), "{id}");
    }
    let cost: NanoUsd = expected.values().map(|(_, cost)| *cost).sum();
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, cost);
    assert_eq!(history.agents("", None, 500).unwrap().items[0].cost, cost);
    for span in [Span::Hour, Span::Day, Span::Month] {
        let series = history.series(span, Timestamp(1_700_000_000_000 + 60_000), None).unwrap();
        let requests: u64 = series.buckets.iter().map(|bucket| bucket.requests).sum();
        assert_eq!(requests as usize, events.len(), "{span:?}");
        assert_eq!(series.buckets.iter().map(|bucket| bucket.cost).sum::<NanoUsd>(), cost, "{span:?}");
    }
    assert_eq!(fs::read_dir(home.path().join("spool")).unwrap().count(), 0, "nothing left to move");
}

fn two_processes_cannot_share_a_directory(home: &Home) {
    let mut child = home.start_child("crash::child_that_records_until_killed", "holder");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("recorded ")));
    let refused = DataDir::open(home.path());
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    let Err(StoreError::InUse { path, holder }) = refused else { panic!("{refused:?}") };
    assert_eq!((path.as_path(), holder), (home.path(), format!(" (process {pid})")));
    assert!(DataDir::open(home.path()).is_ok(), "the lock goes with the process");
}

#[test]
fn a_file_that_outlived_its_commit_is_not_counted_again() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), patient());
    for n in 1..=3 {
        history.record(&step(&n.to_string(), "r", n));
    }
    let file = fs::read_dir(dir.path().join("spool")).unwrap().next().unwrap().unwrap().path();
    let content = fs::read(&file).unwrap();
    history.flush().unwrap();
    assert!(!file.exists());
    drop(history);

    fs::write(&file, content).unwrap();
    let history = common::open(dir.path(), patient());
    assert!(!file.exists());
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.cost), (3, NanoUsd(3000)));
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, NanoUsd(3000));
    assert_eq!(history.agents("", None, 500).unwrap().items[0].runs, 1);
}

#[test]
fn a_torn_line_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let whole = format!("{{\"event\":{}}}", serde_json::to_string(&step("whole", "r", 1)).unwrap());
    fs::write(spool.join("0000000001.jsonl"), format!("{whole}\n{}", &whole[..100])).unwrap();
    fs::write(spool.join("0000000002.jsonl"), format!("garbage\n{}\n", whole.replace("whole", "next"))).unwrap();

    let history = common::open(dir.path(), patient());
    let ids: HashSet<String> =
        all_events(&history, &EventFilter::default()).into_iter().map(|event| event.id).collect();
    assert_eq!(ids, HashSet::from(["whole".to_owned(), "next".to_owned()]));
    assert_eq!(history.run(&key("r")).unwrap().unwrap().steps, 2);
    assert_eq!(history.status().ingest.unreadable, 1);
}
