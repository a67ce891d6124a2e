//! A command is one run: its conversations are parts of it, and so are their parts.

use crate::scene::{Scene, finish};

/// Calls with the given headers, one after the other: `name: value` in each line.
fn calls(scene: &Scene, words: &[&str], headers: &[&[(&str, &str)]]) -> crate::scene::Ended {
    let ask = |(number, headers): (usize, &&[(&str, &str)])| {
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("'{name}': '{value}'")).collect();
        format!("agent.ask(agent.user('Number {number}.'), **{{{}}})\n", headers.join(", "))
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run_command");
    let begin = format!("import sys\nsys.path.insert(0, {folder:?})\nimport agent\n");
    let script = begin + &headers.iter().enumerate().map(ask).collect::<String>();
    let mut command = scene.sprag(words);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    finish(command.args(["--", "python3", "-c", &script]))
}

#[test]
fn conversations_and_their_parts_belong_to_the_command() {
    let scene = Scene::new();
    let session = ("x-claude-code-session-id", "s");
    let (sub, deep) = (("x-claude-code-agent-id", "a"), ("x-claude-code-agent-id", "b"));
    let parent = ("x-claude-code-parent-agent-id", "a");
    let named = ("x-sprag-run-id", "task");
    // The part of a part comes before anybody has called in what it is a part of.
    let ended = calls(&scene, &["--json"], &[&[session, deep, parent], &[session, sub], &[session], &[named]]);
    ended.assert_code(0);
    let command = ended.report()["run"].as_str().unwrap().to_owned();
    let of = |name: &str| format!("{name}#{command}");
    let parents: Vec<(String, Option<String>)> = scene
        .calls()
        .into_iter()
        .map(|call| call.run.unwrap())
        .map(|run| (run.id.to_string(), run.parent.map(|parent| parent.to_string())))
        .collect();
    let expected = [
        (of("s:b"), Some(of("s:a"))),
        (of("s:a"), Some(of("s"))),
        (of("s"), Some(command.clone())),
        (of("task"), Some(command.clone())),
    ];
    assert_eq!(parents, expected);
    assert_eq!(scene.run(&command).unwrap().status, sprag_store::history::RunStatus::Finished);
}

#[test]
fn steps_of_parts_count_before_anybody_has_called_in_their_run() {
    let scene = Scene::new();
    let session = ("x-claude-code-session-id", "s");
    let subs: Vec<String> = (0..6).map(|number| format!("sub-{number}")).collect();
    let headers: Vec<Vec<(&str, &str)>> =
        subs.iter().map(|sub| vec![session, ("x-claude-code-agent-id", sub.as_str())]).collect();
    let headers: Vec<&[(&str, &str)]> = headers.iter().map(Vec::as_slice).collect();
    calls(&scene, &["--max-steps", "4"], &headers).assert_code(3).assert_says("step_limit");
    assert_eq!(scene.calls().iter().filter(|call| !call.blocked).count(), 4);
}

#[test]
fn a_command_has_no_limits_of_its_own_because_a_part_has_a_name() {
    let scene = Scene::new();
    let names: Vec<String> = (0..34).map(|number| format!("task-{number}")).collect();
    let headers: Vec<Vec<(&str, &str)>> = names.iter().map(|name| vec![("x-sprag-run-id", name.as_str())]).collect();
    let headers: Vec<&[(&str, &str)]> = headers.iter().map(Vec::as_slice).collect();
    calls(&scene, &[], &headers).assert_code(0).assert_says("34 calls in 34 conversations");
}

#[test]
fn a_session_that_goes_on_in_another_command_is_a_run_of_that_one() {
    let scene = Scene::new();
    let session: &[(&str, &str)] = &[("x-session-id", "mine")];
    for _ in 0..2 {
        calls(&scene, &["--max-steps", "4"], &[session, session, session]).assert_code(0);
    }
    let ids: std::collections::BTreeSet<String> = scene
        .calls()
        .into_iter()
        .map(|call| call.run.unwrap().id.to_string())
        .filter(|id| id.starts_with("mine"))
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
}
