//! Many calls at once against little money.

use sprag_core::policy::{Reserve, Window};
use sprag_testkit::Script;

use crate::purse::{Purse, budget, cents, chat, reason};

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_at_once_never_overrun_a_dollar() {
    for (window, reserve, has_limit) in [
        (Window::Run, Reserve::Expected, false),
        (Window::Day, Reserve::Expected, false),
        (Window::Month, Reserve::Expected, true),
        (Window::Run, Reserve::WorstCase, true),
        (Window::Day, Reserve::WorstCase, true),
    ] {
        let case = format!("{window:?} {reserve:?} {has_limit}");
        let purse = Purse::start_with(Script::new(), |settings| {
            settings.policies.defaults.budget = sprag_core::policy::Budget { reserve, ..budget(window, 100) };
        })
        .await;
        let mut body = chat("hello");
        if has_limit {
            body["max_tokens"] = serde_json::json!(30);
        }
        let calls: Vec<_> = (0..500).map(|_| tokio::spawn(purse.send("task", 30, &body).fetch())).collect();
        let mut passed = 0;
        for call in calls {
            let answer = call.await.unwrap().unwrap();
            match reason(&answer).as_str() {
                "" => passed += 1,
                "budget_exceeded" | "run_killed" => {}
                other => panic!("{case}: {other}"),
            }
        }
        assert_eq!((passed, purse.forwarded()), (3, 3), "{case}");
        purse.sprag.settled(500).await;
        purse.nothing_is_reserved();
        let spent: i64 = purse.sprag.app.state.accounts().iter().map(|state| state.account.settled.0).max().unwrap();
        assert_eq!(spent, cents(90).0, "{case}");
    }
}
