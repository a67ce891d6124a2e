//! The command, on recordings of our own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::fixture;

const EXPECTED: &str = "expected a run of the trace format (`run_id`, `messages`, `steps`)";

fn replay(arguments: &[&str], input: &[u8]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.arg("replay").args(arguments).env_clear().current_dir(folder.path());
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A command that ends early does not read it all.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn report(files: &[&Path], more: &[&str]) -> Value {
    let files = files.iter().map(|file| file.to_str().unwrap());
    let arguments: Vec<&str> = files.chain(["--json"]).chain(more.iter().copied()).collect();
    let output = replay(&arguments, b"");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn run<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["runs"].as_array().unwrap().iter().find(|run| run["run_id"] == id).unwrap()
}

#[test]
fn a_trace_is_stopped_where_it_goes_round_in_circles_and_only_there() {
    let report = report(&[&fixture("traces.jsonl")], &[]);
    let stuck = run(&report, "fixture/oscillating");
    let at = stuck["stopped_at_step"].as_u64().unwrap();
    assert!((4..=9).contains(&at), "{stuck}");
    assert_eq!(stuck["saved_steps"], 18 - at + 1);
    assert_eq!((&stuck["steps"], &stuck["agent"], &stuck["class"]), (&18.into(), &"fixer".into(), &"loop".into()));
    assert!(stuck["saved_usd"].as_f64().unwrap() > 0.01, "{stuck}");
    assert!(!stuck["proof"]["summary"].as_str().unwrap().is_empty(), "{stuck}");
    for (id, steps) in [("fixture/healthy", 15), ("fixture/rewritten", 4), ("fixture/scratchpad", 3)] {
        let run = run(&report, id);
        assert_eq!((&run["stopped_at_step"], &run["steps"]), (&Value::Null, &steps.into()), "{run}");
    }
    let summary = &report["summary"];
    assert_eq!((&summary["runs"], &summary["steps"]), (&5.into(), &56.into()));
    assert_eq!(summary["classes"]["healthy"], serde_json::json!({"runs": 3, "stopped": 0, "stopped_before_onset": 0}));
}

#[test]
fn repeated_work_is_stopped_in_every_format() {
    let folder = fixture("traces.jsonl").parent().unwrap().to_owned();
    let report = report(&[&folder], &[]);
    let stuck = [
        "fixture/stuck",
        "5d0f7c1e-2b9a-4c31-8f60-0a1b2c3d4e5f",
        "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
        "exchanges.jsonl:run_1",
    ];
    for id in stuck {
        let run = run(&report, id);
        assert!(run["stopped_at_step"].as_u64().is_some_and(|at| (4..=9).contains(&at)), "{run}");
    }
    assert_eq!(report["summary"]["stopped"], stuck.len() + 1, "{}", report["summary"]);
}

#[test]
fn logs_and_exchanges_come_out_as_their_runs() {
    let report = report(
        &["claude-code.jsonl", "codex.jsonl", "exchanges.jsonl"].map(fixture).each_ref().map(|f| f.as_path()),
        &[],
    );
    let runs: Vec<_> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let word = |key: &str| run[key].as_str().unwrap().to_owned();
            (word("run_id"), word("agent"), word("model"), run["steps"].as_u64().unwrap())
        })
        .collect();
    let session = "5d0f7c1e-2b9a-4c31-8f60-0a1b2c3d4e5f";
    let expected = [
        (format!("{session}:a1b2c3d4"), "claude-code", "claude-sonnet-4-5-20250929", 4),
        (session.to_owned(), "claude-code", "claude-sonnet-4-5-20250929", 14),
        ("0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b".to_owned(), "codex", "gpt-5", 15),
        ("exchanges.jsonl:run_2".to_owned(), "shop-bot", "gpt-4o-mini", 8),
        ("exchanges.jsonl:run_1".to_owned(), "shop-bot", "gpt-4o-mini", 12),
    ];
    assert_eq!(runs, expected.map(|(id, agent, model, steps)| (id, agent.to_owned(), model.to_owned(), steps)));
    let known = report["runs"].as_array().unwrap().iter().filter(|run| run["cost_usd"].as_f64() > Some(0.0)).count();
    assert_eq!(known, 5, "tokens are found in every format");
}

#[test]
fn a_preset_to_the_letter_stops_healthy_agents_too() {
    let report = report(&[&fixture("traces.jsonl")], &["--preset", "agentwall", "--declared"]);
    let healthy = run(&report, "fixture/healthy");
    assert_eq!((&healthy["stopped_at_step"], &healthy["detector"]), (&2.into(), &"exact".into()), "{healthy}");
    let observed = self::report(&[&fixture("traces.jsonl")], &["--preset", "observe", "--declared"]);
    assert_eq!(observed["summary"]["stopped"], 2, "what shadow would have done is what is asked");
}

#[test]
fn verdicts_are_one_line_per_run_with_steps_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("verdicts.jsonl");
    let report = report(&[&fixture("traces.jsonl")], &["--verdicts", out.to_str().unwrap()]);
    let verdicts = std::fs::read_to_string(&out).unwrap();
    let verdicts: Vec<Value> = verdicts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), 5);
    let of = |id: &str| verdicts.iter().find(|verdict| verdict["run_id"] == id).unwrap();
    let stopped_at = run(&report, "fixture/oscillating")["stopped_at_step"].as_u64().unwrap();
    assert_eq!(of("fixture/oscillating")["killed_at_step"], stopped_at - 1);
    assert_eq!(of("fixture/healthy")["killed_at_step"], Value::Null);
}

#[test]
fn the_table_says_where_why_and_what_it_saves() {
    let traces = fixture("traces.jsonl");
    let shown = |more: &[&str]| {
        let output = replay(&[&[traces.to_str().unwrap()], more].concat(), b"");
        assert!(output.status.success() && output.stderr.is_empty());
        text(&output.stdout)
    };
    let table = shown(&[]);
    assert!(table.starts_with("RUN                  AGENT  MODEL              STEPS  STOPPED AT  BY"), "{table}");
    assert!(table.contains("\nruns        5, "), "{table}");
    assert!(table.contains("\nhealthy     0 of 3 runs stopped, 0.0 %\n"), "{table}");
    let cut = shown(&["--limit-rows", "0"]);
    assert!(cut.starts_with("… and ") && cut.contains("--verdicts FILE writes all"), "{cut}");
}

#[test]
fn what_cannot_be_read_is_named_and_passed_over() {
    let good = std::fs::read_to_string(fixture("traces.jsonl")).unwrap();
    let bad = "nonsense\n{\"a\": 1}\n{\"run_id\":\"x\",\"messages\":[],\"steps\":[{\"prefix_len\":3}]}\n";
    let output = replay(&["-"], format!("{bad}{good}").as_bytes());
    assert!(output.status.success());
    let complaints = text(&output.stderr);
    let lines: Vec<&str> = complaints.lines().collect();
    assert!(lines[0].starts_with(&format!("-:1: {EXPECTED}")), "{complaints}");
    assert!(lines[1].starts_with(&format!("-:2: {EXPECTED}")), "{complaints}");
    assert_eq!(lines[2..], ["-:3: `steps[0]` names message 3, and there are 0"]);
    assert!(text(&output.stdout).contains("\n3 lines could not be read\n"));

    let output = replay(&["-"], bad.repeat(7).as_bytes());
    assert_eq!(output.status.code(), Some(1), "nothing was readable");
    let complaints = text(&output.stderr);
    assert_eq!(complaints.lines().count(), 22, "twenty, the word that there are more, and the end: {complaints}");
    assert!(complaints.ends_with("no recorded run could be read (21 lines were passed over)\n"), "{complaints}");
}

#[test]
fn words_that_are_off_are_named() {
    let output = replay(&["x.jsonl", "--preset", "lenient"], b"");
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("balanced, strict, observe, agentgazer, fairvisor, agentwall"), "{complaint}");
    let output = replay(&["x.jsonl"], b"");
    assert_eq!((output.status.code(), text(&output.stderr).contains("reading x.jsonl")), (Some(1), true));
}
