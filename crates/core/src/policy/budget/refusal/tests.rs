use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::id::AgentName;
use crate::policy::budget::{Account, AccountId, Draw};
use crate::policy::calendar::Span;

const END: Timestamp = Timestamp(1_700_006_400_000);

fn run() -> Holder {
    Holder::Run(AgentName::parse("bot").unwrap(), RunId::parse("task-123").unwrap())
}

/// Amounts in cents.
fn short(holder: Holder, window: Window, level: Level, [limit, settled, reserved, amount]: [i64; 4]) -> Shortfall {
    let cents = |cents: i64| NanoUsd(cents * 10_000_000);
    let draw = Draw {
        id: AccountId { holder, window, is_shadow: false },
        limit: cents(limit),
        level,
        span: Span { start: Timestamp(0), end: END },
        seed: None,
        stages: Arc::default(),
    };
    let account = Account { settled: cents(settled), reserved: cents(reserved), ..Account::default() };
    Shortfall { draw, account, amount: cents(amount), least: cents(amount) }
}

fn told_at(shortfall: &Shortfall, now: Timestamp) -> (String, Option<u32>) {
    let stop = shortfall_refusal(shortfall, false, now);
    assert_eq!(stop.consequence, None);
    (stop.refusal.message, stop.refusal.retry_after_seconds)
}

#[test]
fn a_run_that_is_spent_is_killed_with_a_proof() {
    let stop = shortfall_refusal(&short(run(), Window::Run, Level::Agent, [100, 70, 0, 50]), true, END);
    assert_eq!(
        stop.refusal.message,
        "Budget exceeded: Run cost limit ($1.00): run `task-123` has spent $0.70, and this call needs $0.50; begin a new \
         run, resume this one on the dashboard or with `sprag resume`, or raise `budget.max_run_cost` of agent `bot`"
    );
    let fields = Value::from(stop.refusal.fields.clone());
    let proof = json!({
        "summary": "run `task-123` has spent $0.70 of $1.00, and a call needed $0.50",
        "compared": "max_run_cost", "threshold": 1.0, "value": 1.2, "steps": [],
    });
    assert_eq!(
        fields,
        json!({
            "exceeded_limit": "run", "level": "agent", "current_cost": 0.7, "limit": 1.0, "reserved": 0.0,
            "requested": 0.5, "kill_reason": "budget_exceeded", "killed_run": "task-123", "proof": proof,
        })
    );
    assert_eq!(fields["current_cost"].to_string(), "0.7");
    assert_eq!(stop.refusal.retry_after_seconds, None);
    let (run, reason) = (RunId::parse("task-123").unwrap(), "budget_exceeded".to_owned());
    let kill = Consequence::KillRun { run, reason, proof: Some(proof) };
    assert_eq!(stop.consequence.as_deref(), Some(&kill));
}

#[test]
fn a_run_is_not_killed_for_calls_under_way_or_for_one_large_call() {
    let waits = short(run(), Window::Run, Level::Key, [100, 30, 60, 50]);
    let stop = shortfall_refusal(&waits, true, END);
    assert_eq!((stop.consequence, stop.refusal.retry_after_seconds), (None, Some(1)));
    assert_eq!(
        stop.refusal.message,
        "Budget exceeded: Run cost limit ($1.00): run `task-123` has spent $0.30, calls under way hold $0.60, and this \
         call needs $0.50; try again when those calls are over, or raise `max_run_cost` of the key"
    );
    let large = short(run(), Window::Run, Level::Everything, [100, 0, 0, 101]);
    let stop = shortfall_refusal(&large, true, END);
    assert_eq!((stop.consequence, stop.refusal.retry_after_seconds), (None, None));
    assert!(stop.refusal.message.ends_with("ask for a shorter answer, or raise `budget.max_run_cost`"));
}

#[test]
fn a_run_that_is_only_refused_may_still_be_raised() {
    let (message, retry) = told_at(&short(run(), Window::Run, Level::Agent, [100, 100, 0, 1]), END);
    assert!(message.ends_with("begin a new run, or raise `budget.max_run_cost` of agent `bot`"), "{message}");
    assert_eq!(retry, None);
}

#[test]
fn days_and_months_say_when_they_end() {
    let agent = Holder::Agent(AgentName::parse("x").unwrap());
    let day = short(agent, Window::Day, Level::Agent, [10_000, 9_990, 0, 50]);
    assert_eq!(
        told_at(&day, Timestamp(END.0 - 59_001)),
        (
            "Budget exceeded: Daily budget of agent `x` ($100.00): spent is $99.90, and this call needs $0.50; wait until \
             2023-11-15T00:00:00.000Z, raise `budget.daily_limit` of agent `x`, or correct what was spent with `sprag \
             budgets adjust`"
                .to_owned(),
            Some(60)
        )
    );
    let month = short(Holder::Key("k1".into()), Window::Month, Level::Key, [100, 100, 5, 1]);
    let (message, retry) = told_at(&month, Timestamp(END.0 - 1));
    assert!(
        message.starts_with("Budget exceeded: Monthly budget of key `k1` ($1.00): spent is $1.00, calls under way")
    );
    assert!(message.contains("raise `monthly_limit` of the key"), "{message}");
    assert_eq!(retry, Some(1));
    let all = short(Holder::Everything, Window::Day, Level::Everything, [100, 0, 0, 200]);
    let (message, retry) = told_at(&all, Timestamp(0));
    assert!(message.starts_with("Budget exceeded: Daily budget of everything ($1.00)"), "{message}");
    assert_eq!(retry, None, "no day has room for it");
}

#[test]
fn a_full_ledger_is_no_fault_of_the_budget() {
    let stop = denied_refusal(&Denied::LedgerFull, true, END);
    assert_eq!((stop.refusal.reason, stop.refusal.retry_after_seconds), (Reason::Overloaded, Some(1)));
    let denied = Denied::Short(Box::new(short(run(), Window::Run, Level::Agent, [100, 70, 0, 50])));
    assert!(denied_refusal(&denied, true, END).consequence.is_some());
}
