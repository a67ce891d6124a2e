//! How long a large catalog takes. Run by hand, with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use sprag_testkit::RedisServer;

use crate::node::{Node, key};

const ROWS: u32 = 20_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures, and takes a minute"]
async fn a_new_node_gets_a_large_catalog() {
    let Some(redis) = RedisServer::start() else { return };
    let mut a = Node::alone();
    for number in 0..ROWS {
        let mut entry = key(1);
        entry.key.id = format!("key-{number:08}");
        entry.hash[..4].copy_from_slice(&number.to_be_bytes());
        a.catalog.add_key(entry).unwrap();
    }
    let patience = Duration::from_secs(300);
    let begun = Instant::now();
    a.link(&redis.url());
    assert!(a.link.as_ref().unwrap().first_exchange(patience).await);
    println!("{ROWS} keys went out in {:?}", begun.elapsed());
    let bytes = redis.ask(&["MEMORY", "USAGE", "sprag:1:{catalog}:key", "SAMPLES", "0"]).number();
    println!("{} bytes of Redis for each", bytes / i64::from(ROWS));
    let begun = Instant::now();
    let fresh = Node::start(&redis.url());
    assert!(fresh.link.as_ref().unwrap().first_exchange(patience).await);
    println!("a new node had them after {:?}", begun.elapsed());
    assert_eq!(fresh.catalog.snapshot().keys().count(), ROWS as usize);
    let begun = Instant::now();
    a.kill("agent:bot");
    fresh.sees("the kill", |fresh| fresh.is_killed("agent:bot")).await;
    println!("a kill reached it after {:?}", begun.elapsed());
}
