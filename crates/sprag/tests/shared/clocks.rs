//! Nodes whose own clocks are hours apart, and a Redis whose clock counts: what is measured of runs, rates and loops is the same
//! on all of them, and no clock makes a budget larger or a kill void.

use serde_json::json;
use sprag::acts::KillOrder;
use sprag::clock::Clock;
use sprag::config::Settings;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::Mode;
use sprag_core::policy::{KillKind, RateMeasure, RateRule, Reserve, RunLimits};
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_testkit::RedisServer;

use crate::agent::{Agent, Talk};
use crate::nodes::{Nodes, daily, is_connected, share, stopped, text, wait_until};
use crate::stage::Stage;

const HOUR_MS: i64 = 3_600_000;
const NAMES: [&str; 3] = ["right", "ahead", "behind"];

/// One that is right, one that is ahead and one that is behind, each by so many hours.
fn clocks(hours: i64) -> Vec<Clock> {
    let wrong = |hours: i64| Clock::Wrong { ahead_ms: hours * HOUR_MS };
    vec![Clock::Real, wrong(hours), wrong(-hours)]
}

fn timed(settings: &mut Settings, timeout_seconds: u32) {
    settings.policies.defaults.run_limits = RunLimits { timeout_seconds, max_steps: 0, ..RunLimits::default() };
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_as_old_on_every_node() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start_by(clocks(3), &redis.url(), |settings| timed(settings, 600)).await;
    for (first, name) in NAMES.into_iter().enumerate() {
        for other in 0..3 {
            let call = nodes.call(first + other, &format!("begun-{name}"), 1).fetch().await.unwrap();
            assert_eq!(call.status, 200, "begun {name}, then {}: {}", NAMES[(first + other) % 3], text(&call));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_had_its_time_is_over_on_every_node() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start_by(clocks(3), &redis.url(), |settings| timed(settings, 1)).await;
    for (number, name) in NAMES.into_iter().enumerate() {
        let run = format!("late-{name}");
        let begun = std::time::Instant::now();
        assert_eq!(nodes.call(0, &run, 1).fetch().await.unwrap().status, 200);
        loop {
            let answer = nodes.call(number, &run, 1).fetch().await.unwrap();
            if answer.status != 200 {
                assert_eq!(stopped(&answer), "run_limit_exceeded", "{name}: {}", text(&answer));
                break;
            }
            assert!(begun.elapsed().as_secs() < 30, "a node whose clock is {name} never ends the run");
        }
        assert!(begun.elapsed().as_secs() >= 1, "{name}: it had its second");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_lets_as_many_pass_whichever_clock_is_asked() {
    let Some(redis) = RedisServer::start() else { return };
    for measure in
        [RateMeasure::Requests { limit: 6, window_ms: 3_600_000 }, RateMeasure::Bucket { rps: 0.001, burst: 6.0 }]
    {
        redis.flush();
        let rule = RateRule { name: "calls".into(), mode: Mode::Enforce, limit_keys: vec![], measure, id: 5 };
        let nodes = Nodes::start_by(clocks(3), &redis.url(), |settings| {
            settings.policies.defaults.rate_limits = vec![rule.clone()].into();
        })
        .await;
        for number in 0..6 {
            let answer = nodes.call(number, "task", 1).fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{number}: {}", text(&answer));
        }
        for (number, name) in NAMES.into_iter().enumerate() {
            assert_eq!(stopped(&nodes.call(number, "task", 1).fetch().await.unwrap()), "rate_limited", "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_within_seconds_is_seen_over_clocks_that_are_hours_apart() {
    let Some(redis) = RedisServer::start() else { return };
    let mut stopped_at = Vec::new();
    let ahead = || Clock::Wrong { ahead_ms: 3 * HOUR_MS };
    // In one of both orders the step that is one too many comes to the node for which others seem to be long ago.
    for clocks in [[Clock::Real, Clock::Real], [Clock::Real, ahead()], [ahead(), Clock::Real]] {
        redis.flush();
        let mut stages = Vec::new();
        for clock in clocks {
            let change = |settings: &mut Settings| {
                share(settings, &redis.url());
                // Steps that are longer ago count for nothing.
                settings.policies.change_rules(|rules| rules.progress.common.window.seconds = 600);
            };
            let stage = Stage::start_at(clock, change).await;
            wait_until("a node has its Redis", || is_connected(&stage.sprag)).await;
            stages.push(stage);
        }
        let mut agent = Agent::new(&stages[0], Talk::Chat, "How is the weather in Paris?");
        let mut steps = 0;
        loop {
            agent.moves_to(&stages[steps % 2]);
            let said = agent.calls("search_weather", json!({"city": "Paris"}), "error: not found").await;
            if said.status != 200 {
                assert_eq!(said.json()["block_reason"], "loop_detected");
                break;
            }
            steps += 1;
            assert!(steps < 30, "no loop was found");
        }
        stopped_at.push(steps);
    }
    stopped_at.dedup();
    assert_eq!(stopped_at.len(), 1, "not at the same step: {stopped_at:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_clock_gives_a_day_twice() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start_by(clocks(24), &redis.url(), |settings| daily(settings, 100, Reserve::WorstCase)).await;
    let call = async |number, cents| nodes.call(number, "task", cents).fetch().await.unwrap();
    // By their own clocks it is tomorrow on one and yesterday on the other, and each has its day for itself.
    for (number, name) in NAMES.into_iter().enumerate() {
        assert_eq!(call(number, 30).await.status, 200, "{name}");
    }
    for (number, name) in NAMES.into_iter().enumerate() {
        assert_eq!(stopped(&call(number, 11).await), "budget_exceeded", "{name}");
    }
    assert_eq!(call(1, 10).await.status, 200, "and no less than that");
    for (number, name) in NAMES.into_iter().enumerate() {
        assert_eq!(stopped(&call(number, 1).await), "budget_exceeded", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_ends_at_its_time_on_every_node() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start_by(clocks(3), &redis.url(), |_| {}).await;
    let in_an_hour = Clock::Real.now().0 + HOUR_MS;
    for (name, expires_at, status) in [("over", in_an_hour - 2 * HOUR_MS, 200), ("holds", in_an_hour, 403)] {
        let order = KillOrder { expires_at: Some(Timestamp(expires_at)), ..kill_of(name) };
        nodes.sprags[0].app.kill(order).await.unwrap();
        wait_until("the kill is everywhere", || (0..3).all(|number| is_killed(&nodes, number, name))).await;
        for (number, node) in NAMES.into_iter().enumerate() {
            let answer = nodes.call(number, name, 1).fetch().await.unwrap();
            assert_eq!(answer.status, status, "{name}, {node}: {}", text(&answer));
        }
    }
}

fn kill_of(run: &str) -> KillOrder {
    KillOrder {
        kind: KillKind::Kill,
        scope: format!("run:default/{run}").parse().unwrap(),
        reason: "manual".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    }
}

/// Whether a node knows of a kill of a run, over or not.
fn is_killed(nodes: &Nodes, number: usize, run: &str) -> bool {
    let snapshot = nodes.sprags[number].app.catalog.snapshot();
    snapshot.kills.of_run(&AgentName::default(), &RunId::parse(run).unwrap()).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_and_resumes_hold_in_the_order_in_which_they_were_made() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start_by(clocks(3), &redis.url(), |settings| timed(settings, 600)).await;
    let run = RunKey { agent: AgentName::default(), id: RunId::parse("task").unwrap() };
    let (ahead, behind) = (1, 2);
    for (kills, resumes) in [(ahead, behind), (behind, ahead)] {
        assert_eq!(nodes.call(0, "task", 1).fetch().await.unwrap().status, 200);
        nodes.sprags[kills].app.kill(kill_of("task")).await.unwrap();
        let is_killed = |number| is_killed(&nodes, number, "task");
        wait_until("the kill is everywhere", || (0..3).all(is_killed)).await;
        for (number, name) in NAMES.into_iter().enumerate() {
            let answer = nodes.call(number, "task", 1).fetch().await.unwrap();
            assert_eq!(stopped(&answer), "run_killed", "{name}");
        }
        nodes.sprags[resumes].app.resume(run.clone(), "anna".to_owned()).await.unwrap();
        wait_until("the resume is everywhere", || !(0..3).any(is_killed)).await;
        for (number, name) in NAMES.into_iter().enumerate() {
            let answer = nodes.call(number, "task", 1).fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{name}: {}", text(&answer));
        }
    }
}
