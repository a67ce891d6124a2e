//! The kill switch of an agent: a score over all of its runs, and a deactivation that a person takes back.

use serde_json::json;
use sprag_core::event::EventKind;
use sprag_core::id::AgentName;
use sprag_core::loops::{Mode, Preset, Rules};
use sprag_core::policy::KillSwitchChange;

use crate::agent::{Agent, Model, Talk};
use crate::stage::Stage;

const SAME: &str = "Check the order number 12345 once more and tell me its state";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_deactivates_an_agent_whose_switch_is_off() {
    for preset in [Preset::Strict, Preset::Agentgazer] {
        let stage = Stage::start_with(|settings| {
            settings.policies.change_rules(|rules| {
                let score = Rules::preset(preset).score;
                rules.every_common().into_iter().for_each(|common| common.mode = Mode::Off);
                rules.score = score;
            });
        })
        .await;
        for number in 0..25 {
            let agent = Agent::new(&stage, Talk::Chat, SAME).with_header("x-sprag-agent", "calm");
            let said = agent.sends(&Model::Text("The order is on its way to you and will arrive soon.")).await.0;
            assert!(!said.headers.contains_key("x-sprag-blocked"), "{preset:?} {number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_looping_agent_is_deactivated_and_answers_in_good_order() {
    for talk in Talk::ALL {
        for is_stream in [false, true] {
            let stage = Stage::start().await;
            let app = &stage.sprag.app;
            let name = AgentName::parse("looper").unwrap();
            let on = KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() };
            app.set_kill_switch(name.clone(), on, "test".to_owned()).await.unwrap();
            // Every request begins afresh: no run is long, only the agent as a whole repeats itself.
            let ask = async || {
                let mut agent = Agent::new(&stage, talk, SAME).with_header("x-sprag-agent", "looper");
                agent.is_stream = is_stream;
                agent.sends(&Model::Text("The order is on its way to you and will arrive soon.")).await.0
            };
            let mut requests = 0;
            while app.catalog.snapshot().agent(&name).is_none_or(|agent| agent.active) {
                assert_eq!(ask().await.status, 200);
                requests += 1;
                assert!(requests < 15, "{talk:?}");
            }
            assert!(requests >= 4, "{requests}");
            let inactive = ask().await;
            assert_eq!(inactive.status, 200, "{talk:?}");
            assert_eq!(inactive.headers["x-sprag-blocked"], "agent_inactive");
            let text = String::from_utf8_lossy(&inactive.bytes);
            assert!(text.contains("sprag-policy") && text.contains("Kill Switch"), "{talk:?}: {text}");
            stage.reached(requests - 1).await;

            let standing = app.catalog.snapshot().agent(&name).unwrap().clone();
            assert_eq!(serde_json::to_value(standing.deactivated_by).unwrap(), json!("kill_switch"));
            let events = stage.sprag.events();
            let tripped = events.iter().find(|event| event.kind == EventKind::KillSwitch).unwrap();
            let proof = tripped.act.as_ref().unwrap().proof.as_ref().unwrap();
            assert!(proof["value"].as_f64().unwrap() > 10.0, "{proof}");

            app.activate(name.clone(), "test".to_owned()).await.unwrap();
            assert_eq!(app.catalog.snapshot().agent(&name).unwrap().deactivated_by, None);
            for _ in 0..3 {
                let said = ask().await;
                assert!(!said.headers.contains_key("x-sprag-blocked"), "the window is empty again");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_forgotten_before_the_agent_is_active() {
    let stage = Stage::start().await;
    let app = &stage.sprag.app;
    let name = AgentName::parse("looper").unwrap();
    let on = KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() };
    app.set_kill_switch(name.clone(), on, "test".to_owned()).await.unwrap();
    let ask = async || {
        let agent = Agent::new(&stage, Talk::Chat, SAME).with_header("x-sprag-agent", "looper");
        agent.sends(&Model::Text("The order is on its way to you and will arrive soon.")).await.0
    };
    while app.catalog.snapshot().agent(&name).is_none_or(|agent| agent.active) {
        assert_eq!(ask().await.status, 200);
    }
    // The disk refuses, so that what comes before the writing shows by itself.
    let catalog = rusqlite::Connection::open(stage.sprag.data.path().join("catalog.db")).unwrap();
    let no = "CREATE TRIGGER no BEFORE INSERT ON agents BEGIN SELECT RAISE(ABORT, 'no room'); END";
    catalog.execute_batch(no).unwrap();
    assert!(app.activate(name.clone(), "test".to_owned()).await.is_err());
    assert!(!app.catalog.snapshot().agent(&name).unwrap().active);
    catalog.execute_batch("DROP TRIGGER no").unwrap();
    app.catalog.set_agent(&name, |standing| standing.activated(app.clock.now())).unwrap();
    for _ in 0..3 {
        assert!(!ask().await.headers.contains_key("x-sprag-blocked"), "its first call meets an empty window");
    }
}
