//! Budget, steps and time hold for the command as a whole.

use sprag_core::money::NanoUsd;

use crate::scene::{Scene, finish};

/// What one of the agent's talks costs.
const TALK: i64 = 12_500_000;

#[test]
fn a_budget_covers_all_conversations_together() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--budget", "0.06", "--json"], &["talks", "40"]));
    ended.assert_code(3);
    let report = ended.report();
    assert_eq!(report["stopped"]["reason"], "budget_exceeded", "{report:#}");
    let spent = report["totals"]["cost_nano_usd"].as_i64().unwrap();
    assert!(spent > 2 * TALK && spent <= 60_000_000, "{report:#}");
    assert!(report["totals"]["runs"].as_u64().unwrap() > 2, "each talk is a conversation: {report:#}");
    let on_record: NanoUsd = scene.calls().iter().filter_map(|call| call.cost).sum();
    assert_eq!(on_record, NanoUsd(spent));
}

#[test]
fn a_budget_that_suffices_stops_nothing() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--budget", "$1.00"], &["talks", "5"]));
    ended.assert_code(0).assert_says("5 calls in 5 conversations, $0.0625");
}

#[test]
fn steps_are_counted_over_all_conversations() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--max-steps", "7"], &["talks", "40"]));
    ended.assert_code(3).assert_says("Too many steps (step_limit)").assert_says("has taken its 7 steps");
    let calls = scene.calls();
    assert_eq!(calls.iter().filter(|call| !call.blocked).count(), 7);
    let scene = Scene::new();
    finish(&mut scene.agent(&["--max-steps", "7"], &["talks", "7"])).assert_code(0);
    let scene = Scene::new();
    finish(&mut scene.agent(&["--max-steps", "5"], &["steps", "20"])).assert_code(3).assert_says("step_limit");
}

#[test]
fn time_ends_the_command_also_between_calls() {
    let scene = Scene::new();
    let ended = finish(&mut scene.shell(&["--timeout", "1"], "echo begun; sleep 600"));
    ended.assert_code(3).assert_says("Took too long (timeout)").assert_says("has had its 1 seconds");
    assert_eq!(ended.stdout, "begun\n");
    let acts: Vec<_> = scene.events().into_iter().filter_map(|event| event.act).collect();
    assert!(acts.iter().any(|act| act.reason == "timeout"), "{acts:?}");
    finish(&mut scene.shell(&["--timeout", "60", "--quiet"], "exit 0")).assert_code(0);
}

#[test]
fn the_file_is_honoured_and_the_command_line_stands_above_it() {
    let scene = Scene::new();
    let file = "[defaults.budget]\nmax_run_cost = 0.03\n[defaults.run_limits]\nmax_steps = 2\napplies_to = \"all\"\n";
    std::fs::write(scene.dir.path().join("sprag.toml"), file).unwrap();
    finish(&mut scene.agent(&[], &["talks", "9"])).assert_code(3);
    let wide = ["--budget", "1", "--max-steps", "20"];
    finish(&mut scene.agent(&wide, &["talks", "9"]))
        .assert_code(0)
        .assert_says("--budget on the command line takes the place of the one in the configuration");
}

#[test]
fn a_budget_of_the_day_counts_what_was_spent_before() {
    let scene = Scene::new();
    std::fs::write(scene.dir.path().join("sprag.toml"), "[budget]\ndaily_limit = 0.05\n").unwrap();
    finish(&mut scene.agent(&[], &["talks", "3"])).assert_code(0);
    let ended = finish(&mut scene.agent(&["--json"], &["talks", "3"]));
    let report = ended.report();
    assert_eq!(report["refusals"]["budget_exceeded"], 1, "{report:#}");
    assert!(report["totals"]["cost_nano_usd"].as_i64().unwrap() <= 2 * TALK, "{report:#}");
}
