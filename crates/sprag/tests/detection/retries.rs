//! Retries are not loops: what failed, was never answered or is asked several times at once may be asked again.

use serde_json::json;
use tokio::sync::watch;

use crate::agent::{Agent, Model, Talk};
use crate::stage::{Play, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_failed_may_be_sent_again_and_again() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let agent = Agent::new(&stage, talk, "Summarise the quarterly report please").declared("r1");
        for attempt in 0..8 {
            let said = agent.sends_for(Play::failure(500)).await;
            assert_eq!(said.status, 500, "{talk:?} {attempt}: the provider's own answer");
        }
        assert_eq!(agent.sends(&Model::Text("Done.")).await.0.status, 200, "{talk:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_broke_off_may_be_asked_for_again() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let agent = Agent::new(&stage, talk, "Summarise the quarterly report please").declared("r1").streaming();
        for attempt in 0..8 {
            let said = agent.sends_for(Play::sse("data: {}\n\n")).await;
            assert_eq!(said.status, 200, "{talk:?} {attempt}: {}", String::from_utf8_lossy(&said.bytes));
        }
        assert_eq!(agent.sends(&Model::Text("Done.")).await.0.status, 200, "{talk:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_prompt_may_be_sampled_many_times_at_once() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let (gate, _) = watch::channel(false);
        let mut agent = Agent::new(&stage, talk, "Give me an idea for a name").declared("r1");
        agent.calls("look", json!({"where": "list"}), "empty").await;
        let held = |_| {
            let headers = [("authorization", "Bearer k1"), ("x-sprag-run-id", "r1")];
            stage.call(agent.path(), &headers, &agent.body(), Play::failure(200).held(&gate))
        };
        let calls: Vec<_> = (0..8).map(held).map(|call| tokio::spawn(call.fetch())).collect();
        stage.reached(9).await;
        gate.send_replace(true);
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().status.as_u16(), 200, "{talk:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_upstream_is_no_step() {
    let stage = Stage::start().await;
    let mut agent = Agent::new(&stage, Talk::Anthropic, "Read the file.");
    for step in 0..6 {
        for _ in 0..3 {
            assert_eq!(agent.sends_for(Play::failure(529)).await.status, 529);
        }
        let path = json!({"path": format!("f{step}")});
        assert_eq!(agent.calls("read", path, &format!("content {step}")).await.status, 200);
    }
}
