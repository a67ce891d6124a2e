//! Corrections of what accounts have spent, and policies set by hand: kept, bounded, all or nothing.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Holder, Span, Window};
use sprag_core::time::Timestamp;
use sprag_store::catalog::Bounds;
use sprag_store::{Catalog, DataDir, StoreError};

fn open_with(path: &Path, bounds: Bounds) -> Catalog {
    Catalog::open(Arc::new(DataDir::open(path).unwrap()), bounds, Timestamp(0), |_| {}).unwrap()
}

fn open(path: &Path) -> Catalog {
    open_with(path, Bounds::default())
}

fn adjust(catalog: &Catalog, account: &str, start: i64, amount: i64) -> Result<i64, StoreError> {
    catalog.adjust(&account.parse().unwrap(), Timestamp(start), NanoUsd(amount)).map(|total| total.0)
}

fn in_span(catalog: &Catalog, account: &str, start: i64, end: i64) -> i64 {
    let span = Span { start: Timestamp(start), end: Timestamp(end) };
    catalog.snapshot().adjustment(&account.parse().unwrap(), span).0
}

fn adjusted(catalog: &Catalog, account: &str, start: i64) -> i64 {
    in_span(catalog, account, start, start + 1)
}

#[test]
fn adjustments_add_up_and_are_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let generation = catalog.snapshot().generation;
    assert_eq!(adjust(&catalog, "agent:bot daily", 100, 50).unwrap(), 50);
    assert_eq!(adjust(&catalog, "agent:bot daily", 100, -80).unwrap(), -30);
    assert_eq!(adjust(&catalog, "run:bot/my task run", 0, 7).unwrap(), 7);
    assert_eq!(adjust(&catalog, "everything monthly", 5, i64::MAX).unwrap(), i64::MAX);
    assert_eq!(adjust(&catalog, "everything monthly", 5, 1).unwrap(), i64::MAX, "no overflow");
    assert_eq!(catalog.snapshot().generation, generation + 5);
    drop(catalog);
    let catalog = open(dir.path());
    assert_eq!(adjusted(&catalog, "agent:bot daily", 100), -30);
    assert_eq!(adjusted(&catalog, "run:bot/my task run", 0), 7);
    assert_eq!(adjusted(&catalog, "everything monthly", 5), i64::MAX);
    for (account, start) in [("agent:bot daily", 101), ("agent:bot monthly", 100), ("agent:bot daily shadow", 100)] {
        assert_eq!(adjusted(&catalog, account, start), 0, "{account} {start}");
    }
}

#[test]
fn those_of_a_time_are_those_made_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    for (at, amount) in [(99, 1), (100, 20), (150, 300), (200, 4_000)] {
        adjust(&catalog, "agent:bot daily", at, amount).unwrap();
    }
    assert_eq!(in_span(&catalog, "agent:bot daily", 100, 200), 320);
    assert_eq!(in_span(&catalog, "agent:bot daily", 120, 220), 4_300, "the day of another zone");
    assert_eq!(in_span(&catalog, "agent:bot monthly", 0, 1_000), 0);
}

#[test]
fn those_of_the_oldest_times_leave_first_and_never_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { adjustments: 2, ..Bounds::default() };
    let catalog = open_with(dir.path(), bounds);
    let seen = |catalog: &Catalog| {
        [("agent:a daily", 1), ("agent:b daily", 2), ("agent:a daily", 3), ("run:a/r run", 0)]
            .map(|(account, start)| adjusted(catalog, account, start))
    };
    adjust(&catalog, "agent:b daily", 2, 2).unwrap();
    adjust(&catalog, "agent:a daily", 1, 1).unwrap();
    assert_eq!(seen(&catalog), [1, 2, 0, 0], "at the bound");
    adjust(&catalog, "agent:b daily", 2, 2).unwrap();
    assert_eq!(seen(&catalog), [1, 4, 0, 0], "a known one takes no room");
    adjust(&catalog, "agent:a daily", 3, 3).unwrap();
    assert_eq!(seen(&catalog), [0, 4, 3, 0], "one past it");
    adjust(&catalog, "run:a/r run", 0, 9).unwrap();
    assert_eq!(seen(&catalog), [0, 0, 3, 9], "the new one stays, however old");
    drop(catalog);
    assert_eq!(seen(&open_with(dir.path(), bounds)), [0, 0, 3, 9]);
}

#[test]
fn nothing_changes_when_it_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    adjust(&catalog, "agent:bot daily", 1, 5).unwrap();
    let other = rusqlite::Connection::open(dir.path().join("catalog.db")).unwrap();
    other
        .execute_batch("CREATE TRIGGER no BEFORE INSERT ON adjustments BEGIN SELECT RAISE(ABORT, 'no room'); END")
        .unwrap();
    let generation = catalog.snapshot().generation;
    assert!(matches!(adjust(&catalog, "agent:bot daily", 1, 5), Err(StoreError::Database { .. })));
    assert_eq!((adjusted(&catalog, "agent:bot daily", 1), catalog.snapshot().generation), (5, generation));
    drop(catalog);
    assert_eq!(adjusted(&open(dir.path()), "agent:bot daily", 1), 5);
}

#[test]
fn an_account_that_has_no_text_does_not_spoil_the_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let odd = AccountId { holder: Holder::Everything, window: Window::Run, is_shadow: false };
    catalog.adjust(&odd, Timestamp(1), NanoUsd(1)).unwrap();
    adjust(&catalog, "agent:bot daily", 1, 5).unwrap();
    drop(catalog);
    assert_eq!(adjusted(&open(dir.path()), "agent:bot daily", 1), 5);
}

#[test]
fn a_policy_set_by_hand_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let agent = AgentName::default();
    let policy = Some(json!({"budget": {"daily_limit": "1.00"}}));
    catalog.set_agent(&agent, |standing| AgentStanding { policy: policy.clone(), ..standing.clone() }).unwrap();
    catalog.set_agent(&agent, |standing| standing.activated(Timestamp(1))).unwrap();
    drop(catalog);
    assert_eq!(open(dir.path()).snapshot().agent(&agent).unwrap().policy, policy);
}
