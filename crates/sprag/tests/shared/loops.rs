//! A loop that is spread over nodes is caught at the same step as on one.

use serde_json::{Value, json};
use sprag_core::id::AgentName;
use sprag_core::loops::Mode;
use sprag_testkit::RedisServer;

use crate::agent::{Agent, Talk};
use crate::nodes::{Nodes, share, wait_until};
use crate::sprag::Sprag;
use crate::stage::{Said, Stage};

async fn stages(redis: &RedisServer, count: usize) -> Vec<Stage> {
    let mut stages = Vec::new();
    for _ in 0..count {
        let stage = Stage::start_with(|settings| share(settings, &redis.url())).await;
        wait_until("a node has its Redis", || crate::nodes::is_connected(&stage.sprag)).await;
        stages.push(stage);
    }
    stages
}

/// Works, each step on the next node, until it is stopped; gives the stop and the steps that were paid for.
async fn until_stopped(
    stages: &[Stage],
    talk: Talk,
    run: Option<&str>,
    step: fn(usize) -> (Value, String),
) -> (Said, usize) {
    let mut agent = Agent::new(&stages[0], talk, "How is the weather in Paris?");
    if let Some(run) = run {
        agent = agent.declared(run);
    }
    let mut names = Vec::new();
    for number in 0..30 {
        agent.moves_to(&stages[number % stages.len()]);
        let (arguments, result) = step(number);
        let said = agent.calls("search_weather", arguments, &result).await;
        if said.status != 200 {
            names.push(said.run.clone());
            names.dedup();
            assert_eq!(names.len(), 1, "one run all along: {names:?}");
            assert_eq!(said.step as usize, number + 1);
            return (said, number);
        }
        names.push(said.run.clone());
    }
    panic!("not stopped: {names:?}");
}

fn same_error(_: usize) -> (Value, String) {
    (json!({"city": "Paris"}), "error: service not found".to_owned())
}

fn in_turns(number: usize) -> (Value, String) {
    match number % 2 {
        0 => (json!({"do": "build"}), "failed: main.c:3: missing ;".to_owned()),
        _ => (json!({"do": "show main.c"}), "int main() { return 0 }".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_over_three_nodes_is_caught_at_the_step_of_one() {
    let Some(redis) = RedisServer::start() else { return };
    for (loops, step) in [same_error, in_turns].into_iter().enumerate() {
        for is_named in [true, false] {
            for talk in [Talk::Chat, Talk::Anthropic] {
                // A run that was killed stays so on all nodes, and nodes put kills back into a flushed Redis.
                let name = format!("task-{loops}-{talk:?}");
                let run = is_named.then_some(name.as_str());
                redis.flush();
                let alone = [Stage::start().await];
                let (expected, paid_alone) = until_stopped(&alone, talk, run, step).await;
                let three = stages(&redis, 3).await;
                let (stop, paid) = until_stopped(&three, talk, run, step).await;
                assert_eq!((stop.status, paid), (expected.status, paid_alone), "{talk:?} {run:?}");
                assert_eq!(stop.json()["block_reason"], "loop_detected");
                assert_eq!(stop.json()["error"]["proof"], expected.json()["error"]["proof"], "{talk:?} {run:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_and_cost_of_a_run_are_one_sum_over_all_nodes() {
    let Some(redis) = RedisServer::start() else { return };
    let three = stages(&redis, 3).await;
    let mut agent = Agent::new(&three[0], Talk::Chat, "Read the files.");
    for number in 0..6_u32 {
        agent.moves_to(&three[number as usize % 3]);
        let said = agent.calls("read", json!({"path": format!("file-{number}")}), &format!("content {number}")).await;
        assert_eq!((said.status, said.step), (200, number + 1));
        let metadata = &said.json()["sprag"];
        let total = metadata["total_run_cost"].as_f64().unwrap();
        let one = metadata["cost_usd"].as_f64().unwrap();
        assert!((total - one * f64::from(number + 1)).abs() < 1e-9, "{metadata}");
        assert_eq!(metadata["total_run_steps"], number + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judgement_is_one_round_trip_and_a_settlement_another() {
    let Some(redis) = RedisServer::start() else { return };
    let three = stages(&redis, 3).await;
    let mut agent = Agent::new(&three[0], Talk::Chat, "Read the files.");
    // The first call loads scripts and opens what is not known yet.
    agent.calls("read", json!({"path": "first"}), "first").await;
    for stage in &three {
        agent.moves_to(stage);
        agent.calls("read", json!({"path": "first"}), "another").await;
    }
    let trips = || three.iter().map(|stage| trips_of(&stage.sprag)).sum::<u64>();
    let before = trips();
    const CALLS: u64 = 9;
    for number in 0..CALLS {
        agent.moves_to(&three[number as usize % 3]);
        let said = agent.calls("read", json!({"path": format!("file-{number}")}), &format!("content {number}")).await;
        assert_eq!(said.status, 200);
    }
    assert_eq!(trips() - before, 2 * CALLS);
}

/// How often a node has asked Redis about calls; it looks for news of other kinds by itself, now and then.
fn trips_of(sprag: &Sprag) -> u64 {
    sprag.app.link.as_ref().unwrap().status().calls
}

/// Two nodes whose detection watches agents, after a first call on each.
async fn two_that_watch_agents(redis: &RedisServer) -> Nodes {
    let nodes = Nodes::start(2, &redis.url(), |settings| {
        settings.policies.change_rules(|rules| rules.velocity.common.mode = Mode::Shadow);
    })
    .await;
    for number in 0..2 {
        assert_eq!(nodes.call(number, "first", 1).fetch().await.unwrap().status, 200);
    }
    nodes.quiet().await;
    nodes
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_nodes_saw_of_an_agent_at_once_is_merged() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = two_that_watch_agents(&redis).await;
    let held = tokio::spawn(nodes.call(0, "held", 1).header("x-mock-hold", "").fetch());
    wait_until("the first call is under way", || nodes.forwarded() == 3).await;
    assert_eq!(nodes.call(1, "meanwhile", 1).fetch().await.unwrap().status, 200);
    nodes.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
    nodes.quiet().await;
    let app = &nodes.sprags[0].app;
    let agent = AgentName::default();
    let (merged, _) = app.state.hand_out_agent_watch(&agent, app.clock.now(), 1);
    let kept = redis.ask(&["GET", &format!("sprag:2:{{a:{agent}}}:agent-watch")]).bytes();
    assert_eq!(kept[16..], merged[..], "what the late one merged is there for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_agent_does_not_write_over_itself_again_and_again() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = two_that_watch_agents(&redis).await;
    const AT_ONCE: usize = 10;
    const EACH: usize = 30;
    let trips = || nodes.sprags.iter().map(trips_of).sum::<u64>();
    let before = trips();
    let all = (0..AT_ONCE).map(|worker| {
        let calls: Vec<_> = (0..EACH).map(|n| nodes.call(worker + n, &format!("{worker}-{n}"), 1)).collect();
        tokio::spawn(async move {
            for call in calls {
                assert_eq!(call.fetch().await.unwrap().status, 200);
            }
        })
    });
    for worker in all.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    nodes.quiet().await;
    let (trips, calls) = (trips() - before, (AT_ONCE * EACH) as u64);
    // A few find nobody else at work and write once more. If each did, it would be three and more.
    assert!(trips >= 2 * calls && trips * 10 < 28 * calls, "{trips} round trips for {calls} calls");
}
