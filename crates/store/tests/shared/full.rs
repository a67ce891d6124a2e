//! A Redis that takes no writes: full, or no longer the one that is written to. Nothing is done halfway, and what it was
//! to be told it is told later.

use std::time::Duration;

use sprag_store::shared::{Address, Away, Options, Phase, Shared};
use sprag_testkit::RedisServer;

use super::doubt::{begin, until, until_all_is_told};
use super::*;

async fn connected(server: &RedisServer) -> Shared {
    let options = Options { timeout_ms: 20_000, ..Options::default() };
    let shared = Shared::connect(&Address::parse(&server.url()).unwrap(), options);
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
    shared
}

/// Redis's own clock counts here.
fn always(limit: i64) -> [Draw; 1] {
    let span = Span { start: Timestamp(1_000), end: Timestamp(4_000_000_000_000) };
    [Draw { span, ..everything(limit) }]
}

async fn stands(shared: &Shared, draw: &Draw) -> (i64, i64) {
    let account = shared.account(&draw.id).await.unwrap().unwrap();
    (account.settled.0, account.reserved.0)
}

fn fill(server: &RedisServer) {
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.ask(&["CONFIG", "SET", "maxmemory", "100000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_is_away_until_there_is_room() {
    let Some(server) = RedisServer::start() else { return };
    let shared = connected(&server).await;
    let draws = always(1_000);
    let open = begin(&shared, &draws).await.unwrap();
    let before: Vec<String> = dump(&server);
    fill(&server);
    let refused = begin(&shared, &draws).await.unwrap_err();
    assert!(matches!(&refused, Away::Failed(why) if why.contains("OOM")), "{refused}");
    assert!(!shared.is_connected(), "it is not asked again and again");
    shared.end(&open.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
    assert_eq!(dump(&server), before, "nothing was done halfway");
    // A trial finds it full; what is to be told waits.
    until(|| refused_writes(&server) > 1).await;
    assert_eq!((shared.is_connected(), shared.status().untold, shared.status().lost), (false, 2, 0));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until_all_is_told(&shared).await;
    assert_eq!(stands(&shared, &draws[0]).await, (3, 0));
    let run = shared.run(&key("r")).await.unwrap().unwrap();
    assert_eq!((run.totals.steps, run.in_flight), (1, 0), "the refused one counts nowhere");
}

/// The end of a call reaches a Redis that fills up in between: it is told again, not given up. So is the last
/// one of a node.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_finds_no_room_is_told_later() {
    let Some(server) = RedisServer::start() else { return };
    let shared = connected(&server).await;
    let draws = always(1_000);
    let (open, another) = (begin(&shared, &draws).await.unwrap(), begin(&shared, &draws).await.unwrap());
    fill(&server);
    let refused = shared.end(&open.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
    assert!(matches!(&refused, Away::Failed(why) if why.contains("OOM")), "{refused}");
    assert_eq!((shared.status().untold, shared.status().lost), (1, 0));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until_all_is_told(&shared).await;
    assert_eq!(stands(&shared, &draws[0]).await, (3, 10));
    fill(&server);
    shared.end(&another.call, &ending(cost(4, at(0)), &NOTHING)).await.unwrap_err();
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until_all_is_told(&shared).await;
    assert_eq!(stands(&shared, &draws[0]).await, (7, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_became_a_replica_is_not_the_one_to_ask() {
    let Some(server) = RedisServer::start() else { return };
    let shared = connected(&server).await;
    let draws = always(1_000);
    let first = begin(&shared, &draws).await.unwrap();
    shared.end(&first.call, &ending(cost(5, at(0)), &NOTHING)).await.unwrap();
    let open = begin(&shared, &draws).await.unwrap();
    // Nobody is there to copy from: it keeps what it has, and takes nothing.
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    let refused = begin(&shared, &draws).await.unwrap_err();
    assert!(matches!(&refused, Away::Failed(why) if why.to_lowercase().contains("read only")), "{refused}");
    assert!(!shared.is_connected());
    shared.end(&open.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
    until(|| shared.status().last_error.is_some_and(|why| why.to_lowercase().contains("read only"))).await;
    server.promote();
    until_all_is_told(&shared).await;
    assert_eq!(stands(&shared, &draws[0]).await, (8, 0));
    assert_eq!(shared.status().lost, 0);
}

/// A script that runs too long: Redis answers nothing else, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_busy_with_a_script_is_away_until_it_is_done() {
    let Some(server) = RedisServer::start_with(&["--lua-time-limit", "1"]) else { return };
    let shared = connected(&server).await;
    let draws = always(1_000);
    let open = begin(&shared, &draws).await.unwrap();
    let address = server.address();
    let endless = std::thread::spawn(move || {
        let url = format!("redis://{address}/");
        drop(redis_cli(&url));
    });
    while shared.is_connected() {
        match begin(&shared, &draws).await {
            Ok(begun) => drop(shared.end(&begun.call, &ending(cost(0, at(0)), &NOTHING)).await),
            Err(away) => assert!(away.to_string().contains("BUSY") || !shared.is_connected(), "{away}"),
        }
    }
    shared.end(&open.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
    server.ask(&["SCRIPT", "KILL"]);
    endless.join().unwrap();
    until_all_is_told(&shared).await;
    assert_eq!(stands(&shared, &draws[0]).await, (3, 0));
}

/// Asks for a script without an end, over a connection of its own.
fn redis_cli(url: &str) -> std::io::Result<()> {
    use std::io::{Read, Write};
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.write_all(b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n")?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.read_exact(&mut [0])
}

/// How often the trial of a new connection was refused.
fn refused_writes(server: &RedisServer) -> u64 {
    let info = server.info("commandstats");
    let line = info.lines().find(|line| line.starts_with("cmdstat_set:"));
    let rest = line.and_then(|line| line.split("rejected_calls=").nth(1));
    rest.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Everything that Redis has, as text, without times to live.
fn dump(server: &RedisServer) -> Vec<String> {
    let mut keys: Vec<String> = server.ask(&["KEYS", "*"]).list().iter().map(|key| key.text()).collect();
    keys.sort();
    keys.iter().map(|key| format!("{key} {:?}", server.ask(&["GET", key]))).collect()
}
