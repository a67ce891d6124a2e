//! The commands that show and set what an agent may do.

use serde_json::Value;

use crate::commands::{complaint, printed};
use crate::world::{TOKEN, World};

/// The row of a key, without the spaces between its cells.
fn row(table: &str, key: &str) -> String {
    let line = table.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_shown_set_and_taken_back() {
    let world = World::start().await;
    let created = printed(&world, &["agents", "create", "bot", "budget.daily_limit=5"]).await;
    assert_eq!(created, "created: bot is active; kill switch off, 20 requests, above 10\n");
    let set =
        ["agents", "set", "bot", "run_limits.max_steps=50", "models.allow=gpt-4o*,claude-*", "budget.max_run_cost=0.5"];
    let said = printed(&world, &set).await;
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(said.lines().next(), Some("bot is active; kill switch off, 20 requests, above 10"));
    assert_eq!(lines[1], ["KEY", "FROM", "VALUE"]);
    assert_eq!(lines[2], ["budget.max_run_cost", "set", "0.50"]);
    assert_eq!(lines[3], ["models.allow", "set", "[\"gpt-4o*\",\"claude-*\"]"]);
    assert_eq!(lines[4], ["run_limits.max_steps", "set", "50"]);
    assert_eq!(lines.len(), 5, "what was not set is not shown: {said}");
    let shown = printed(&world, &["agents", "show", "bot"]).await;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "bot is active");
    assert!(lines[1].starts_with("KEY ") && lines[1].ends_with("VALUE"), "{shown}");
    assert_eq!(row(&shown, "budget.daily_limit"), "budget.daily_limit set 5.00");
    assert_eq!(row(&shown, "budget.monthly_limit"), "budget.monthly_limit default no limit");
    assert_eq!(row(&shown, "run_limits.max_steps"), "run_limits.max_steps set 50");
    assert_eq!(row(&shown, "models.allow"), "models.allow set [\"gpt-4o*\",\"claude-*\"]");
    assert_eq!(row(&shown, "hours.time_zone"), "hours.time_zone default UTC");

    printed(&world, &["agents", "unset", "bot", "run_limits.max_steps", "budget"]).await;
    let json: Value = serde_json::from_str(&printed(&world, &["agents", "show", "bot", "--json"]).await).unwrap();
    assert_eq!(json["override"], serde_json::json!({"models": {"allow": ["gpt-4o*", "claude-*"]}}));
    let first = printed(&world, &["agents", "activate", "unseen"]).await;
    assert!(first.starts_with("created: unseen is active"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_key_by_key() {
    let world = World::start().await;
    let admin = world.sprag.admin.to_string();
    let ask = async |words: &[&str]| complaint(&[words, &["--admin", &admin]].concat(), Some(TOKEN)).await;
    let said = ask(&["agents", "set", "bot", "budget.daily_limit=much", "run_limits.max_steps=-1"]).await;
    let expected = "sprag: refused, and nothing was changed\n  `run_limits.max_steps`: -1 is out of range\n    \
        = help: expected 0 to 1000000\n";
    assert_eq!(said, expected);
    let said = ask(&["agents", "set", "bot", "budget.daily_limit=much"]).await;
    assert!(said.contains("  `budget.daily_limit`: \"much\" is not an amount of dollars\n    = help: "), "{said}");
    let said = ask(&["agents", "set", "bot", "budget.dayly_limit=5"]).await;
    assert!(said.contains("`budget.dayly_limit`: unknown key") && said.contains("`daily_limit`?"), "{said}");
    assert!(ask(&["agents", "set", "bot", "budget.daily_limit"]).await.contains("expected KEY=VALUE"));
    assert!(ask(&["agents", "show", "bot"]).await.contains("no agent of this name is on record"));
    printed(&world, &["agents", "create", "bot"]).await;
    assert!(ask(&["agents", "create", "bot"]).await.contains("agent `bot` is known already"));
}
