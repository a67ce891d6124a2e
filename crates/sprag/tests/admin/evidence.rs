//! What the API tells about why a run was stopped, and what other thresholds would have done.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag_core::loops::Mode;
use sprag_testkit::client;

use crate::world::{TOKEN, World, text};

/// A world in which `progress` alone watches.
pub(crate) async fn watched() -> World {
    World::configured(TOKEN, |settings| {
        settings.policies.change_rules(|rules| {
            for common in rules.every_common() {
                common.mode = Mode::Off;
            }
            rules.progress.common.mode = Mode::Enforce;
        });
    })
    .await
}

/// An agent at work: each round the model calls `read`, and gets what `result` gives. Gives the status of each request.
pub(crate) async fn work(world: &World, run: &str, rounds: u32, result: impl Fn(u32) -> (String, String)) -> Vec<u16> {
    let mut messages = vec![json!({"role": "user", "content": "do the work"})];
    let mut statuses = Vec::new();
    for round in 0..=rounds {
        let body = json!({"model": "gpt-4o", "messages": messages});
        let call = client::post_json(world.sprag.url("/v1/chat/completions"), &body).header("x-sprag-run-id", run);
        statuses.push(call.fetch().await.unwrap().status.as_u16());
        let (path, result) = result(round);
        let arguments = json!({"path": path}).to_string();
        let id = format!("call_{round}");
        messages.push(json!({"role": "assistant", "content": format!("Attempt {round}."), "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    statuses
}

pub(crate) fn stuck(_: u32) -> (String, String) {
    ("a.rs".into(), "Error: no such file a.rs".into())
}

pub(crate) fn healthy(round: u32) -> (String, String) {
    let words = ["alpha", "bravo", "delta", "gamma", "kappa", "omega", "sigma", "theta", "zeta", "iota"];
    let word = words[round as usize % words.len()];
    (format!("{word}{round}.rs"), format!("fn {word}() {{ {word}_{round}::begin(); and_then({word}) }}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_can_be_seen_and_what_it_saved() {
    let world = watched().await;
    let statuses = work(&world, "task", 9, stuck).await;
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429, 403, 403, 403]);

    let picture = world.json("/runs/default/task/picture").await;
    assert_eq!(picture["steps"], json!([1, 2, 3, 4, 5, 6]), "{picture}");
    assert_eq!(picture["rows"], json!(["3", "33", "333", "3333", "33333", "333333"]));
    assert_eq!(picture["proof"], json!([1, 2, 3, 4, 5, 6]));
    assert_eq!((&picture["requests"], &picture["judged"]), (&json!(10), &json!(7)), "a killed run is not looked at");
    let levels = picture["levels"].as_array().unwrap();
    let level = |at: usize| levels[at]["level"].as_f64().unwrap();
    assert_eq!((levels[0]["step"].clone(), levels[5]["step"].clone()), (json!(2), json!(7)));
    assert!(level(4) < 1.0 && level(5) >= 1.0, "{levels:?}");

    let detail = world.json("/runs/default/task").await;
    let steps = detail["steps"]["items"].as_array().unwrap();
    let costs: Vec<i64> = steps.iter().filter_map(|step| step["cost_nano_usd"].as_i64()).collect();
    let each = costs.iter().sum::<i64>() / costs.len() as i64;
    assert!(costs.len() == 6 && each > 0, "{costs:?}");
    assert_eq!(detail["run"]["saved_nano_usd"], json!(4 * each), "four calls were refused");
    assert_eq!(world.json("/status").await["today"]["saved_nano_usd"], json!(4 * each));
    assert_eq!((&steps[6]["saved_nano_usd"], &steps[5]["saved_nano_usd"]), (&json!(each), &Value::Null));
    let facts = &steps[4]["evidence"];
    assert_eq!((&facts["step"], &facts["alike"], &facts["failed"]), (&json!(4), &json!("same_error"), &json!(true)));
    assert_eq!(steps[0]["evidence"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_thresholds_are_tried_on_what_is_on_record() {
    let world = watched().await;
    work(&world, "task", 7, stuck).await;
    let same = world.json("/runs/default/task/try").await;
    let detail = world.json("/runs/default/task").await;
    assert_eq!((&same["stopped"]["step"], &same["refused_at"]), (&json!(7), &json!(7)), "the rule in force");
    assert_eq!(same["stopped"]["proof"], detail["run"]["stopped"]["proof"], "and the same proof");

    let strict = world.json("/runs/default/task/try?repeats=3").await;
    let stopped = &strict["stopped"];
    assert_eq!((&strict["rule"]["repeats"], &stopped["step"]), (&json!(3.0), &json!(5)));
    assert_eq!(stopped["saved_steps"], 2, "steps 5 and 6 were let through");
    let steps = detail["steps"]["items"].as_array().unwrap();
    let cost = |at: usize| steps[at]["cost_nano_usd"].as_i64().unwrap();
    assert_eq!(stopped["saved_nano_usd"], json!(cost(4) + cost(5)));

    let lenient = world.json("/runs/default/task/try?repeats=24&same_results=24&stall=100").await;
    assert_eq!((&lenient["stopped"], &lenient["refused_at"]), (&Value::Null, &json!(7)));

    for (query, said) in [
        ("repeats=1", "`repeats` is a number from 2 to 24"),
        ("repeats=many", "repeats"),
        ("threshold=3", "unknown field `threshold`"),
    ] {
        let answer = world.api(&format!("/runs/default/task/try?{query}")).await;
        assert_eq!(answer.status, 400);
        assert!(text(&answer).contains(said), "{query}: {}", text(&answer));
    }
    for path in ["picture", "try", "export"] {
        assert_eq!(world.api(&format!("/runs/default/unknown/{path}")).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_thresholds_are_tried_on_the_latest_runs() {
    let world = watched().await;
    work(&world, "stuck", 7, stuck).await;
    work(&world, "healthy", 9, healthy).await;
    // Three times the same, and then it goes on: a rule that is too strict stops what goes well.
    work(&world, "patient", 6, |round| if round < 4 { stuck(round) } else { healthy(round) }).await;
    world.record(1_000, json!({"run": {"id": "old", "step": 1, "origin": "declared"}}));

    let report = world.json("/detectors/try").await;
    assert_eq!((&report["runs"], &report["stopped"], &report["ended_well"]), (&json!(3), &json!(1), &json!(0)));
    assert_eq!((&report["items"][0]["id"], &report["partial"]), (&json!("stuck"), &json!(false)));

    let report = world.json("/detectors/try?repeats=3").await;
    assert_eq!((&report["stopped"], &report["ended_well"]), (&json!(2), &json!(1)), "{report}");
    let patient = &report["items"][0];
    assert_eq!(
        (&patient["id"], &patient["ended_well"], &patient["stopped"]["step"]),
        (&json!("patient"), &json!(true), &json!(5))
    );
    let sum: i64 =
        report["items"].as_array().unwrap().iter().map(|run| run["stopped"]["saved_nano_usd"].as_i64().unwrap()).sum();
    assert_eq!(report["saved_nano_usd"], json!(sum));

    assert_eq!(world.json("/detectors/try?agent=nobody").await["runs"], 0);
    assert_eq!(world.json("/detectors/try?runs=1&repeats=3").await["runs"], 1);
    for query in ["runs=0", "runs=501", "stall=1"] {
        assert_eq!(world.api(&format!("/detectors/try?{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_looks_as_far_back_as_the_rule_does() {
    let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
    let world = World::at(Clock::Scripted(clock.clone()), TOKEN, |settings| {
        settings.policies.defaults.run_limits.timeout_seconds = 0;
        settings.policies.change_rules(|rules| {
            for common in rules.every_common() {
                common.mode = Mode::Off;
            }
            rules.progress.common.mode = Mode::Enforce;
            // More steps than are kept, and fewer seconds than lie between two of them.
            (rules.progress.common.window.requests, rules.progress.common.window.seconds) = (100, 60);
        });
    })
    .await;
    let slowly = |round: u32| {
        clock.fetch_add(61_000, Ordering::Relaxed);
        stuck(round)
    };
    assert_eq!(work(&world, "task", 9, slowly).await, [200; 10], "what lies so far apart is no loop");
    let tried = async |query: &str| world.json(&format!("/runs/default/task/try?{query}")).await;
    let same = tried("").await;
    assert_eq!((&same["stopped"], &same["rule"]["window_seconds"]), (&Value::Null, &json!(60)), "{same}");
    assert_eq!(tried("window_seconds=0").await["stopped"]["step"], 7, "without a bound it is one");
    assert_eq!(tried("window_seconds=3600").await["stopped"]["step"], 7);
    assert_eq!(tried("window_seconds=61").await["stopped"], Value::Null, "one step back is not enough");
    assert_eq!(world.json("/detectors/try").await["stopped"], 0);
    assert_eq!(world.json("/detectors/try?window_seconds=0").await["stopped"], 1);

    let page = text(&world.page("/run?agent=default&id=task&repeats=4").await);
    for (name, in_force) in [("window", "100"), ("window_seconds", "60")] {
        assert!(page.contains(&format!("name=\"{name}\" value=\"\" placeholder=\"{in_force}\"")), "{name}: {page}");
    }
    assert!(page.contains("Not stopped"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_exported_line_by_line() {
    let world = watched().await;
    for step in 1..=1001 {
        let cost =
            json!({"run": {"id": "task", "step": step, "origin": "declared"}, "cost": 7, "id": format!("r{step}")});
        world.record(step, cost);
    }
    let answer = world.api("/runs/default/task/export").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"task.jsonl\"");
    let lines: Vec<Value> = text(&answer).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1001, "all pages");
    assert_eq!((&lines[0]["run"]["step"], &lines[1000]["id"]), (&json!(1), &json!("r1001")));

    let odd = json!({"run": {"id": "a \"b\";/c", "step": 1, "origin": "declared"}});
    world.record(5_000, odd);
    let answer = world.api("/runs/default/a%20%22b%22%3B%2Fc/export").await;
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"a__b___c.jsonl\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_evidence_reads_fine() {
    let world = watched().await;
    world.record(1_000, json!({"run": {"id": "old", "step": 1, "origin": "declared"}}));
    let picture = world.json("/runs/default/old/picture").await;
    assert_eq!((&picture["steps"], &picture["requests"], &picture["judged"]), (&json!([]), &json!(1), &json!(0)));
    assert_eq!(world.json("/runs/default/old/try").await["stopped"], Value::Null);
}
