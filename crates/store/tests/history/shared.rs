//! Several nodes on one ClickHouse, and what becomes of their record when it is killed, frozen or slow to come.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sprag_core::event::Event;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{
    ClickHouseSettings, EventFilter, History, HistorySettings, Recorded, RunFilter, Span, Spender,
};
use sprag_testkit::ClickHouseServer;

use crate::common::{self, all_events, clickhouse_settings, key, new_database, patient, step};

const START: i64 = 1_700_000_000_000;

/// A node whose events go at once, and that does not wait long.
fn eager(dir: &Path, url: &str) -> History {
    let clickhouse = ClickHouseSettings {
        batch_events: 100,
        batch_age: Duration::from_millis(5),
        patience: Duration::from_secs(2),
        ..clickhouse_settings(url)
    };
    let settings = HistorySettings { flush_interval: Duration::from_millis(2), ..patient() };
    common::open(dir, common::lasting(settings, Some(clickhouse)))
}

fn quiet(dir: &Path, url: &str) -> History {
    common::open(dir, common::lasting(patient(), Some(clickhouse_settings(url))))
}

/// Waits for something that must come.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came");
        thread::yield_now();
    }
}

/// So many calls of 1000 nano-dollars are told by every listing and sum, once each.
fn assert_all(history: &History, calls: u64) {
    let events = all_events(history, &EventFilter::default());
    let ids: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!((events.len() as u64, ids.len() as u64), (calls, calls), "events");
    let cost = NanoUsd(calls as i64 * 1000);
    let totals = history.totals(Timestamp(0), None).unwrap();
    assert_eq!((totals.requests, totals.cost), (calls, cost));
    let runs = history.runs(&RunFilter::default(), None, 500).unwrap().items;
    assert_eq!(runs.iter().map(|run| run.steps).sum::<u64>(), calls);
    assert_eq!(runs.iter().map(|run| run.cost).sum::<NanoUsd>(), cost);
    let agents = history.agents("", None, 500).unwrap().items;
    assert_eq!(agents.iter().map(|agent| agent.cost).sum::<NanoUsd>(), cost);
    for span in [Span::Hour, Span::Day, Span::Month] {
        let series = history.series(span, Timestamp(START + 60_000), None).unwrap();
        assert_eq!(series.buckets.iter().map(|bucket| bucket.requests).sum::<u64>(), calls, "{span:?}");
    }
    assert_eq!(history.spent_by_all(Timestamp(0)).unwrap().everything, cost);
}

fn call(id: String, n: u64) -> Event {
    Event { at: Timestamp(START + n as i64 % 1000), key: Some("k".into()), ..step(&id, &format!("run {}", n % 7), 1) }
}

#[test]
fn every_node_shows_what_all_of_them_did() {
    let Some(server) = ClickHouseServer::shared() else { return };
    let url = server.url(&new_database());
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| quiet(&dir.path().join(name), &url));
    // The tables are there.
    for node in [&one, &two] {
        node.flush().unwrap();
    }
    let agent = AgentName::parse("tester").unwrap();
    one.record(&Event { cost: Some(NanoUsd(5)), ..step("1", "shared", 1) });
    two.record(&Event { cost: Some(NanoUsd(70)), at: Timestamp(START + 9), ..step("2", "shared", 2) });
    assert_eq!(
        one.spent(Spender::Agent(&agent), Timestamp(0)).unwrap(),
        NanoUsd(5),
        "its own counts before it is sent"
    );
    assert_eq!(two.spent(Spender::Everything, Timestamp(0)).unwrap(), NanoUsd(70));
    one.flush().unwrap();
    assert_eq!(two.spent(Spender::Agent(&agent), Timestamp(0)).unwrap(), NanoUsd(75), "and that of others after");
    two.flush().unwrap();
    for node in [&one, &two] {
        let run = node.run(&key("shared")).unwrap().unwrap();
        assert_eq!((run.steps, run.cost, run.last_at), (2, NanoUsd(75), Timestamp(START + 9 + 7)));
        assert_eq!(node.agent(&agent).unwrap().unwrap().runs, 1, "one run, on two nodes");
        assert_eq!(all_events(node, &EventFilter::default()).len(), 2);
        assert_eq!(node.spent(Spender::Everything, Timestamp(0)).unwrap(), NanoUsd(75));
        assert_eq!(node.run_totals(&key("shared")).unwrap().unwrap().tree_cost, NanoUsd(75));
    }
}

#[test]
fn a_server_killed_again_and_again_under_load_loses_and_doubles_nothing() {
    const CALLS: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("load");
    let nodes = ["one", "two"].map(|name| eager(&dir.path().join(name), &url));
    let sent = || nodes.iter().map(|node| node.status().shared.unwrap().sent).sum::<u64>();
    let recorded = AtomicU64::new(0);
    let allowed = AtomicU64::new(200);
    thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            let (recorded, allowed) = (&recorded, &allowed);
            scope.spawn(move || {
                for n in 0..CALLS {
                    while recorded.load(Ordering::SeqCst) >= allowed.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                    assert_eq!(node.record(&call(format!("{number}-{n}"), n)), Recorded::Whole);
                    recorded.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 1..=3 {
            // While something is on its way; and more is recorded while the server is away.
            allowed.fetch_add(600, Ordering::SeqCst);
            wait_until("something sent", || sent() > round * 100);
            server.kill();
            allowed.fetch_add(600, Ordering::SeqCst);
            wait_until("a node that notices", || {
                nodes.iter().any(|node| node.status().shared.unwrap().problem.is_some())
            });
            server.restart();
        }
        allowed.store(u64::MAX, Ordering::SeqCst);
    });
    wait_until("the rest", || sent() >= 2 * CALLS);
    nodes.iter().for_each(|node| wait_until("the end", || node.flush().is_ok()));
    assert_all(&nodes[0], 2 * CALLS);
    assert!(nodes.iter().all(|node| node.status().shared.unwrap().dropped == 0));
}

#[test]
fn a_frozen_server_holds_nobody_up_and_is_caught_up_with() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let history = eager(&dir.path().join("node"), &server.url("frozen"));
    history.record(&call("before".into(), 0));
    wait_until("the first", || history.flush().is_ok());
    server.freeze();
    let start = Instant::now();
    for n in 0..500 {
        assert_eq!(history.record(&call(n.to_string(), n)), Recorded::Whole);
    }
    assert!(start.elapsed() < Duration::from_secs(2), "recording waited");
    assert!(history.flush().is_err());
    let error = history.run(&key("run 1")).unwrap_err().to_string();
    assert!(error.contains("ClickHouse at") && error.contains("check that it runs"), "{error}");
    wait_until("the trouble in the status", || history.status().shared.unwrap().problem.is_some());
    server.thaw();
    // What the server was given while it stood still may be done now, after it was given up here.
    wait_until("the rest", || history.flush().is_ok());
    assert_all(&history, 501);
}

#[test]
fn a_node_starts_without_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("late");
    server.kill();
    let history = quiet(&dir.path().join("node"), &url);
    assert_eq!(history.record(&call("early".into(), 1)), Recorded::Whole);
    assert!(history.spent(Spender::Everything, Timestamp(0)).is_err(), "what others spent is not known");
    history.settle().unwrap();
    drop(history);
    let history = quiet(&dir.path().join("node"), &url);
    server.restart();
    history.flush().unwrap();
    assert_all(&history, 1);
}

#[test]
fn a_node_that_was_alone_brings_its_record_along() {
    let Some(server) = ClickHouseServer::shared() else { return };
    let dir = tempfile::tempdir().unwrap();
    let alone = common::open(dir.path(), patient());
    (0..30).for_each(|n| assert_eq!(alone.record(&call(n.to_string(), n)), Recorded::Whole));
    alone.flush().unwrap();
    drop(alone);
    let url = server.url(&new_database());
    let shared = quiet(dir.path(), &url);
    shared.flush().unwrap();
    assert_all(&shared, 30);
    drop(shared);
    // Alone again for a while, and back.
    let alone = common::open(dir.path(), patient());
    assert_eq!(alone.record(&call("alone".into(), 30)), Recorded::Whole);
    drop(alone);
    let shared = quiet(dir.path(), &url);
    shared.flush().unwrap();
    assert_all(&shared, 31);
}
