//! How long kills and keys take. Run with `cargo test --release -p sprag-store --test catalog speed -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{KILLED_RUNS, VIRTUAL_KEYS};
use sprag_core::policy::{Budget, Kill, KillKind, Subject, VirtualKey};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, KeyEntry, SecretHash};
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

#[test]
#[ignore = "measures"]
fn as_many_keys_as_there_may_be() {
    let entry = |n: usize| {
        let key = VirtualKey {
            id: format!("key-{n:08}"),
            agent: AgentName::parse("bot").unwrap(),
            name: "night shift".into(),
            hint: "wxyz".into(),
            created_at: Timestamp(1),
            expires_at: None,
            revoked_at: None,
            previous: None,
            budget: Budget::default(),
        };
        KeyEntry { key, hash: entry_hash(n), previous_hash: None }
    };
    let dir = tempfile::tempdir().unwrap();
    let open = || Catalog::open(Arc::new(DataDir::open(dir.path()).unwrap()), Bounds::default(), Timestamp(0), |_| {});
    drop(open().unwrap());
    let connection = rusqlite::Connection::open(dir.path().join("catalog.db")).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    let filled = VIRTUAL_KEYS - 100;
    for n in 0..filled {
        let KeyEntry { key, hash, .. } = entry(n);
        let row = rusqlite::params![key.id, hash.as_slice(), serde_json::to_string(&key).unwrap()];
        connection.execute("INSERT INTO keys (id, secret_hash, record) VALUES (?1, ?2, ?3)", row).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    drop(connection);

    let start = Instant::now();
    let catalog = open().unwrap();
    println!("open with {filled} keys: {:?}", start.elapsed());
    let mut times: Vec<Duration> = (filled..VIRTUAL_KEYS)
        .map(|n| {
            let start = Instant::now();
            catalog.add_key(entry(n)).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("add a key: median {:?}, 99th {:?}", times[50], times[98]);
    assert!(catalog.add_key(entry(VIRTUAL_KEYS)).is_err(), "one too many");

    let snapshot = catalog.snapshot();
    const LOOKS: usize = 1_000_000;
    let start = Instant::now();
    let found = (0..LOOKS).filter(|n| snapshot.key_of_secret(&entry_hash(n % VIRTUAL_KEYS)).is_some()).count();
    assert_eq!(found, LOOKS);
    println!("find a key: {:?}", start.elapsed() / LOOKS as u32);
}

/// The hash of the secret of a key, by its number.
fn entry_hash(n: usize) -> SecretHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    hash
}
