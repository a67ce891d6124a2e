//! Shadow mode: everything is judged, nothing changes.

use serde_json::json;
use sprag::config::Settings;
use sprag_core::loops::{Detector, Mode, Preset, Rules};

use crate::agent::{Agent, Talk};
use crate::stage::Stage;

fn observe(settings: &mut Settings) {
    settings.policies.change_rules(|rules| *rules = Rules::preset(Preset::Observe));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_in_shadow_goes_on_and_is_reported() {
    let stage = Stage::start_with(observe).await;
    let plain = Stage::start_with(|settings| {
        observe(settings);
        for detector in Detector::ALL {
            settings.policies.change_rules(|rules| rules.common_mut(detector).mode = Mode::Off);
        }
    })
    .await;
    let mut agents = [Agent::new(&stage, Talk::Chat, "weather"), Agent::new(&plain, Talk::Chat, "weather")];
    for step in 0..15 {
        let mut seen = Vec::new();
        for agent in &mut agents {
            let said = agent.calls("search_weather", json!({"city": "Paris"}), "error: not found").await;
            assert_eq!(said.status, 200, "step {step}");
            let mut names: Vec<String> = said.headers.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort();
            let keys: Vec<String> = said.json()["sprag"].as_object().unwrap().keys().cloned().collect();
            seen.push((names, keys));
        }
        assert_eq!(seen[0], seen[1], "neither headers nor metadata tell of the shadow");
    }
    let events = stage.sprag.settled(15).await;
    assert!(events.iter().all(|event| !event.blocked && event.verdict.is_none()));
    let first = events.iter().position(|event| event.shadow.is_some()).unwrap();
    let shadow = events[first].shadow.as_ref().unwrap();
    assert!(shadow.action.stops() && shadow.finding.mode == Mode::Shadow);
    let run = events[0].run.as_ref().unwrap();
    let key = sprag_store::RunKey { agent: events[0].agent.clone(), id: run.id.clone() };
    let would = stage.sprag.app.history.would_stop(&key).unwrap().unwrap();
    assert_eq!((would.step as usize, would.saved_steps as usize), (first + 1, 15 - first));
    let saved: i64 = events[first..].iter().map(|event| event.cost.unwrap().0).sum();
    assert_eq!(would.saved.0, saved);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_shadow_saw_is_nothing_to_the_enforced_rules() {
    let stage = Stage::start_with(observe).await;
    let mut agent = Agent::new(&stage, Talk::Chat, "weather");
    let mut step = async || agent.calls("search_weather", json!({"city": "Paris"}), "error: not found").await.status;
    for _ in 0..10 {
        assert_eq!(step().await, 200);
    }
    let mut settings = Settings::clone(&stage.sprag.app.settings.load());
    settings.policies.change_rules(|rules| *rules = Rules::preset(Preset::Balanced));
    stage.sprag.app.replace_settings(settings).unwrap();
    assert_eq!(step().await, 200, "the enforced rule begins with nothing");
    let mut steps = 1;
    while step().await == 200 {
        steps += 1;
        assert!(steps < 8);
    }
    assert!(steps >= 3, "{steps}");
}
