//! The commands that show and correct budgets.

use serde_json::{Value, json};
use sprag_core::loops::Mode;

use crate::commands::{complaint, printed};
use crate::kills::done;
use crate::till::{Till, budget};
use crate::world::TOKEN;

#[tokio::test(flavor = "multi_thread")]
async fn budgets_are_an_aligned_table() {
    let till = Till::start(|settings| {
        settings.budget.budget = budget(Mode::Shadow, 0, 0, 100);
        settings.policies.defaults.budget = budget(Mode::Enforce, 2, 1, 0);
    })
    .await;
    till.spend("bot", "task", 62).await;
    let shown = printed(&till.world, &["budgets"]).await;
    let expected = "\
ACCOUNT                  LIMIT    SETTLED   RESERVED        LEFT    USED  ENDS                      MODE
everything monthly  $100.000000  $0.620000  $0.000000  $99.380000   0.6 %  2023-12-01T00:00:00.000Z  shadow
agent:bot daily       $1.000000  $0.620000  $0.000000   $0.380000  62.0 %  2023-11-15T00:00:00.000Z  enforce
";
    let words = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    assert_eq!(words(&shown), words(expected), "{shown}");
    let runs = printed(&till.world, &["budgets", "--runs"]).await;
    assert!(runs.lines().nth(3).unwrap().starts_with("run:bot/task run"), "{runs}");
    assert_eq!(printed(&till.world, &["budgets", "--agent", "bot"]).await.lines().count(), 3);
    let json: Value = serde_json::from_str(&printed(&till.world, &["budgets", "--json"]).await).unwrap();
    assert_eq!(json["items"][1]["remaining_usd"], json!(0.38));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spent_is_corrected_and_told() {
    let till = Till::start(|settings| settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0)).await;
    till.spend("bot", "task", 100).await;
    let status = printed(&till.world, &["status"]).await;
    assert!(status.contains("  budgets    1 used up; `sprag budgets` lists them\n"), "{status}");

    let adjust = |more: &[&'static str]| [&["budgets", "adjust", "agent:bot", "daily"], more].concat();
    let told = printed(&till.world, &adjust(&["-0.30", "--reason", "refund of a failed batch"])).await;
    assert_eq!(told, "agent:bot daily: $0.70 spent of $1.00, before $1.00\n");
    let told = printed(&till.world, &adjust(&["--reason", "gone", "-7"])).await;
    assert_eq!(
        told,
        "agent:bot daily: $0.00 spent of $1.00, before $0.70\nNote: only $0.70 was spent: that was taken away, and no more\n"
    );
    let json = printed(&till.world, &adjust(&["0.1", "--reason", "x", "--json"])).await;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["settled_usd"], json!(0.1));

    let admin = till.world.sprag.admin.to_string();
    let unknown = ["budgets", "adjust", "agent:bto", "daily", "1", "--reason", "x", "--admin", &admin];
    assert!(complaint(&unknown, Some(TOKEN)).await.contains("no agent of this name is known, so nothing was changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_are_told_in_a_sentence_among_the_calls() {
    let till = Till::start(|settings| settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0)).await;
    till.spend("bot", "task", 100).await;
    till.adjust("agent:bot daily", "-0.25").await;
    done(&till.world, "POST", "/runs/bot/task/kill", &json!({"reason": "enough", "by": "ben"})).await;
    done(&till.world, "POST", "/kills", &json!({"scope": "all", "reason": "fire", "by": "ben"})).await;
    let shown = printed(&till.world, &["events"]).await;
    let found = |told: &str| shown.lines().any(|line| line.ends_with(told));
    for told in [
        "budget reached: agent:bot daily: 100 % of $1.00 used",
        "budget adjusted: agent:bot daily -$0.250000 to $0.750000 by admin (anna): refund",
        "killed run:bot/task by admin (ben): enough",
        "killed all by admin (ben): fire",
    ] {
        assert!(found(told), "{told}: {shown}");
    }
    let of_all = shown.lines().find(|line| line.ends_with("fire")).unwrap();
    assert!(!of_all.contains("default") && !of_all.contains(" - "), "no cells of calls: {of_all}");
    let call = shown.lines().find(|line| line.contains("gpt-4o")).unwrap();
    assert!(call.contains("$1.000000") && call.ends_with("complete"), "{shown}");
}
