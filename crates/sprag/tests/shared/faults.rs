//! Redis is killed, frozen, slow: clients get answers, or a clear refusal where a control is closed, and afterwards the
//! sums agree.

use std::time::{Duration, Instant};

use sprag::config::file::StateLoss;
use sprag_core::policy::Reserve;
use sprag_testkit::client;
use sprag_testkit::{Cable, RedisServer};

use crate::nodes::{Nodes, daily, text};

async fn ready(nodes: &Nodes, number: usize) -> serde_json::Value {
    let url = format!("http://{}/readyz", nodes.sprags[number].admin);
    let answer = client::get(url).fetch().await.unwrap();
    assert_eq!(answer.status, 200);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_calls_go_on_and_their_sums_agree_when_it_is_back() {
    let Some(mut redis) = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let nodes = Nodes::start(3, &redis.url(), |_| {}).await;
    for number in 0..6 {
        assert_eq!(nodes.call(number, "task", 1).fetch().await.unwrap().status, 200);
    }
    assert_eq!(ready(&nodes, 0).await["shared_state"]["connected"], true);
    redis.kill();
    for number in 0..9 {
        let answer = nodes.call(number, "task", 1).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
    }
    nodes.lost().await;
    assert_eq!(ready(&nodes, 0).await["shared_state"]["connected"], false);
    redis.restart();
    nodes.connected().await;
    nodes.quiet().await;
    // Fifteen calls of a cent, wherever it is asked.
    for number in 0..3 {
        assert_eq!(nodes.told_cost(number, "task").await, "0.15", "node {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_in_force_is_closed_without_redis_unless_told_otherwise() {
    let Some(mut redis) = RedisServer::start() else { return };
    let closed = Nodes::start(1, &redis.url(), |settings| daily(settings, 100, Reserve::WorstCase)).await;
    let open = Nodes::start(1, &redis.url(), |settings| {
        daily(settings, 100, Reserve::WorstCase);
        settings.state.on_loss.budgets = StateLoss::Open;
    })
    .await;
    for nodes in [&closed, &open] {
        assert_eq!(nodes.call(0, "task", 10).fetch().await.unwrap().status, 200);
    }
    redis.kill();
    let refused = closed.call(0, "task", 10).fetch().await.unwrap();
    assert_eq!(refused.status, 503, "{}", text(&refused));
    let error = &refused.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&"state_unavailable".into(), &"sprag_state_unavailable".into()));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Redis") && message.contains("state.on_state_loss.budgets"), "{message}");
    assert_ne!(refused.header("retry-after"), "");
    let event = closed.sprags[0].events().pop().unwrap();
    assert_eq!((event.status, event.error.as_deref()), (503, Some("state_unavailable")));
    // The other goes on by what it knows.
    assert_eq!(open.call(0, "task", 10).fetch().await.unwrap().status, 200);
    assert_eq!(open.call(0, "task", 90).fetch().await.unwrap().status, 402);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_holds_nobody_up_for_long() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(2, &redis.url(), |settings| settings.state.timeout = Duration::from_millis(250)).await;
    assert_eq!(nodes.call(0, "task", 1).fetch().await.unwrap().status, 200);
    redis.freeze();
    let begun = Instant::now();
    for number in 0..10 {
        assert_eq!(nodes.call(number, "task", 1).fetch().await.unwrap().status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    redis.thaw();
    nodes.connected().await;
    nodes.quiet().await;
    for number in 0..2 {
        assert_eq!(nodes.told_cost(number, "task").await, "0.11", "node {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_redis_makes_calls_slow_and_nothing_else() {
    let Some(redis) = RedisServer::start() else { return };
    let cable = Cable::to(redis.address()).await.unwrap();
    let nodes = Nodes::start(2, &cable.redis_url(), |settings| daily(settings, 100, Reserve::WorstCase)).await;
    assert_eq!(nodes.call(0, "task", 1).fetch().await.unwrap().status, 200);
    assert_eq!(nodes.call(1, "task", 1).fetch().await.unwrap().status, 200);
    cable.slow(Duration::from_millis(100));
    for number in 0..4 {
        let answer = nodes.call(number, "task", 1).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
    }
    cable.mend();
    for number in 0..2 {
        assert_eq!(nodes.told_cost(number, "task").await, "0.06", "node {number}");
    }
}
