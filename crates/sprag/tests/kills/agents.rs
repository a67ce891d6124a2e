//! Agents that are set inactive, by a person or by their kill switch.

use serde_json::json;
use sprag_core::event::{ActKind, EventKind};
use sprag_core::id::AgentName;
use sprag_core::policy::{DeactivatedBy, KillSwitch, KillSwitchChange};
use sprag_testkit::Script;

use crate::scene::Scene;

const BOT: (&str, &str) = ("x-sprag-agent", "bot");

fn bot() -> AgentName {
    AgentName::parse("bot").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inactive_agent_is_refused_until_it_is_activated() {
    let scene = Scene::start().await;
    let app = &scene.sprag.app;
    scene.passes(&[BOT]).await;
    let standing = app.deactivate(bot(), "anna".into(), "holiday".into()).await.unwrap();
    assert_eq!((standing.active, standing.deactivated_by), (false, Some(DeactivatedBy::Manual)));
    let answer = scene.ask(&[BOT]).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (200, "agent_inactive"));
    scene.passes(&[]).await;
    let standing = app.activate(bot(), "anna".into()).await.unwrap();
    assert_eq!((standing.active, standing.deactivated_by), (true, None));
    scene.passes(&[BOT]).await;
    let events = scene.sprag.events();
    assert!(events.iter().any(|event| event.blocked && event.block_reason.as_deref() == Some("agent_inactive")));
    let acts: Vec<_> = events.iter().filter_map(|event| Some((event.kind, event.act.as_ref()?.what))).collect();
    assert_eq!(acts, [(EventKind::Admin, ActKind::Deactivate), (EventKind::Admin, ActKind::Activate)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_for_an_agent_stands_above_the_configuration() {
    let scene = Scene::start_with(Script::new(), |settings| {
        let mut policy = settings.policies.defaults.clone();
        policy.kill_switch.threshold = 8.0;
        settings.policies.agents.insert(bot(), policy);
    })
    .await;
    let app = &scene.sprag.app;
    assert_eq!(app.kill_switch(&bot()), KillSwitch { enabled: false, window_size: 20, threshold: 8.0 });
    let on = KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() };
    app.set_kill_switch(bot(), on, "anna".into()).await.unwrap();
    let size = KillSwitchChange { window_size: Some(10), ..KillSwitchChange::default() };
    app.set_kill_switch(bot(), size, "anna".into()).await.unwrap();
    assert_eq!(app.kill_switch(&bot()), KillSwitch { enabled: true, window_size: 10, threshold: 8.0 });
    assert_eq!(app.kill_switch(&AgentName::default()), KillSwitch::default());
    app.deactivate(bot(), "anna".into(), String::new()).await.unwrap();
    app.activate(bot(), "anna".into()).await.unwrap();
    assert!(app.kill_switch(&bot()).enabled, "activating leaves the switch as it is");
    let events = scene.sprag.events();
    let details: Vec<_> = events.iter().filter_map(|event| event.act.as_ref()?.detail.clone()).collect();
    assert_eq!(details, [json!({"enabled": true}), json!({"window_size": 10})]);
}
