//! How long kills take. Run with `cargo test --release -p sprag-store --test catalog_speed -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::KILLED_RUNS;
use sprag_core::policy::{Kill, KillKind, Subject};
use sprag_core::time::Timestamp;
use sprag_store::catalog::Bounds;
use sprag_store::{Catalog, DataDir};

fn kill(n: usize) -> Kill {
    Kill {
        id: format!("kill_{n:08}"),
        scope: format!("run:bot/run_{n}").parse().unwrap(),
        kind: KillKind::Kill,
        reason: "step_limit".into(),
        by: "sprag".into(),
        at: Timestamp(1),
        expires_at: None,
        proof: None,
    }
}

#[test]
#[ignore = "measures"]
fn a_full_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Catalog::open(Arc::new(DataDir::open(dir.path()).unwrap()), Bounds::default(), Timestamp(0), |_| {});
    // Filled behind its back: a hundred thousand commits would measure the disk.
    drop(open().unwrap());
    let connection = rusqlite::Connection::open(dir.path().join("catalog.db")).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for n in 0..KILLED_RUNS {
        let record = serde_json::to_string(&kill(n)).unwrap();
        let row = rusqlite::params![kill(n).scope.to_string(), record];
        connection.execute("INSERT INTO kills (scope, is_run, record) VALUES (?1, 1, ?2)", row).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    drop(connection);

    let start = Instant::now();
    let catalog = open().unwrap();
    println!("open with {KILLED_RUNS} killed runs: {:?}", start.elapsed());
    let mut times: Vec<Duration> = (0..500)
        .map(|n| {
            let start = Instant::now();
            catalog.kill(kill(KILLED_RUNS + n), &[1, 2, 3]).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("kill: median {:?}, 99th {:?}", times[250], times[495]);

    let snapshot = catalog.snapshot();
    let agent = AgentName::parse("bot").unwrap();
    let runs = ["free", "parent"].map(|id| RunId::parse(id).unwrap());
    let subject = Subject {
        agent: &agent,
        runs: &runs,
        keys: &Vec::new,
        carried: &|_| Vec::new(),
        paths: &["/v1/chat/completions"],
    };
    const LOOKS: u32 = 1_000_000;
    let start = Instant::now();
    let found = (0..LOOKS).filter(|_| std::hint::black_box(&snapshot).kills.find(&subject, Timestamp(5)).is_some());
    assert_eq!(found.count(), 0);
    println!("find: {:?}", start.elapsed() / LOOKS);
}
