//! Agents that are stuck, in every dialect.

use serde_json::{Value, json};
use sprag_core::event::{Ending, EventKind};
use sprag_core::loops::Detector;

use crate::agent::{Agent, Model, Talk};
use crate::stage::{Said, Stage};

/// Repeats within which a stuck agent must be stopped.
const REPEATS: usize = 6;

/// Works until it is stopped; gives the stop and the steps that were paid for.
async fn until_stopped(
    agent: &mut Agent<'_>,
    mut step: impl FnMut(usize) -> (Value, String),
    most: usize,
) -> (Said, usize) {
    for number in 0..most {
        let (arguments, result) = step(number);
        let said = agent.calls("search_weather", arguments, &result).await;
        if said.status != 200 {
            return (said, number);
        }
    }
    panic!("not stopped after {most} steps");
}

fn error_of(talk: Talk, stop: &Said) -> Value {
    let body = stop.json();
    if talk == Talk::Anthropic {
        assert_eq!(body["type"], "error");
    }
    assert_eq!(body["block_reason"], "loop_detected");
    body["error"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_with_the_same_error_is_stopped_with_its_proof() {
    for talk in Talk::ALL {
        for is_stream in [false, true] {
            let stage = Stage::start().await;
            let mut agent = Agent::new(&stage, talk, "How is the weather in Paris?");
            agent.is_stream = is_stream;
            let step = |_| (json!({"city": "Paris"}), "error: service not found".to_owned());
            let (stop, paid) = until_stopped(&mut agent, step, 12).await;
            assert!(paid <= REPEATS, "{talk:?}: {paid} calls were paid for");
            assert_eq!(stop.status, 429, "{talk:?}");
            assert_eq!(stop.headers["x-sprag-blocked"], "loop_detected");
            assert_eq!(stop.headers["x-should-retry"], "false");
            let error = error_of(talk, &stop);
            let proof = &error["proof"];
            assert!(proof["steps"].as_array().unwrap().len() >= 3, "{error}");
            assert_eq!(proof["steps"][0]["tools"], json!(["search_weather"]));
            assert!(proof["value"].as_f64().unwrap() >= proof["threshold"].as_f64().unwrap(), "{error}");
            assert!(error["loop_type"].is_string() && error["confidence"].is_number(), "{error}");
            assert!(!error.to_string().contains("Paris"), "a proof holds no text of the run: {error}");
            stage.reached(paid).await;

            let later = agent.calls("something_else", json!({}), "fine").await;
            assert_eq!(later.status, 403, "{talk:?}");
            assert_eq!(later.json()["block_reason"], "run_killed");
            assert_eq!(later.json()["error"]["proof"], *proof, "the same proof everywhere");
            assert_eq!(later.run, stop.run);

            let mut events = stage.sprag.settled(paid + 2).await;
            events.retain(|event| event.kind == EventKind::LlmCall);
            let tripped = &events[paid];
            assert!(tripped.blocked);
            assert_eq!(tripped.block_reason.as_deref(), Some("loop_detected"));
            let verdict = tripped.verdict.as_ref().unwrap();
            assert_eq!(serde_json::to_value(&verdict.finding.proof).unwrap(), *proof, "{talk:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_steps_in_turns_are_a_cycle() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let mut agent = Agent::new(&stage, talk, "Fix the build.");
        let step = |number: usize| match number % 2 {
            0 => (json!({"do": "build"}), "failed: main.c:3: missing ;".to_owned()),
            _ => (json!({"do": "show main.c"}), "int main() { return 0 }".to_owned()),
        };
        let (stop, paid) = until_stopped(&mut agent, step, 30).await;
        assert!(paid <= 12, "{talk:?}: {paid}");
        assert_eq!(stop.json()["block_reason"], "loop_detected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_in_results_does_not_hide_a_loop() {
    let stage = Stage::start().await;
    let mut agent = Agent::new(&stage, Talk::Chat, "Run the tests.");
    let step = |number: usize| {
        let noise = format!(
            "Chunk ID: cb78{number:02}\nWall time: 0.0{number}13 seconds\n2026-11-15T10:00:{number:02}Z\nModuleNotFoundError: no module named yaml"
        );
        (json!({"cmd": "pytest"}), noise)
    };
    let (_, paid) = until_stopped(&mut agent, step, 20).await;
    assert!(paid <= 8, "{paid}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_without_a_call_are_a_loop() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let mut agent = Agent::new(&stage, talk, "Write the report and send it.");
        let mut paid = 0;
        let stop = loop {
            let said =
                agent.talks("I will now write the report and send it to you.", "Please go on with the task.").await;
            if said.status != 200 {
                break said;
            }
            paid += 1;
            assert!(paid < 15, "{talk:?}");
        };
        assert_eq!(stop.json()["block_reason"], "loop_detected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_prompt_twice_in_a_declared_run_is_stopped_at_the_second() {
    let stage = Stage::start().await;
    let ask = async || {
        let agent = Agent::new(&stage, Talk::Chat, "Summarise the quarterly report please").declared("task-123");
        agent.sends(&Model::Text("Here it is.")).await.0
    };
    assert_eq!(ask().await.status, 200);
    let stop = ask().await;
    assert_eq!(stop.status, 429);
    let error = &stop.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&json!("loop_detected"), &json!("sprag_loop")));
    assert_eq!((&error["loop_type"], &error["confidence"]), (&json!("exact_prompt"), &json!(1.0)));
    assert_eq!((&error["run_id"], &error["agent"]), (&json!("task-123"), &json!("default")));
    assert_eq!(ask().await.json()["block_reason"], "run_killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_chants_is_cut_off() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let agent = Agent::new(&stage, talk, "Think about it.").streaming();
        let chant = "I should check the file once more before I go on. ".repeat(400);
        let (said, answer) = agent.sends(&Model::Text(&chant)).await;
        let text = String::from_utf8_lossy(&said.bytes).into_owned();
        if talk == Talk::Gemini || talk == Talk::Responses {
            // The scripted answer comes in one event, which has passed when it is read.
            continue;
        }
        drop(answer);
        assert!(text.contains("loop_detected"), "{talk:?}: {}", &text[text.len().saturating_sub(600)..]);
        let event = &stage.sprag.settled(1).await[0];
        assert_eq!((event.ending, event.blocked), (Ending::CutOff, false), "it was made, and counts as a step");
        assert_eq!(event.verdict.as_ref().unwrap().finding.detector, Detector::Chant);
    }
}
