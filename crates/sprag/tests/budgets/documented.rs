//! The documented example: a run may cost a dollar; $0.30 and $0.40 pass, $0.50 does not.

use serde_json::json;
use sprag::config::file::Compat;
use sprag_core::policy::Window;

use crate::purse::{Purse, budget, cents, chat, reason};

/// What a caller says about the length of an answer is known before it is made.
fn limited(tokens: u64) -> serde_json::Value {
    let mut body = chat("hello");
    body["max_tokens"] = json!(tokens);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_third_request_is_refused_before_it_is_sent() {
    for by_length in [false, true] {
        let purse = Purse::start(|settings| {
            settings.policies.defaults.budget = budget(Window::Run, 100);
            settings.responses.compat = vec![Compat::Agentwall];
        })
        .await;
        let ask = |cents: u64| {
            let body = if by_length { limited(cents) } else { chat("hello") };
            purse.send("task-123", cents, &body).fetch()
        };
        for cents in [30, 40] {
            let answer = ask(cents).await.unwrap();
            assert_eq!((answer.status.as_u16(), reason(&answer)), (200, String::new()));
        }
        let refused = ask(50).await.unwrap();
        assert_eq!(refused.status, 429, "as AgentWall has it");
        let expected = json!({
            "message": "Budget exceeded: Run cost limit ($1.00)",
            "type": "budget_exceeded",
            "code": "agentwall_budget",
            "run_id": "task-123",
            "exceeded_limit": "run",
            "current_cost": 0.70,
            "limit": 1.00,
        });
        assert_eq!(refused.json()["error"], expected);
        assert_eq!(purse.forwarded(), 2);
        let account = purse.account("run:default/task-123 run");
        assert_eq!((account.settled, account.reserved), (cents(70), cents(0)));

        // A run out of money is over.
        let after = ask(1).await.unwrap();
        assert_eq!(reason(&after), "run_killed");
        assert_eq!(after.json()["error"]["kill_reason"], "budget_exceeded");
        let other = purse.ask("task-124", 30).await;
        assert_eq!(other.status, 200, "another run has its own dollar");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_imitation_the_error_is_a_402_with_all_its_numbers() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 100)).await;
    for cents in [30, 40] {
        assert_eq!(purse.ask("task", cents).await.status, 200);
    }
    let refused = purse.send("task", 50, &limited(50)).fetch().await.unwrap();
    assert_eq!((refused.status.as_u16(), reason(&refused)), (402, "budget_exceeded".to_owned()));
    let body = refused.json();
    let error = &body["error"];
    assert_eq!((&error["type"], &error["code"]), (&json!("budget_exceeded"), &json!("sprag_budget")));
    assert_eq!((&error["exceeded_limit"], &error["level"]), (&json!("daily"), &json!("agent")));
    assert_eq!((&error["current_cost"], &error["limit"]), (&json!(0.7), &json!(1.0)));
    assert_eq!((&error["reserved"], &error["run_id"]), (&json!(0.0), &json!("task")));
    assert!(error["message"].as_str().unwrap().starts_with("Budget exceeded: "), "{error}");
    // 22:13:20 in UTC.
    assert_eq!(body["retry_after_seconds"], 24 * 3600 - (22 * 3600 + 13 * 60 + 20));
    assert_eq!(refused.headers["x-should-retry"], "false");

    purse.pass_seconds(2 * 3600);
    assert_eq!(purse.ask("task", 50).await.status, 200, "a new day, and the run was not killed");
}
