//! The way to a Redis that is not there.

use std::time::{Duration, Instant};

use sprag_store::shared::{Address, Away, Options, Phase, Shared};
use sprag_testkit::RedisServer;

use super::*;

async fn ping(shared: &Shared) -> Result<(), Away> {
    let (call, agent) = (call_id(), key("r").agent);
    let begun = shared.begin(&outside(&call, &agent, &NOTHING)).await?;
    shared.end(&begun.call, &ending(contract::refused(at(0)), &NOTHING)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_costs_nothing_and_comes_back() {
    let Some(mut server) = RedisServer::start() else { return };
    let options = Options { timeout_ms: 5_000, ..Options::default() };
    let shared = Shared::connect(&Address::parse(&server.url()).unwrap(), options);
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
    ping(&shared).await.unwrap();
    server.kill();
    while shared.is_connected() {
        ping(&shared).await.unwrap_err();
    }
    let started = Instant::now();
    for _ in 0..1000 {
        assert_eq!(ping(&shared).await, Err(Away::Open));
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let status = shared.status();
    assert!(status.not_sent >= 1000 && status.phase == Phase::Away, "{status:?}");
    server.restart();
    assert_eq!(shared.changed(Phase::Away).await, Phase::Connected);
    ping(&shared).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_without_a_redis() {
    let Some(mut server) = RedisServer::start() else { return };
    let url = server.url();
    server.kill();
    let shared = Shared::connect(&Address::parse(&url).unwrap(), Options::default());
    assert_eq!(ping(&shared).await, Err(Away::Connecting));
    assert_eq!(shared.status().phase, Phase::Connecting);
    server.restart();
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_wanted_and_never_shown() {
    let Some(server) = RedisServer::start_with(&["--user", "me", "on", ">s3cret", "~*", "&*", "+@all"]) else { return };
    let url = server.url().replace("redis://", "redis://me:s3cret@");
    let shared = Shared::connect(&Address::parse(&url).unwrap(), Options { timeout_ms: 5_000, ..Options::default() });
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
    ping(&shared).await.unwrap();
    let wrong = server.url().replace("redis://", "redis://me:wr0ng@");
    let wrong = Shared::connect(&Address::parse(&wrong).unwrap(), Options::default());
    while wrong.status().last_error.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for status in [wrong.status(), shared.status()] {
        let shown = format!("{status:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("wr0ng"), "{shown}");
    }
}
