//! How fast events reach a shared history, and what they take there. Run with
//! `cargo test --release -p sprag-store --test history sending_speed -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may end by a panic and print")]

use std::time::Instant;

use sprag_core::event::Event;
use sprag_core::id::AgentName;
use sprag_core::loops::StepEvidence;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_store::history::{ClickHouseSettings, HistorySettings, Recorded};
use sprag_testkit::ClickHouseServer;
use xxhash_rust::xxh3::xxh3_64;

use crate::common::{self, clickhouse_settings, lasting, patient, step};

const EVENTS: u64 = 200_000;
const STEPS_OF_A_RUN: u64 = 20;

/// Numbers without a pattern, the same in every run of the test.
fn chance(n: u64, what: &str) -> u64 {
    xxh3_64(format!("{n} {what}").as_bytes())
}

/// A call as agents make them: twenty to a run, fifty runs at once, each with its own numbers and evidence.
fn event(n: u64) -> Event {
    let run = n / (STEPS_OF_A_RUN * 50) * 50 + n % 50;
    let mut evidence = Vec::new();
    for part in 0..12 {
        evidence.extend_from_slice(&chance(n, &part.to_string()).to_le_bytes());
    }
    let input = 2000 + chance(n, "input") % 30_000;
    Event {
        at: Timestamp(1_700_000_000_000 + n as i64 * 20),
        agent: AgentName::parse(&format!("agent-{}", run % 40)).unwrap(),
        key: Some(format!("key-{}", run % 40)),
        total_ms: 400 + (chance(n, "total") % 9000) as u32,
        first_byte_ms: Some(200 + (chance(n, "first") % 900) as u32),
        overhead_us: 80 + (chance(n, "own") % 400) as u32,
        usage: Some(Usage { input, cache_read: input * 3, output: chance(n, "output") % 2000, ..Usage::default() }),
        cost: Some(NanoUsd((input * 2500) as i64)),
        level: Some((chance(n, "level") % 1000) as f32 / 1000.0),
        evidence: StepEvidence::from_bytes(&evidence),
        ..step(
            &format!("{:012x}{:020x}", 1_700_000_000_000 + n * 20, u128::from(chance(n, "id"))),
            &format!("run-{:016x}", chance(run, "run")),
            (n / 50 % STEPS_OF_A_RUN) as u32 + 1,
        )
    }
}

#[test]
#[ignore = "measures"]
fn one_node() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let clickhouse = ClickHouseSettings { batch_events: 10_000, ..clickhouse_settings(&server.url("speed")) };
    let settings = HistorySettings { segment_bytes: 4 << 20, ..patient() };
    let history = common::open(&dir.path().join("node"), lasting(settings, Some(clickhouse)));
    history.flush().unwrap();
    let with_evidence = event(1).evidence.is_some();
    let start = Instant::now();
    (0..EVENTS).for_each(|n| assert_eq!(history.record(&event(n)), Recorded::Whole));
    history.settle().unwrap();
    report("recorded and in the node's own database", start);
    let start = Instant::now();
    history.flush().unwrap();
    report("sent to ClickHouse, with their sums", start);
    println!("evidence: {with_evidence}");

    let ask = |sql: &str| {
        let url = format!("http://127.0.0.1:{}/?database=speed", server.port());
        ureq::post(&url).send(sql).unwrap().into_body().read_to_string().unwrap()
    };
    let tables = ask("SELECT name FROM system.tables WHERE database = 'speed' AND engine LIKE '%MergeTree'");
    tables.lines().for_each(|table| drop(ask(&format!("OPTIMIZE TABLE {table} FINAL"))));
    let bytes = ask("SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts
        WHERE active AND database = 'speed' GROUP BY table ORDER BY 3 DESC");
    let mut all = 0.0;
    for line in bytes.lines() {
        let mut fields = line.split('\t');
        let (table, rows) = (fields.next().unwrap(), fields.next().unwrap());
        let of_table = fields.next().unwrap().parse::<f64>().unwrap() / EVENTS as f64;
        all += of_table;
        println!("{table:24} {rows:>9} rows {of_table:8.1} bytes an event");
    }
    println!("{:24} {:>14} {all:8.1} bytes an event", "all tables", "");
    let columns = ask("SELECT column, sum(column_bytes_on_disk) AS size FROM system.parts_columns
        WHERE active AND database = 'speed' AND table = 'events' GROUP BY column ORDER BY size DESC LIMIT 8");
    for line in columns.lines() {
        let (column, size) = line.split_once('\t').unwrap();
        println!("  events.{column:16} {:8.1} bytes an event", size.parse::<f64>().unwrap() / EVENTS as f64);
    }
}

fn report(what: &str, start: Instant) {
    println!("{what}: {:.0} events/s", EVENTS as f64 / start.elapsed().as_secs_f64());
}
