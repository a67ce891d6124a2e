//! What a command is given, and where its calls go.

use sprag_testkit::{Provider, Script};

use crate::scene::{Scene, finish};

#[test]
fn print_env_says_what_would_be_set() {
    let scene = Scene::new();
    let ended = finish(&mut scene.sprag(&["--print-env", "--port", "4711"]));
    ended.assert_code(0);
    for line in [
        "export OPENAI_BASE_URL=http://127.0.0.1:4711/v1",
        "export OPENAI_API_BASE=http://127.0.0.1:4711/v1",
        "export ANTHROPIC_BASE_URL=http://127.0.0.1:4711",
        "export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:4711",
    ] {
        assert!(ended.stdout.lines().any(|printed| printed == line), "{line}: {}", ended.stdout);
    }
    let ended = finish(scene.sprag(&["--print-env", "--", "codex", "exec", "hello"]).env("OPENAI_API_KEY", "sk-test"));
    let command = "# the command: codex -c 'openai_base_url=\"http://127.0.0.1:PORT/v1\"' exec hello";
    assert!(ended.stdout.lines().any(|printed| printed == command), "{}", ended.stdout);
    assert!(!scene.data().exists(), "nothing was run, so nothing is kept");
}

#[test]
fn a_command_gets_what_is_printed() {
    let scene = Scene::new();
    let printed = finish(scene.sprag(&["--print-env", "--agent", "bot"]).env("HTTPS_PROXY", "http://127.0.0.1:1"));
    let given = finish(scene.sprag(&["--agent", "bot", "--quiet", "env"]).env("HTTPS_PROXY", "http://127.0.0.1:1"));
    let port = given.stdout.lines().find_map(|line| line.strip_prefix("OPENAI_BASE_URL=http://127.0.0.1:")).unwrap();
    let (port, rest) = port.split_once('/').unwrap();
    assert_eq!(rest, "agents/bot/v1");
    for line in printed.stdout.lines().filter_map(|line| line.strip_prefix("export ")) {
        let line = line.replace("PORT", port);
        assert!(given.stdout.lines().any(|given| given == line), "{line}: {}", given.stdout);
    }
    assert!(given.stdout.contains("\nNO_PROXY=127.0.0.1\n") && given.stdout.contains("\nSPRAG_RUN=cmd-"));
}

#[test]
fn a_base_url_that_was_set_is_where_calls_arrive() {
    let scene = Scene::new();
    let gateway = Provider::start(Script::new()).unwrap();
    let url = format!("{}/v1", gateway.url());
    let ended = finish(scene.agent(&[], &["ask", "Hello."]).env("OPENAI_BASE_URL", &url));
    ended.assert_code(0).assert_says(&format!("OPENAI_BASE_URL was set: calls to openai go on to {url}"));
    assert_eq!((gateway.requests().len(), scene.provider.requests().len()), (1, 0));
}

#[test]
fn a_command_that_made_no_call_is_told_what_to_check() {
    let scene = Scene::new();
    let ended = finish(&mut scene.sprag(&["--", "true"]));
    ended.assert_code(0).assert_says("true made no call through Sprag").assert_says("sprag run --print-env");
    let quiet = finish(&mut scene.sprag(&["--quiet", "--", "true"]));
    assert_eq!(quiet.assert_code(0).stderr, "");
}

#[test]
fn a_command_inside_a_command_is_held_by_both() {
    let scene = Scene::new();
    let inner = format!(
        "{} run --data {} --quiet --max-steps 3 -- python3 {}/tests/run_command/agent.py talks 9; echo inner $?",
        env!("CARGO_BIN_EXE_sprag"),
        scene.data().display(),
        env!("CARGO_MANIFEST_DIR")
    );
    let ended = finish(&mut scene.shell(&["--json"], &inner));
    assert!(ended.stdout.contains("inner 3"), "{}\n{}", ended.stdout, ended.stderr);
    let start = ended.stderr.rfind("\n{").map_or(0, |at| at + 1);
    let report: serde_json::Value = serde_json::from_str(&ended.stderr[start..]).unwrap();
    assert_eq!((&report["totals"]["steps"], &report["exit_code"]), (&3.into(), &0.into()), "{report:#}");
}
