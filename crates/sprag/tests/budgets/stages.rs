//! What happens before a limit is reached, and limits that are only watched.

use std::sync::Arc;

use serde_json::json;
use sprag_core::event::{Event, EventKind};
use sprag_core::loops::Mode;
use sprag_core::policy::{Budget, Stage, StageAction, Window};
use sprag_testkit::client::Whole;

use crate::purse::{Purse, budget, cents, chat, reason};

async fn ask(purse: &Purse, run: &str, cents: u64) -> Whole {
    let mut body = chat("hello");
    body["max_tokens"] = json!(cents);
    purse.send(run, cents, &body).fetch().await.unwrap()
}

fn staged(limit: i64) -> Budget {
    let stages = [(50, StageAction::Warn), (80, StageAction::Throttle { delay_ms: 20 })];
    let stages: Arc<[Stage]> = stages.map(|(at, action)| Stage { at, action }).into();
    Budget { stages, ..budget(Window::Day, limit) }
}

fn warning(answer: &Whole) -> String {
    answer.json()["sprag"]["warning"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn crossings(purse: &Purse) -> Vec<(String, u64)> {
    let told = |event: Event| {
        let act = event.act.filter(|_| event.kind == EventKind::Budget)?;
        Some((act.target, act.detail?["percent"].as_u64()?))
    };
    purse.all_events().into_iter().filter_map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_warn_then_delay_and_each_is_put_on_record_once() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = staged(100)).await;
    assert_eq!(warning(&ask(&purse, "a", 40).await), "");
    assert_eq!(warning(&ask(&purse, "a", 15).await), "", "it crosses the line, and the next is told");
    let warned = ask(&purse, "a", 5).await;
    assert!(warning(&warned).contains("50 %"), "{}", warned.json());
    assert!(!warned.headers.keys().any(|name| name.as_str().contains("delay")), "{:?}", warned.headers);
    assert_eq!(ask(&purse, "a", 22).await.status, 200);
    let delayed = ask(&purse, "a", 3).await;
    assert_eq!(delayed.status, 200);
    assert_eq!((delayed.header("x-sprag-delay"), delayed.header("x-sprag-loop-delay")), ("20", ""), "that is no loop");
    let target = || "agent:default daily".to_owned();
    let mut expected = vec![(target(), 50), (target(), 80)];
    assert_eq!(crossings(&purse), expected);

    let (purse, _data) = purse.restarted(|settings| settings.policies.defaults.budget = staged(100)).await;
    assert!(warning(&ask(&purse, "b", 5).await).contains("80 %"));
    assert_eq!(crossings(&purse), expected, "not again because of a restart");
    let calls: Vec<_> = (0..20).map(|_| ask(&purse, "b", 1)).collect();
    futures_util::future::join_all(calls).await;
    expected.push((target(), 100));
    assert_eq!(crossings(&purse), expected, "once, however many come at once");
    assert_eq!(purse.account("agent:default daily").settled, cents(100));

    purse.pass_seconds(24 * 3600);
    assert_eq!(warning(&ask(&purse, "c", 60).await), "");
    expected.push((target(), 50));
    assert_eq!(crossings(&purse), expected, "a new day");
    // No answer waits for a stage that nobody has reached.
    assert!(warning(&ask(&purse, "c", 1).await).contains("50 %"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_shadow_refuses_nothing_and_says_what_it_would_have() {
    let shadow = Budget { mode: Mode::Shadow, ..budget(Window::Day, 50) };
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(Window::Day, 200);
        settings.budget.budget = shadow;
    })
    .await;
    for cents in [40, 40, 40] {
        assert_eq!(ask(&purse, "task", cents).await.status, 200);
    }
    let would: Vec<Option<String>> = purse
        .all_events()
        .into_iter()
        .map(|event| event.would_block.first().and_then(|would| would.exceeded_limit.clone()))
        .collect();
    assert_eq!(would, [None, Some("daily".to_owned()), Some("daily".to_owned())]);
    let accounts = purse.sprag.app.state.accounts();
    let of = |is_shadow| accounts.iter().filter(move |state| state.id.is_shadow == is_shadow).collect::<Vec<_>>();
    assert_eq!((of(true).len(), of(false).len()), (1, 1), "{accounts:?}");
    // What would not have been spent is counted all the same: it was.
    assert_eq!((of(true)[0].account.settled, of(false)[0].account.settled), (cents(120), cents(120)));
    purse.nothing_is_reserved();
    for (cents, expected) in [(40, ""), (40, ""), (40, "budget_exceeded")] {
        assert_eq!(reason(&ask(&purse, "task", cents).await), expected, "what is in force stays so");
    }
}
