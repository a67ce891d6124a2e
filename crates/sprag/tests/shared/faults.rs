//! Redis is killed, frozen, slow: clients get answers, or a clear refusal where a control is closed, and afterwards the
//! sums agree.

use std::time::{Duration, Instant};

use serde_json::json;
use sprag::acts::KillOrder;
use sprag::config::Settings;
use sprag::config::file::{OnStateLoss, StateLoss};
use sprag_core::loops::Mode;
use sprag_core::policy::{KillKind, RateMeasure, RateRule, Reserve, RunLimits};
use sprag_testkit::client;
use sprag_testkit::{Cable, RedisServer};

use crate::agent::{Agent, Talk};
use crate::nodes::{Nodes, daily, is_connected, share, stopped, text, wait_until};
use crate::stage::Stage;

/// A dollar a day, also without Redis.
fn open_budget(settings: &mut Settings) {
    daily(settings, 100, Reserve::WorstCase);
    settings.state.on_loss.budgets = StateLoss::Open;
}

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
    let open = Nodes::start(1, &redis.url(), open_budget).await;
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
async fn an_open_budget_that_nodes_drew_on_without_redis_is_one_sum_when_it_is_back() {
    let Some(mut redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(2, &redis.url(), open_budget).await;
    redis.kill();
    // Redis has never heard of the account.
    assert_eq!(nodes.call(0, "task", 30).fetch().await.unwrap().status, 200);
    assert_eq!(nodes.call(1, "task", 40).fetch().await.unwrap().status, 200);
    nodes.lost().await;
    redis.restart();
    nodes.connected().await;
    nodes.quiet().await;
    for number in 0..2 {
        assert_eq!(stopped(&nodes.call(number, "task", 31).fetch().await.unwrap()), "budget_exceeded", "node {number}");
    }
    assert_eq!(nodes.call(0, "task", 30).fetch().await.unwrap().status, 200, "and no more than was spent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_began_without_redis_and_ends_with_it_is_told_when_it_ends() {
    let Some(mut redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(2, &redis.url(), open_budget).await;
    redis.kill();
    assert_eq!(nodes.call(0, "task", 30).fetch().await.unwrap().status, 200);
    let held = tokio::spawn(nodes.call(0, "task", 40).header("x-mock-hold", "").fetch());
    wait_until("the provider has both calls", || nodes.forwarded() == 2).await;
    assert_eq!(nodes.call(1, "task", 1).fetch().await.unwrap().status, 200, "so that both nodes notice");
    nodes.lost().await;
    redis.restart();
    nodes.connected().await;
    let link = nodes.sprags[0].app.link.as_ref().unwrap();
    wait_until("what had ended before is told", || link.untold_runs().0 == 0).await;
    nodes.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
    nodes.quiet().await;
    assert_eq!(stopped(&nodes.call(1, "task", 30).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(nodes.call(1, "task", 29).fetch().await.unwrap().status, 200, "and no more than was spent");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_control_that_is_closed_refuses_what_depends_on_it_after_kills() {
    let Some(mut redis) = RedisServer::start() else { return };
    let limited = |settings: &mut Settings| {
        let measure = RateMeasure::Requests { limit: 1000, window_ms: 60_000 };
        let rule = RateRule { name: "calls".into(), mode: Mode::Enforce, limit_keys: vec![], measure, id: 5 };
        settings.policies.defaults.rate_limits = vec![rule].into();
        settings.policies.defaults.run_limits = RunLimits::default();
    };
    let (shut, usual) = (StateLoss::Closed, OnStateLoss::default());
    let closed = [
        ("rate_limits", OnStateLoss { rate_limits: shut, ..usual }),
        ("run_limits", OnStateLoss { run_limits: shut, ..usual }),
        ("kills", OnStateLoss { kills: shut, ..usual }),
    ];
    let mut all = Vec::new();
    for (control, on_loss) in closed {
        let nodes = Nodes::start(1, &redis.url(), |settings| {
            limited(settings);
            settings.state.on_loss = on_loss;
        })
        .await;
        assert_eq!(nodes.call(0, "task", 1).fetch().await.unwrap().status, 200);
        all.push((control, nodes));
    }
    let open = Nodes::start(1, &redis.url(), limited).await;
    redis.kill();
    for (control, nodes) in &all {
        let refused = nodes.call(0, "task", 1).fetch().await.unwrap();
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["control"]), (503, &json!(control)));
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains(&format!("on_state_loss.{control}")));
        assert_eq!(nodes.forwarded(), 1);
    }
    assert_eq!(open.call(0, "task", 1).fetch().await.unwrap().status, 200);
    // A kill that the node knows comes first.
    let order = KillOrder {
        kind: KillKind::Kill,
        scope: "run:default/task".parse().unwrap(),
        reason: "manual".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    };
    let (_, nodes) = &all[0];
    nodes.sprags[0].app.kill(order).await.unwrap();
    assert_eq!(stopped(&nodes.call(0, "task", 1).fetch().await.unwrap()), "run_killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_detection_refuses_calls_whose_loops_would_be_stopped() {
    let Some(mut redis) = RedisServer::start() else { return };
    let detecting = |settings: &mut Settings, mode: Mode, on_loss: StateLoss| {
        settings.policies.change_rules(|rules| {
            rules.every_common().into_iter().for_each(|common| common.mode = mode);
        });
        settings.state.on_loss.detection = on_loss;
    };
    let mut all = Vec::new();
    for (mode, on_loss, status) in [
        (Mode::Enforce, StateLoss::Closed, 503),
        (Mode::Enforce, StateLoss::Open, 200),
        (Mode::Shadow, StateLoss::Closed, 200),
        (Mode::Off, StateLoss::Closed, 200),
    ] {
        let nodes = Nodes::start(1, &redis.url(), |settings| detecting(settings, mode, on_loss)).await;
        assert_eq!(nodes.call(0, "task", 1).fetch().await.unwrap().status, 200, "{mode:?} {on_loss:?}, with Redis");
        all.push((mode, on_loss, status, nodes));
    }
    redis.kill();
    for (mode, on_loss, status, nodes) in &all {
        let answer = nodes.call(0, "task", 1).fetch().await.unwrap();
        assert_eq!(answer.status, *status, "{mode:?} {on_loss:?}: {}", text(&answer));
        assert_eq!(nodes.forwarded(), if *status == 200 { 2 } else { 1 }, "{mode:?} {on_loss:?}");
        if *status == 503 {
            let error = &answer.json()["error"];
            assert_eq!((&error["code"], &error["control"]), (&json!("sprag_state_unavailable"), &json!("detection")));
            assert!(error["message"].as_str().unwrap().contains("on_state_loss.detection"), "{error}");
        }
    }
    redis.restart();
    let (.., closed) = &all[0];
    closed.connected().await;
    assert_eq!(closed.call(0, "task", 1).fetch().await.unwrap().status, 200, "with Redis loops are looked for again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_in_its_run_when_redis_is_back() {
    let Some(mut redis) = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let stage = Stage::start_with(|settings| share(settings, &redis.url())).await;
    wait_until("a node has its Redis", || is_connected(&stage.sprag)).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "Read the files.");
    let mut runs = Vec::new();
    for number in 0..9_u32 {
        match number {
            3 => redis.kill(),
            6 => {
                redis.restart();
                wait_until("Redis is back", || is_connected(&stage.sprag)).await;
                let link = stage.sprag.app.link.as_ref().unwrap();
                wait_until("Redis was told", || link.untold_runs().0 == 0 && link.status().untold == 0).await;
            }
            _ => {}
        }
        let said = agent.calls("read", json!({"path": format!("file-{number}")}), &format!("content {number}")).await;
        assert_eq!((said.status, said.step), (200, number + 1));
        runs.push(said.run);
    }
    runs.dedup();
    assert_eq!(runs.len(), 1, "{runs:?}");
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
        assert_eq!(answer.header("x-sprag-run-cost-usd"), format!("0.0{}", number + 3));
    }
    cable.mend();
    for number in 0..2 {
        assert_eq!(nodes.told_cost(number, "task").await, "0.06", "node {number}");
    }
}
