//! Accounts that are opened while other things happen: with what was spent, or not at all.

use rusqlite::Connection;
use serde_json::json;
use sprag_core::policy::{Budget, Window, Zone};
use sprag_core::wire::Dialect;
use sprag_testkit::client::{Call, Whole};

use crate::purse::{Purse, budget, cents, chat, reason, wordy};
use crate::stages::crossings;

async fn purse(window: Window) -> Purse {
    Purse::start(|settings| settings.policies.defaults.budget = budget(window, 100)).await
}

fn said(purse: &Purse, run: &str, cents: u64) -> Call {
    let mut body = chat("hello");
    body["max_tokens"] = json!(cents);
    purse.send(run, cents, &body)
}

async fn ask(purse: &Purse, run: &str, cents: u64) -> Whole {
    said(purse, run, cents).fetch().await.unwrap()
}

fn execute(purse: &Purse, sql: &str) {
    let database = Connection::open(purse.sprag.data.path().join("sprag.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    database.execute_batch(sql).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_forgotten_while_a_call_waits_is_opened_with_what_was_spent() {
    let purse = purse(Window::Day).await;
    let by =
        |agent: &str, dialect, words| wordy(&purse, dialect, false, words, Some(words)).header("x-sprag-agent", agent);
    assert_eq!(by("bot", Dialect::Anthropic, 90).fetch().await.unwrap().status, 200);
    // The first call to a model goes ahead, and the second waits for it.
    let first = tokio::spawn(by("other", Dialect::OpenaiChat, 20).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    let second = tokio::spawn(by("bot", Dialect::OpenaiChat, 20).fetch());
    let app = &purse.sprag.app;
    crate::binary::wait_until(|| app.state.counts().in_flight == 2, || format!("{:?}", app.state.counts())).await;
    purse.change_settings(|_| {});
    purse.provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 200);
    let refused = second.await.unwrap().unwrap();
    assert_eq!((reason(&refused).as_str(), &refused.json()["error"]["current_cost"]), ("budget_exceeded", &json!(0.9)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_stops_calls_and_nothing_else() {
    let purse = purse(Window::Day).await;
    assert_eq!(ask(&purse, "a", 60).await.status, 200);
    purse.quiet().await;
    purse.all_events();
    purse.change_settings(|_| {});
    execute(&purse, "ALTER TABLE spend RENAME TO hidden");
    let refused = ask(&purse, "a", 10).await;
    assert_eq!(refused.status, 503, "{}", refused.json());
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("cannot be read now"), "{}", refused.json());
    assert_eq!(refused.header("retry-after"), "1");
    assert!(purse.sprag.app.state.accounts().is_empty(), "and it is not opened for that");
    execute(&purse, "ALTER TABLE hidden RENAME TO spend");
    assert_eq!(ask(&purse, "a", 40).await.status, 200, "it needs no other day");
    assert_eq!(ask(&purse, "a", 1).await.status, 402);
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_record_cannot_be_read_does_not_begin_anew() {
    let purse = purse(Window::Run).await;
    assert_eq!(ask(&purse, "task", 60).await.status, 200);
    let change = |settings: &mut sprag::config::Settings| settings.policies.defaults.budget = budget(Window::Run, 100);
    let (purse, data) = purse.restarted(change).await;
    let database = Connection::open(data.path().join("sprag.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    database.execute_batch("ALTER TABLE runs RENAME TO hidden").unwrap();
    assert_eq!(ask(&purse, "task", 50).await.status, 503);
    purse.change_settings(|settings| settings.policies.defaults.budget = Budget::default());
    assert_eq!(ask(&purse, "free", 50).await.status, 200, "where nothing is limited it does not matter");
    purse.change_settings(change);
    database.execute_batch("ALTER TABLE hidden RENAME TO runs").unwrap();
    assert_eq!(reason(&ask(&purse, "task", 50).await), "budget_exceeded");
    purse.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_counts_in_every_run_above_it() {
    let purse = Purse::start(|_| {}).await;
    let part = |run: &str, above: &str, cents| said(&purse, run, cents).header("x-sprag-parent-run-id", above);
    assert_eq!(ask(&purse, "top", 30).await.status, 200);
    assert_eq!(part("middle", "top", 1).fetch().await.unwrap().status, 200);
    let leaf = tokio::spawn(part("leaf", "middle", 60).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    let limit = json!({"policy": {"budget": {"mode": "enforce", "max_run_cost": 1}}, "by": "anna"});
    purse.admin("PATCH", "/agents/default", &limit).await;
    assert_eq!(ask(&purse, "top", 2).await.status, 200);
    assert!(crossings(&purse).is_empty());
    purse.provider.gate().open();
    assert_eq!(leaf.await.unwrap().unwrap().status, 200);
    purse.quiet().await;
    assert_eq!(purse.account("run:default/top run").settled, cents(93));
    assert_eq!(crossings(&purse), [("run:default/top run".to_owned(), 80)], "and it says what that has reached");
    assert_eq!(reason(&ask(&purse, "top", 8).await), "budget_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_outlives_another_zone_and_says_what_it_has_reached() {
    for zone in ["Asia/Tokyo", "America/New_York", "Asia/Kathmandu"] {
        let purse = purse(Window::Day).await;
        assert_eq!(ask(&purse, "a", 10).await.status, 200);
        let order = json!({"account": "agent:default daily", "amount_usd": "0.90", "reason": "elsewhere"});
        purse.admin("POST", "/budgets/adjust", &order).await;
        assert_eq!(crossings(&purse), [("agent:default daily".to_owned(), 100)]);
        purse.change_settings(|settings| settings.budget.zone = Zone::named(zone).unwrap());
        let refused = ask(&purse, "a", 20).await;
        assert_eq!(refused.json()["error"]["current_cost"], 1.0, "{zone}: {}", refused.json());
    }
}
