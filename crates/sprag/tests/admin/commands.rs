//! The commands against a live Sprag.

use std::process::{Command, Output};

use serde_json::{Value, json};
use sprag_testkit::ClosedPort;

use crate::world::{TOKEN, World};

/// Runs the program with the token in its environment, and nothing else of ours.
async fn sprag(arguments: &[&str], token: Option<&str>) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.args(arguments).env_clear().env("HOME", home.path()).current_dir(home.path());
    if let Some(token) = token {
        command.env("SPRAG_ADMIN_TOKEN", token);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(crate) async fn printed(world: &World, arguments: &[&str]) -> String {
    let admin = world.sprag.admin.to_string();
    let output = sprag(&[arguments, &["--admin", &admin]].concat(), Some(TOKEN)).await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) async fn complaint(arguments: &[&str], token: Option<&str>) -> String {
    let output = sprag(arguments, token).await;
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn fill(world: &World) {
    let usage = json!({"input": 1200, "cache_read": 34, "output": 56});
    let run = |step: u32| json!({"id": "a/b \u{202e}..", "step": step, "origin": "declared"});
    world.record(1_000, json!({"agent": "bot", "run": run(1), "usage": usage, "cost": 3_120_000, "tools": ["search"]}));
    let failed =
        json!({"agent": "bot", "run": run(2), "status": 502, "ending": "upstream_gone", "error": "refused\u{1b}[2J"});
    world.record(2_000, failed);
    world.record(3_000, json!({"agent": "other"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_how_it_goes() {
    let world = World::start().await;
    world.call(&[]).await;
    let shown = printed(&world, &["status"]).await;
    assert!(shown.starts_with(&format!("Sprag {}, up for ", env!("CARGO_PKG_VERSION"))), "{shown}");
    assert!(shown.contains(&format!("  proxy      {}\n", world.sprag.proxy)), "{shown}");
    assert!(shown.contains("  recording  ok, 1 events\n"), "{shown}");
    assert!(shown.contains("  calls      1 (0 failed, 0 blocked)\n"), "{shown}");
    let json: Value = serde_json::from_str(&printed(&world, &["status", "--json"]).await).unwrap();
    assert_eq!(json["today"]["requests"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_events_are_aligned_tables() {
    let world = World::start().await;
    fill(&world);
    let runs = printed(&world, &["runs"]).await;
    let expected = "\
RUN       AGENT  STATUS   MODEL   STEPS     IN  OUT       COST  LAST CALL
run-3000  other  expired  gpt-4o      1      0    0  $0.000000  1970-01-01T00:00:03.010Z
a/b \u{fffd}..   bot    expired  gpt-4o      2  1,234   56  $0.003120  1970-01-01T00:00:02.010Z
";
    assert_eq!(runs, expected, "{runs}");
    assert_eq!(printed(&world, &["runs", "--limit", "1"]).await.lines().count(), 2);
    let json: Value = serde_json::from_str(&printed(&world, &["runs", "--agent", "bot", "--json"]).await).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 1);

    let events = printed(&world, &["events", "--agent", "bot"]).await;
    let lines: Vec<_> = events.lines().collect();
    assert_eq!(lines.len(), 3, "{events}");
    assert!(lines[1].ends_with("upstream_gone: refused\u{fffd}[2J"), "{events}");
    assert!(lines[2].contains("1,234") && lines[2].ends_with("complete, calls search"), "{events}");
    assert_eq!(printed(&world, &["events", "--run", "run-3000"]).await.lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_is_shown_with_its_steps() {
    let world = World::start().await;
    fill(&world);
    let shown = printed(&world, &["runs", "a/b \u{202e}.."]).await;
    assert!(
        shown.starts_with("Run a/b \u{fffd}.. of bot\n  status  expired, 2 steps (1 failed, 0 blocked)\n"),
        "{shown}"
    );
    assert!(shown.contains("  tokens  1,234 in (34 from cache), 56 out\n"), "{shown}");
    assert!(shown.contains("\nTIME                      STEP  MODEL   STATUS"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let json: Value = serde_json::from_str(&printed(&world, &["runs", "run-3000", "--json"]).await).unwrap();
    assert_eq!(json["run"]["agent"], "other");

    let admin = world.sprag.admin.to_string();
    let missing = complaint(&["runs", "none", "--admin", &admin], Some(TOKEN)).await;
    assert!(missing.contains("no run `none` on record"), "{missing}");
    world.record(4_000, json!({"agent": "third", "run": {"id": "run-3000", "step": 1, "origin": "declared"}}));
    let several = complaint(&["runs", "run-3000", "--admin", &admin], Some(TOKEN)).await;
    assert!(several.contains("choose with --agent: third, other"), "{several}");
    assert!(printed(&world, &["runs", "run-3000", "--agent", "third"]).await.starts_with("Run run-3000 of third\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_found_in_the_data_directory() {
    let provider = sprag_testkit::Provider::start(sprag_testkit::Script::new()).unwrap();
    let running = crate::sprag::Sprag::start(&provider).await;
    let (admin, data) = (running.admin.to_string(), running.data.path().display().to_string());
    let output = sprag(&["status", "--admin", &admin, "--data", &data], None).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_sprag_is_found_by_a_file_that_only_it_can_use_whole() {
    let provider = sprag_testkit::Provider::start(sprag_testkit::Script::new()).unwrap();
    let running = crate::sprag::Sprag::start(&provider).await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("sprag.toml");
    let (admin, data) = (running.admin.to_string(), running.data.path().display().to_string());
    // The variable is set where the service runs, and not here.
    let text = format!(
        "[admin]\nlisten = \"{admin}\"\n[data]\ndir = \"{data}\"\n[providers.openai]\napi_key_env = \"NOT_SET_HERE\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let output = sprag(&["status", "--config", &file], None).await;
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_comes_with_what_to_do() {
    let world = World::start().await;
    let admin = world.sprag.admin.to_string();
    let no_token = complaint(&["status", "--admin", &admin], None).await;
    assert!(no_token.contains("set SPRAG_ADMIN_TOKEN, or name the directory with --data DIR"), "{no_token}");
    let wrong = complaint(&["status", "--admin", &admin], Some("wrong")).await;
    assert!(wrong.contains("did not take the admin token"), "{wrong}");
    let bad = complaint(&["runs", "--agent", "no agent", "--admin", &admin], Some(TOKEN)).await;
    assert!(bad.contains("an agent name has 1 to 64 letters"), "{bad}");

    let port = ClosedPort::new().unwrap();
    let closed = port.address.to_string();
    let nobody = complaint(&["status", "--admin", &closed], Some(TOKEN)).await;
    assert!(nobody.contains(&format!("nothing listens on {closed}; start Sprag with `sprag`")), "{nobody}");
    let before_the_first_start = complaint(&["status", "--admin", &closed], None).await;
    assert!(before_the_first_start.contains("start Sprag with `sprag`"), "{before_the_first_start}");
    let typo = sprag(&["runs", "--limit", "0"], Some(TOKEN)).await;
    assert_eq!(typo.status.code(), Some(2));
}
