//! What agents may do, through the API.

use serde_json::{Value, json};
use sprag_core::id::AgentName;

use crate::kills::{done, order, refused};
use crate::world::{TOKEN, World, text};

const BOT: (&str, &str) = ("x-sprag-agent", "bot");

fn bot() -> AgentName {
    AgentName::parse("bot").unwrap()
}

/// Sends a step of a declared run.
async fn step(world: &World, run: &str) -> u16 {
    world.call(&[BOT, ("x-sprag-run-id", run)]).await.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_set_holds_at_once_and_is_taken_back() {
    let world = World::start().await;
    assert_eq!(step(&world, "a").await, 200);
    let set = json!({"policy": {"run_limits": {"max_steps": 1}, "budget": {"daily_limit": "7.50"}}, "by": "anna"});
    let agent = done(&world, "PATCH", "/agents/bot", &set).await;
    assert_eq!(agent["policy"]["run_limits"]["max_steps"], 1);
    assert_eq!(agent["policy"]["run_limits"]["timeout_seconds"], 120);
    assert_eq!(agent["policy"]["budget"]["daily_limit"], "7.50");
    assert_eq!(agent["policy"]["budget"]["monthly_limit"], Value::Null);
    assert_eq!(agent["override"], set["policy"]);
    assert_eq!(agent["sources"], json!({"budget.daily_limit": "set", "run_limits.max_steps": "set"}));
    assert_eq!(agent.get("created"), None, "it has called before");
    assert_eq!(step(&world, "a").await, 429, "the next request meets it");

    let back = json!({"policy": {"run_limits": {"max_steps": null}, "models": {"allow": ["gpt-4o*"]}}});
    let agent = done(&world, "PATCH", "/agents/bot", &back).await;
    assert_eq!(agent["override"], json!({"budget": {"daily_limit": "7.50"}, "models": {"allow": ["gpt-4o*"]}}));
    assert_eq!(agent["policy"]["run_limits"]["max_steps"], 30);
    assert_eq!((step(&world, "b").await, step(&world, "b").await), (200, 200));
    assert_eq!(world.json("/agents/bot").await["override"], agent["override"]);

    let events = world.json("/events?agent=bot").await;
    let acts: Vec<_> = events["items"].as_array().unwrap().iter().filter(|event| event["kind"] == "admin").collect();
    let told: Vec<_> = acts.iter().rev().map(|e| (&e["act"]["what"], &e["act"]["by"], &e["act"]["detail"])).collect();
    let what = Value::from("set_policy");
    assert_eq!(told, [(&what, &"admin (anna)".into(), &set["policy"]), (&what, &"admin".into(), &back["policy"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_said_whole_and_changes_nothing() {
    let world = World::start().await;
    done(&world, "PATCH", "/agents/bot", &json!({"policy": {"budget": {"daily_limit": 5}}})).await;
    let before = world.json("/agents/bot").await;
    let bad = json!({
        "active": false,
        "policy": {"budget": {"daily_limit": "much", "monthly_limit": -1}, "hours": {"time_zone": "Mars"}},
    });
    let answer = order(&world, "PATCH", "/agents/bot", &bad).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (400, "application/problem+json"));
    let problem: Value = answer.json();
    let keys: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| error["key"].clone()).collect();
    assert_eq!(keys, ["hours.time_zone", "budget.daily_limit", "budget.monthly_limit"]);
    assert!(problem["errors"][1]["message"].as_str().unwrap().contains("is not an amount of dollars"), "{problem}");
    assert!(problem["errors"][1]["hint"].as_str().unwrap().contains("0 or more"), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("`budget.daily_limit`: \"much\" is not"), "{problem}");
    for (policy, said) in [
        (json!({"budget": {"daily_limt": 5}}), "did you mean `daily_limit`?"),
        (json!({"kill_switch": {"window_size": 4}}), "expected 5 to 100"),
        (json!({"detection": {"preset": "balancd"}}), "did you mean \"balanced\"?"),
        (json!({"models": {"allow": [null]}}), "cannot be read"),
        (json!([]), "expected an object"),
        (json!(5), "expected an object"),
    ] {
        let (status, detail) = refused(&world, "PATCH", "/agents/bot", &json!({ "policy": policy })).await;
        assert_eq!(status, 400);
        assert!(detail.contains(said), "{policy}: {detail}");
    }
    assert_eq!(world.json("/agents/bot").await, before);
    refused(&world, "PATCH", "/agents/new", &json!({"policy": {"x": 1}})).await;
    refused(&world, "POST", "/agents", &json!({"name": "new", "policy": {"x": 1}})).await;
    assert_eq!(refused(&world, "GET", "/agents/new", &Value::Null).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_switch_has_one_truth() {
    let world = World::start().await;
    done(&world, "PATCH", "/agents/bot", &json!({"kill_switch": {"enabled": true, "threshold": 12.5}})).await;
    let agent = done(&world, "PATCH", "/agents/bot", &json!({"policy": {"kill_switch": {"threshold": 7}}})).await;
    let switch = json!({"enabled": true, "window_size": 20, "threshold": 7.0});
    assert_eq!((&agent["kill_switch"], &agent["policy"]["kill_switch"]), (&switch, &switch));
    assert_eq!(agent["override"], json!({"kill_switch": {"enabled": true, "threshold": 7.0}}));
    let stored = world.sprag.app.catalog.snapshot().agent(&bot()).unwrap().clone();
    assert_eq!((stored.kill_switch.threshold, &stored.policy), (Some(7.0), &None));
    let agent = done(&world, "PATCH", "/agents/bot", &json!({"policy": {"kill_switch": null}})).await;
    assert_eq!((&agent["kill_switch"]["enabled"], &agent["override"]), (&false.into(), &json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_made_ahead_of_their_first_call() {
    let world = World::configured(TOKEN, |settings| {
        let policy = settings.policies.defaults.clone();
        settings.policies.agents.insert(AgentName::parse("configured").unwrap(), policy);
    })
    .await;
    world.call(&[("x-sprag-agent", "seen")]).await;
    let new = json!({"name": "bot", "policy": {"run_limits": {"max_steps": 0}}});
    let agent = done(&world, "POST", "/agents", &new).await;
    assert_eq!((&agent["name"], &agent["created"], &agent["steps"]), (&"bot".into(), &true.into(), &0.into()));
    assert_eq!(agent["policy"]["run_limits"]["max_steps"], 0);
    done(&world, "POST", "/agents", &json!({"name": "plain"})).await;
    for name in ["bot", "plain", "configured", "seen"] {
        let (status, detail) = refused(&world, "POST", "/agents", &json!({ "name": name })).await;
        assert!(status == 409 && detail.contains("is known already"), "{name}: {status} {detail}");
    }
    assert_eq!(refused(&world, "POST", "/agents", &json!({})).await.0, 400);
    assert_eq!(refused(&world, "POST", "/agents", &json!({"name": "a b"})).await.0, 400);
    let listed = world.json("/agents").await;
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|agent| agent["name"].clone()).collect();
    assert_eq!(names, ["seen", "bot", "configured", "plain"]);
    assert_eq!(world.json("/agents/configured").await["name"], "configured");
    let first = done(&world, "PATCH", "/agents/other", &json!({"active": true})).await;
    assert_eq!(first["created"], true, "who is set first is made by it");
    assert_eq!(done(&world, "PATCH", "/agents/other", &json!({"active": true})).await.get("created"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_survives_activation_and_a_new_configuration() {
    let world = World::start().await;
    done(&world, "PATCH", "/agents/bot", &json!({"policy": {"run_limits": {"max_steps": 2}}})).await;
    done(&world, "PATCH", "/agents/bot", &json!({"active": false})).await;
    let agent = done(&world, "PATCH", "/agents/bot", &json!({"active": true})).await;
    assert_eq!(agent["policy"]["run_limits"]["max_steps"], 2);
    let mut settings = (*world.sprag.app.settings.load_full()).clone();
    settings.policies.defaults.run_limits.max_steps = 1;
    world.sprag.app.replace_settings(settings).unwrap();
    assert_eq!([step(&world, "a").await, step(&world, "a").await, step(&world, "a").await], [200, 200, 429]);
    let answer = world.call(&[("x-sprag-agent", "other"), ("x-sprag-run-id", "o")]).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    assert_eq!(world.call(&[("x-sprag-agent", "other"), ("x-sprag-run-id", "o")]).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_in_force_can_be_sent_back() {
    let world = World::start().await;
    let set = json!({"policy": {
        "budget": {"max_run_cost": 0.25, "stages": [{"at": 50, "action": "throttle", "delay_ms": 10}]},
        "rate_limits": [{"name": "r", "requests": 1000, "window_seconds": 60}, {"rps": 50.0}],
        "models": {"allow": ["gpt-4o*"], "mode": "shadow"},
        "hours": {"allowed": ["fri-mon 22:00-6", "wed"], "time_zone": "Europe/Berlin", "mode": "shadow"},
        "detection": {"preset": "observe"},
    }});
    let agent = done(&world, "PATCH", "/agents/bot", &set).await;
    assert_eq!(agent["policy"]["detection"]["progress"]["mode"], "shadow");
    assert_eq!(agent["sources"]["detection.progress.mode"], "set");
    assert_eq!(agent["policy"]["rate_limits"][1]["burst"], 50.0);
    assert_eq!(agent["policy"]["hours"]["allowed"][1], "wed");
    let again = done(&world, "PATCH", "/agents/other", &json!({"policy": agent["policy"]})).await;
    assert_eq!(again["policy"], agent["policy"]);
}
