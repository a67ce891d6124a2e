//! `sprag replay` on the session logs that lie on a user's disk.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::text;

fn replay(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.arg("replay").args(arguments).env_clear().env("HOME", home).current_dir(home).output().unwrap()
}

/// A home folder with a session of each agent; `codex_day` is when Codex was used.
fn home(codex_day: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/replay");
    let claude = home.path().join(".claude/projects/-srv-shop");
    let codex = home.path().join(".codex/sessions/2026/03/02");
    fs::create_dir_all(&claude).unwrap();
    fs::create_dir_all(&codex).unwrap();
    fs::copy(fixtures.join("claude-code.jsonl"), claude.join("session.jsonl")).unwrap();
    let session = fs::read_to_string(fixtures.join("codex.jsonl")).unwrap().replace("2026-03-02", codex_day);
    fs::write(codex.join("rollout-1.jsonl"), session).unwrap();
    home
}

#[test]
fn without_a_file_it_finds_the_logs_of_both_agents() {
    let home = home("2026-03-02");
    let output = replay(home.path(), &["--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let agents: Vec<_> = report["runs"].as_array().unwrap().iter().map(|run| run["agent"].as_str().unwrap()).collect();
    assert!(agents.contains(&"codex") && agents.iter().any(|agent| agent.starts_with("claude")), "{agents:?}");
}

#[test]
fn since_leaves_out_what_is_older() {
    let home = home("2999-01-01");
    let output = replay(home.path(), &["--since", "30d", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let agents: Vec<_> = report["runs"].as_array().unwrap().iter().map(|run| &run["agent"]).collect();
    assert_eq!(agents, ["codex"]);
    assert!(report["summary"]["older"].as_u64().unwrap() >= 1, "{report}");
    assert!(text(&replay(home.path(), &["--since", "30d"]).stdout).contains("left out"));

    let old = self::home("2026-03-02");
    let output = replay(old.path(), &["--since", "1h"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("a longer --since"), "{}", text(&output.stderr));
    let bad = replay(old.path(), &["--since", "lately"]);
    assert!(text(&bad.stderr).contains("such as 30d"), "{}", text(&bad.stderr));
}

#[test]
fn where_there_are_no_logs_it_says_where_it_looked() {
    let home = tempfile::tempdir().unwrap();
    let output = replay(home.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains(".claude/projects") && said.contains(".codex/sessions") && said.contains("sprag replay FILE"),
        "{said}"
    );
}
