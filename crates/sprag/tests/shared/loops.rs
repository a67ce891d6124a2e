//! A loop that is spread over nodes is caught at the same step as on one.

use serde_json::{Value, json};
use sprag_testkit::RedisServer;

use crate::agent::{Agent, Talk};
use crate::nodes::{share, wait_until};
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
    let scripts = || redis.calls_of("evalsha") + redis.calls_of("eval") + redis.calls_of("fcall");
    let before = scripts();
    const CALLS: u64 = 9;
    for number in 0..CALLS {
        agent.moves_to(&three[number as usize % 3]);
        let said = agent.calls("read", json!({"path": format!("file-{number}")}), &format!("content {number}")).await;
        assert_eq!(said.status, 200);
    }
    assert_eq!(scripts() - before, 2 * CALLS);
}
