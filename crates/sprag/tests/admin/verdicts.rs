//! What people and programs see of what detection found.

use serde_json::{Value, json};

use crate::commands::printed;
use crate::world::{World, text};

fn verdict(mode: &str, action: &str) -> Value {
    let step = |number: u32| json!({"step": number, "alike": "same_error", "tools": ["search"], "action": "8d857182aa", "result": "1c09"});
    json!({
        "detector": "progress", "mode": mode, "loop_type": "repeated_step", "confidence": 0.9, "score": 3.0, "count": 3,
        "action": action, "strike": 1,
        "proof": {"summary": "`search` was called 3 times", "compared": "calls and results", "threshold": 3.0,
            "value": 3.0, "window": "last 24 steps", "steps": [step(1), step(2), step(40)]},
    })
}

fn step(run: &str, number: u32) -> Value {
    json!({"id": run, "step": number, "origin": "declared"})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_in_shadow_would_have_saved_is_said_everywhere() {
    let world = World::start().await;
    world.record(1_000, json!({"run": step("task", 1), "cost": 1_000_000}));
    let shadow = verdict("shadow", "kill_run");
    world.record(2_000, json!({"run": step("task", 2), "cost": 2_000_000, "shadow": shadow}));
    world.record(3_000, json!({"run": step("task", 3), "cost": 3_000_000}));

    let detail = world.json("/runs/default/task").await;
    let would = &detail["would_have_stopped"];
    assert_eq!((&would["step"], &would["saved_steps"]), (&json!(2), &json!(2)), "{detail}");
    assert_eq!((&would["saved_usd"], &would["saved_nano_usd"]), (&json!(0.005), &json!(5_000_000)));
    assert_eq!((&would["detector"], &would["loop_type"]), (&json!("progress"), &json!("repeated_step")));
    assert_eq!(would["proof"], shadow["proof"]);
    assert_eq!(detail["steps"]["items"][1]["shadow"], shadow);
    assert_eq!(detail["steps"]["items"][0]["shadow"], Value::Null);

    let report = world.json("/detectors/shadow?since=1970-01-01T00:00:00Z").await;
    let expected = json!([{"detector": "progress", "runs": 1, "saved_steps": 2, "saved_usd": 0.005,
        "saved_nano_usd": 5_000_000}]);
    assert_eq!((&report["detectors"], &report["partial"]), (&expected, &json!(false)));
    assert_eq!(world.json("/detectors/shadow").await["detectors"], json!([]), "the last seven days");
    assert_eq!(world.api("/detectors/shadow?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z").await.status, 400);

    let would_block = json!([{"reason": "budget_exceeded", "exceeded_limit": "daily", "message": "no money left"}]);
    world.record(4_000, json!({"run": step("other", 1), "cost": 4_000_000, "would_block": would_block}));
    let report = world.json("/detectors/shadow?since=1970-01-01T00:00:00Z").await;
    let expected = json!([{"reason": "budget_exceeded", "exceeded_limit": "daily", "requests": 1, "runs": 1,
        "cost_usd": 0.004, "cost_nano_usd": 4_000_000}]);
    assert_eq!(report["limits"], expected);

    let shown = printed(&world, &["runs", "task"]).await;
    let line = "  shadow  would have been stopped at step 2 by progress (repeated_step), saving $0.005000 in 2 steps\n";
    assert!(shown.contains(line) && shown.contains("complete; would stop (progress: repeated_step)"), "{shown}");

    let page = text(&world.page("/run?agent=default&id=task").await);
    for expected in ["<a href=\"#step-2\">step 2</a>, saving $0.0050", "id=\"step-2\"", "would stop (progress"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_shown_with_its_proof_and_warnings_on_their_steps() {
    let world = World::start().await;
    world.record(1_000, json!({"run": step("task", 1), "verdict": verdict("enforce", "warn")}));
    let stop = verdict("enforce", "kill_run");
    let refused = json!({"run": step("task", 2), "status": 429, "ending": "refused", "blocked": true,
        "block_reason": "loop_detected", "verdict": stop});
    world.record(2_000, refused);
    let act = json!({"what": "kill", "by": "sprag", "target": "run:default/task", "reason": "loop_detected",
        "proof": stop["proof"]});
    world.record(2_001, json!({"kind": "run_killed", "run": step("task", 0), "act": act}));

    let page = text(&world.page("/run?agent=default&id=task").await);
    for expected in [
        "Killed by Sprag",
        "<code>search</code> was called 3 times",
        "found 3, threshold 3 · last 24 steps",
        "<a href=\"#step-1\">1</a>",
        "<td class=\"num\">40</td>",
        "<code title=\"8d857182aa\">8d857182</code>",
        "same error",
        "<span class=\"mark odd\" title=\"`search` was called 3 times\">warned (progress: repeated_step)</span>",
        "<span class=\"mark bad\" title=\"`search` was called 3 times\">run killed (progress: repeated_step)</span>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(text(&world.page("/events").await).contains("run killed (progress: repeated_step)"));
    let events = printed(&world, &["events"]).await;
    assert!(events.contains("refused: loop_detected; run killed (progress: repeated_step)"), "{events}");
    assert_eq!(world.json("/events?blocked=true").await["items"][0]["verdict"], stop);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_killed_run_is_shown_as_killed_with_it() {
    let world = World::start().await;
    world.call(&[("x-sprag-run-id", "top")]).await;
    world.call(&[("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "top")]).await;
    assert_eq!(world.json("/runs/default/part").await["run"]["status"], "running");
    printed(&world, &["kill", "top"]).await;
    let run = world.json("/runs/default/part").await["run"].clone();
    assert_eq!((&run["status"], &run["stopped"]["through"]), (&json!("killed"), &json!("top")));
    assert_eq!(world.json("/runs/default/top").await["run"]["stopped"]["through"], Value::Null);
    let page = text(&world.page("/run?agent=default&id=part").await);
    assert!(
        page.contains("<bdi>top</bdi>") && !page.contains(">Resume<"),
        "only the run that was killed can be resumed"
    );
    assert!(text(&world.page("/run?agent=default&id=top").await).contains(">Resume<"));
    assert_eq!(world.json("/status").await["kills"], 1);
    assert!(text(&world.page("/").await).contains("1 kill in force"));
    assert!(printed(&world, &["status"]).await.contains("  kills      1 in force"));
    printed(&world, &["resume", "top"]).await;
    assert_eq!(world.json("/runs/default/part").await["run"]["status"], "running");
    let status = world.json("/status").await;
    assert_eq!((&status["kills"], &status["detection_failures"]), (&json!(0), &Value::Null), "no failure, no word");
}
