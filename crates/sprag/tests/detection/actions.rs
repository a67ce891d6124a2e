//! What follows from a loop: warn, nudge, throttle, reject, pause, and the ladder.

use serde_json::json;
use sprag::config::Settings;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{Action, Mode};

use crate::agent::{Agent, Talk};
use crate::stage::{Said, Stage};

async fn acting(ladder: &'static [Action]) -> Stage {
    Stage::start_with(move |settings: &mut Settings| {
        settings.policies.change_rules(|rules| rules.progress.common.ladder = ladder.to_vec());
    })
    .await
}

async fn stuck(agent: &mut Agent<'_>) -> Said {
    agent.calls("search_weather", json!({"city": "Paris"}), "error: not found").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_lets_the_call_pass_and_stands_in_its_metadata() {
    let stage = acting(&[Action::Warn]).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "weather");
    let mut warned = 0;
    for _ in 0..12 {
        let said = stuck(&mut agent).await;
        assert_eq!(said.status, 200);
        warned += usize::from(said.json()["sprag"]["warning"].as_str().is_some_and(|w| w.contains("loop")));
    }
    assert!(warned > 4, "{warned}");
    let events = stage.sprag.settled(12).await;
    assert!(events.iter().any(|event| event.verdict.as_ref().is_some_and(|v| v.action == Action::Warn)));
    assert!(events.iter().all(|event| !event.blocked));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nudge_tells_the_model_once_per_strike() {
    for talk in Talk::ALL {
        let stage = acting(&[Action::Nudge, Action::KillRun]).await;
        let mut agent = Agent::new(&stage, talk, "weather");
        let mut notes = 0;
        let stop = loop {
            let sent = agent.body().to_string();
            let said = stuck(&mut agent).await;
            if said.status != 200 {
                break said;
            }
            let received = stage.last_body().to_string();
            assert!(!sent.contains("[sprag]"));
            if received.contains("[sprag]") {
                notes += 1;
                assert!(received.contains("search_weather"), "it says what is repeated");
            }
        };
        assert_eq!(notes, 1, "{talk:?}");
        assert_eq!(stop.json()["block_reason"], "loop_detected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttle_waits_and_says_how_long() {
    let stage = acting(&[Action::Throttle]).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "weather");
    let delay = loop {
        let began = std::time::Instant::now();
        let said = stuck(&mut agent).await;
        assert_eq!(said.status, 200);
        if let Some(delay) = said.headers.get("x-sprag-loop-delay") {
            let delay: u64 = delay.to_str().unwrap().parse().unwrap();
            assert!(began.elapsed().as_millis() as u64 >= delay);
            break delay;
        }
    };
    assert!(delay >= 100 && delay % 100 == 0 && delay <= 30_000, "{delay}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_request_leaves_the_run_alive() {
    let stage = acting(&[Action::Reject]).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "weather");
    let stop = loop {
        let said = stuck(&mut agent).await;
        if said.status != 200 {
            break said;
        }
    };
    assert_eq!(stop.status, 429);
    assert!(stop.json()["retry_after_seconds"].as_u64().unwrap() > 0);
    assert!(stop.headers.contains_key("retry-after"));
    let again = stuck(&mut agent).await;
    assert_eq!(again.json()["block_reason"], "loop_detected", "the same request stays refused");
    agent.hears("Forget the weather. Tell me about the history of Rome instead.");
    assert_eq!(stuck(&mut agent).await.status, 200, "something new goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_goes_on_when_a_person_approves() {
    let stage = acting(&[Action::Pause]).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "weather").declared("p1");
    let stop = loop {
        let said = stuck(&mut agent).await;
        if said.status != 200 {
            break said;
        }
    };
    assert_eq!(stop.json()["block_reason"], "run_paused");
    assert!(stop.json()["error"]["proof"]["steps"].as_array().unwrap().len() >= 3);
    assert_eq!(stuck(&mut agent).await.json()["block_reason"], "run_paused");
    let key = sprag_store::RunKey { agent: AgentName::default(), id: RunId::parse("p1").unwrap() };
    assert!(stage.sprag.app.resume(key, "test".to_owned()).await.unwrap().is_some());
    for _ in 0..3 {
        assert_eq!(stuck(&mut agent).await.status, 200, "what lies before is no longer evidence");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_a_run_that_was_not_killed_takes_no_evidence_away() {
    let key = sprag_store::RunKey { agent: AgentName::default(), id: RunId::parse("p1").unwrap() };
    let mut counts = Vec::new();
    for is_resumed in [false, true] {
        let stage = acting(&[Action::Pause]).await;
        let mut agent = Agent::new(&stage, Talk::Chat, "weather").declared("p1");
        let mut passed = 0;
        while stuck(&mut agent).await.status == 200 {
            passed += 1;
            if is_resumed && passed == 2 {
                assert!(stage.sprag.app.resume(key.clone(), "test".to_owned()).await.unwrap().is_none());
            }
        }
        counts.push(passed);
    }
    assert!(counts[0] > 2 && counts[0] == counts[1], "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_requests_are_counted_when_asked_for() {
    let stage = Stage::start_with(|settings| {
        settings.policies.change_rules(|rules| {
            rules.repeat.common.mode = Mode::Enforce;
            rules.exact.common.mode = Mode::Off;
        });
    })
    .await;
    let ask = async |text: &str| {
        let agent = Agent::new(&stage, Talk::Chat, text);
        agent.sends(&crate::agent::Model::Text("hello there")).await.0
    };
    for _ in 0..3 {
        assert_eq!(ask("Say hello to all of them").await.status, 200);
        assert_eq!(ask("Say good-bye to all of them").await.status, 200);
    }
    let stop = ask("Say hello to all of them").await;
    assert_eq!((stop.status, &stop.json()["error"]["loop_type"]), (429, &json!("identical_request")));
    assert_eq!(stop.headers["retry-after"], "60");
}
