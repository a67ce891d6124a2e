//! Corrections of what was spent: what they change, what they leave on record, and that they last.

use serde_json::{Value, json};
use sprag::config::Settings;
use sprag_core::event::ActKind;
use sprag_core::loops::Mode;

use crate::kills::{done, refused};
use crate::till::{Till, budget, configure, sums};

fn a_dollar_a_day(settings: &mut Settings) {
    settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_holds_for_the_next_call_and_over_a_restart() {
    let till = Till::start(a_dollar_a_day).await;
    assert_eq!(till.spend("bot", "task", 90).await, 200);
    assert_eq!(till.spend("bot", "task", 20).await, 402);
    let after = till.adjust("agent:bot daily", -0.5).await;
    assert_eq!(sums(std::slice::from_ref(&after)), [("agent:bot daily".to_owned(), 0.4, 0.0)]);
    assert_eq!(after["adjustment"], json!({"asked_usd": -0.5, "applied_usd": -0.5, "before_usd": 0.9, "note": null}));
    assert_eq!(after["adjusted_nano_usd"], -500_000_000);
    assert_eq!(till.spend("bot", "task", 20).await, 200);

    let data = till.world.sprag.stop().await;
    let till = Till::start_in(data.path().to_owned(), a_dollar_a_day).await;
    assert_eq!(sums(&till.budgets("").await), [("agent:bot daily".to_owned(), 0.6, 0.0)], "nobody has called yet");
    assert_eq!(till.spend("bot", "task", 40).await, 200);
    assert_eq!(till.spend("bot", "task", 1).await, 402);
    let after = till.adjust("agent:bot daily", "0.25").await;
    assert_eq!(sums(&[after]), [("agent:bot daily".to_owned(), 1.25, 0.0)], "more than the limit is no lie");
    till.pass_hours(24);
    assert_eq!(till.spend("bot", "task", 1).await, 200, "it was for that day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_leaves_an_event_with_before_and_after() {
    let till = Till::start(a_dollar_a_day).await;
    till.spend("bot", "task", 30).await;
    till.adjust("agent:bot daily", "-0.1").await;
    let events = till.world.sprag.events();
    let event = events.iter().find(|event| event.act.is_some()).unwrap();
    let act = event.act.as_ref().unwrap();
    assert_eq!((act.what, act.by.as_str(), act.reason.as_str()), (ActKind::AdjustBudget, "admin (anna)", "refund"));
    assert_eq!((act.target.as_str(), event.agent.as_str()), ("agent:bot daily", "bot"));
    let expected = json!({
        "asked_usd": -0.1, "amount_usd": -0.1, "amount_nano_usd": -100_000_000, "before_usd": 0.3, "after_usd": 0.2,
        "after_nano_usd": 200_000_000, "window": "daily", "starts_at": "2023-11-14T00:00:00.000Z",
    });
    assert_eq!(act.detail, Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spent_is_never_less_than_nothing() {
    let till = Till::start(a_dollar_a_day).await;
    till.spend("bot", "task", 30).await;
    let after = till.adjust("agent:bot daily", "-5").await;
    assert_eq!(sums(std::slice::from_ref(&after)), [("agent:bot daily".to_owned(), 0.0, 0.0)]);
    let told = &after["adjustment"];
    assert_eq!((&told["asked_usd"], &told["applied_usd"]), (&json!(-5.0), &json!(-0.3)));
    assert_eq!(told["note"], "only $0.30 was spent: that was taken away, and no more");
    let again = till.adjust("agent:bot daily", "-5").await;
    assert_eq!(again["adjustment"]["note"], "nothing was spent, so there was nothing to take away");
    till.spend("bot", "task", 20).await;
    assert_eq!(sums(&till.budgets("").await), [("agent:bot daily".to_owned(), 0.2, 0.0)], "no credit is left over");
    let acts = till.world.sprag.events().into_iter().filter(|event| event.act.is_some()).count();
    assert_eq!(acts, 1, "what changed nothing is no act");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_in_shadow_are_corrected_with_those_in_force() {
    let till = Till::start(|settings| configure(settings, "bot", budget(Mode::Shadow, 0, 1, 0))).await;
    till.spend("bot", "task", 90).await;
    let after = till.adjust("agent:bot daily", "-0.8").await;
    assert_eq!((&after["mode"], &after["settled_usd"]), (&"shadow".into(), &json!(0.1)));
    till.spend("bot", "task", 50).await;
    till.world.sprag.settled(2).await;
    assert!(till.world.sprag.events().iter().all(|event| event.would_block.is_empty()), "the shadow account has room");
    let in_force = json!({"policy": {"budget": {"mode": "enforce"}}});
    done(&till.world, "PATCH", "/agents/bot", &in_force).await;
    assert_eq!(sums(&till.budgets("").await), [("agent:bot daily".to_owned(), 0.6, 0.0)]);
    assert_eq!(till.spend("bot", "task", 50).await, 402);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_corrected_and_resumed_without_it() {
    let change = |settings: &mut Settings| settings.policies.defaults.budget = budget(Mode::Enforce, 1, 0, 0);
    let till = Till::start(change).await;
    till.spend("bot", "task", 40).await;
    let after = till.adjust("run:bot/task run", "0.6").await;
    assert_eq!((&after["settled_usd"], &after["starts_at"]), (&json!(1.0), &Value::Null));
    assert_eq!(till.spend("bot", "task", 10).await, 402, "and that kills it");
    done(&till.world, "POST", "/runs/bot/task/resume", &json!({})).await;
    assert_eq!(till.spend("bot", "task", 90).await, 200);
    let data = till.world.sprag.stop().await;
    let till = Till::start_in(data.path().to_owned(), change).await;
    assert_eq!(till.spend("bot", "task", 10).await, 200, "what was corrected before the resume counts no more");
    assert_eq!(till.spend("bot", "task", 1).await, 402);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_without_a_limit_may_be_corrected_too() {
    let till = Till::start(|_| {}).await;
    till.spend("bot", "task", 40).await;
    for account in ["everything monthly", "agent:bot daily", "run:bot/task run"] {
        let after = till.adjust(account, "0.1").await;
        assert_eq!((&after["settled_usd"], &after["limit_usd"]), (&json!(0.5), &Value::Null), "{account}");
        assert_eq!(after["adjustment"]["note"], "nothing limits this account", "{account}");
    }
    let limit = json!({"policy": {"budget": {"daily_limit": 1}}});
    done(&till.world, "PATCH", "/agents/bot", &limit).await;
    assert_eq!(sums(&till.budgets("").await), [("agent:bot daily".to_owned(), 0.5, 0.0)], "a later limit counts it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_said() {
    let till = Till::start(a_dollar_a_day).await;
    let say =
        |account: &str, amount: &str, reason: &str| json!({"account": account, "amount_usd": amount, "reason": reason});
    for (body, status, told) in [
        (say("agent:bot", "1", "x"), 400, "`account`: `agent:bot` does not end in a window"),
        (say("bot daily", "1", "x"), 400, "`account`: an account is `everything WINDOW`"),
        (say("agent:bot run", "1", "x"), 400, "`account`: agent:bot has no run budget"),
        (say("agent:bot daily", "much", "x"), 400, "`much` is not an amount of dollars"),
        (say("agent:bot daily", "0", "x"), 400, "`amount_usd` is what to add"),
        (say("agent:bot daily", "1", " "), 400, "say why in `reason`"),
        (json!({"amount_usd": 1, "reason": "x"}), 400, "say which in `account`"),
        (say("agent:bot daily", "1", "x"), 404, "no agent of this name is known, so nothing was changed"),
        (say("run:bot/task run", "1", "x"), 404, "no run of this agent and id is known"),
        (say("key:key-00000000 daily", "1", "x"), 404, "no virtual key of this id is known"),
    ] {
        let (got, detail) = refused(&till.world, "POST", "/budgets/adjust", &body).await;
        assert!(got == status && detail.contains(told), "{body}: {got} {detail}");
    }
    assert!(till.world.sprag.events().is_empty());
}
