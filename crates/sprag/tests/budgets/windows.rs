//! Days and months as they are lived: in their zone, over changes of the clock, of the limits, and of the process.

use std::sync::atomic::Ordering;

use serde_json::json;
use sprag_core::policy::{Window, Zone};
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;

use crate::purse::{Purse, budget, cents, reason, wordy};

const HOUR: i64 = 3_600_000;

async fn purse_at(zone: &str, at: &str, window: Window) -> Purse {
    let zone = Zone::named(zone).unwrap();
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(window, 100);
        settings.budget.zone = zone;
    });
    let purse = purse.await;
    set(&purse, at);
    purse
}

fn moment(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn set(purse: &Purse, at: &str) {
    purse.clock.store(moment(at).0, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_twenty_five_hours_is_one_day() {
    // The clocks go back at 03:00 of 26 October 2025, and the day ends at 23:00 in UTC.
    let purse = purse_at("Europe/Berlin", "2025-10-25T22:00:00Z", Window::Day).await;
    assert_eq!(purse.ask("a", 60).await.status, 200, "midnight has struck");
    for hours in [3, 20] {
        purse.pass_seconds(hours * 3600);
        assert_eq!(purse.ask("b", 60).await.status, 402);
    }
    set(&purse, "2025-10-26T22:59:59Z");
    let refused = purse.ask("c", 60).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["retry_after_seconds"]), (402, &json!(1)));
    purse.pass_seconds(1);
    assert_eq!(purse.ask("d", 60).await.status, 200, "a new day");
    // In spring it has 23.
    set(&purse, "2026-03-28T23:00:00Z");
    assert_eq!(purse.ask("e", 60).await.status, 200);
    set(&purse, "2026-03-29T21:59:59Z");
    assert_eq!(purse.ask("f", 60).await.status, 402);
    purse.pass_seconds(1);
    assert_eq!(purse.ask("g", 60).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_ends_at_midnight_of_its_zone() {
    // November in New York begins in summer time and ends in winter time.
    let purse = purse_at("America/New_York", "2025-11-01T03:59:59Z", Window::Month).await;
    assert_eq!(purse.ask("a", 70).await.status, 200);
    assert_eq!(purse.ask("a", 70).await.status, 402, "October");
    purse.pass_seconds(1);
    assert_eq!(purse.ask("b", 70).await.status, 200, "November");
    set(&purse, "2025-12-01T04:59:59Z");
    assert_eq!(purse.ask("c", 70).await.status, 402);
    purse.pass_seconds(1);
    assert_eq!(purse.ask("d", 70).await.status, 200, "December");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_midnight_belongs_to_the_day_it_began_in() {
    let purse = purse_at("Europe/Berlin", "2025-06-01T21:59:59Z", Window::Day).await;
    assert_eq!(purse.ask("a", 10).await.status, 200);
    let long = tokio::spawn(purse.call("b", 60).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    assert_eq!(purse.account("agent:default daily").reserved, cents(10));
    purse.pass_seconds(2);
    assert_eq!(purse.ask("c", 95).await.status, 200, "the new day owes nothing to the old one");
    assert_eq!(purse.account("agent:default daily").settled, cents(95));
    purse.provider.gate().open();
    assert_eq!(long.await.unwrap().unwrap().status, 200);
    purse.quiet().await;
    purse.nothing_is_reserved();
    assert_eq!(purse.account("agent:default daily").settled, cents(95));
    let app = &purse.sprag.app;
    let midnight = moment("2025-06-01T22:00:00Z");
    let spent = |since| app.history.spent(sprag_store::history::Spender::Everything, since).unwrap();
    assert_eq!((spent(midnight), spent(Timestamp(midnight.0 - HOUR))), (cents(95), cents(165)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_goes_back_gives_nothing_back() {
    let purse = purse_at("Europe/Berlin", "2025-06-02T08:00:00Z", Window::Day).await;
    assert_eq!(purse.ask("a", 60).await.status, 200);
    for back in [1, 12, 48] {
        purse.pass_seconds(-back * 3600);
        assert_eq!(purse.ask("a", 60).await.status, 402, "{back} hours");
    }
    set(&purse, "2025-06-02T09:00:00Z");
    assert_eq!(purse.ask("a", 60).await.status, 402);
    purse.pass_seconds(24 * 3600);
    assert_eq!(purse.ask("a", 60).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_counts_from_the_next_request_on_with_what_was_spent_before_it_was_set() {
    let purse = Purse::start(|_| {}).await;
    let ask = async |cents| purse.send("task", cents, &wordless(cents)).fetch().await.unwrap();
    assert_eq!(ask(80).await.status, 200, "nothing is limited");
    let long = tokio::spawn(purse.call("other", 15).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;

    let set = json!({"policy": {"budget": {"mode": "enforce", "daily_limit": 1}}, "by": "anna"});
    purse.admin("PATCH", "/agents/default", &set).await;
    assert_eq!(ask(30).await.status, 402, "80 of 100 are spent");
    assert_eq!(ask(5).await.status, 200);
    // What was under way when the limit was set counts too.
    purse.provider.gate().open();
    assert_eq!(long.await.unwrap().unwrap().status, 200);
    purse.quiet().await;
    assert_eq!(purse.account("agent:default daily").settled, cents(100));
    assert_eq!(ask(1).await.status, 402);

    purse.admin("PATCH", "/agents/default", &json!({"policy": {"budget": {"daily_limit": 2}}})).await;
    assert_eq!(ask(20).await.status, 200);
    purse.change_settings(|settings| settings.budget.budget = budget(Window::Month, 121));
    let refused = ask(2).await;
    assert_eq!(
        (&refused.json()["error"]["level"], &refused.json()["error"]["current_cost"]),
        (&json!("everything"), &json!(1.2))
    );
    purse.change_settings(|settings| settings.budget.budget = budget(Window::Month, 500));
    assert_eq!(ask(20).await.status, 200);
    purse.nothing_is_reserved();
}

fn wordless(limit: u64) -> serde_json::Value {
    let mut body = crate::purse::chat("hello");
    body["max_tokens"] = json!(limit);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn another_zone_moves_the_day_and_forgets_nothing() {
    let purse = purse_at("UTC", "2025-06-02T08:00:00Z", Window::Day).await;
    assert_eq!(purse.ask("a", 60).await.status, 200);
    let long = tokio::spawn(wordy(&purse, Dialect::OpenaiChat, false, 10, Some(10)).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    purse.change_settings(|settings| settings.budget.zone = Zone::named("Asia/Tokyo").unwrap());
    assert_eq!(reason(&purse.ask("a", 60).await), "budget_exceeded", "the day of Tokyo began at 15:00 of yesterday");
    purse.provider.gate().open();
    assert_eq!(long.await.unwrap().unwrap().status, 200);
    purse.quiet().await;
    assert_eq!(purse.account("agent:default daily").settled, cents(70));
    purse.nothing_is_reserved();
}
