use sprag_core::loops::Mode;
use sprag_core::policy::{Reserve, Window};

use super::*;

fn row(limit: i64, settled: i64, reserved: i64) -> BudgetRow {
    let limit = BudgetLimit {
        amount: NanoUsd(limit),
        mode: Mode::Enforce,
        level: Level::Agent,
        reserve: Reserve::Expected,
        stages: Arc::from([]),
    };
    BudgetRow {
        id: "agent:bot daily".parse().unwrap(),
        span: None,
        limit: Some(limit),
        settled: NanoUsd(settled),
        reserved: NanoUsd(reserved),
        adjusted: NanoUsd::ZERO,
    }
}

#[test]
fn all_of_a_limit_is_all_of_it_and_no_less() {
    let used = |limit, settled| row(limit, settled, 0).thousandths(NanoUsd(settled));
    assert_eq!(used(1_000, 999), Some(999));
    assert_eq!(used(1_000_000, 999_999), Some(999), "rounded down");
    assert_eq!(used(1_000, 1_000), Some(1_000));
    assert_eq!(used(1, i64::MAX / 1_000), Some(i64::MAX as u64 / 1_000 * 1_000), "without an overflow");
    assert_eq!(row(10, 8, 1).remaining(), Some(NanoUsd(1)));
    assert_eq!(row(10, 12, 1).remaining(), Some(NanoUsd::ZERO), "overspent");
}

#[test]
fn the_widest_stand_first() {
    let texts =
        ["run:a/r run", "key:k daily", "agent:b daily", "agent:a monthly", "agent:a daily", "everything monthly"];
    let mut ids: Vec<AccountId> = texts.iter().map(|text| text.parse().unwrap()).collect();
    ids.sort_by_cached_key(place);
    let sorted: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let expected =
        ["everything monthly", "agent:a daily", "agent:a monthly", "agent:b daily", "key:k daily", "run:a/r run"];
    assert_eq!(sorted, expected);
    assert_eq!(ids[1].window, Window::Day);
}
