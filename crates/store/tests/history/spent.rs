//! What was spent, by whom: sums that budgets start from.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use sprag_core::event::{Event, WouldBlock};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, HistorySettings, Recorded, Spender};

use crate::common::{Home, all_events, on_every_history, open, patient, request, step};

const QUARTER_MS: i64 = 15 * 60 * 1000;
/// The beginning of a quarter of an hour.
const START: i64 = 1_700_000_000_000 / QUARTER_MS * QUARTER_MS;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

on_every_history!(
    money_counts_for_its_agent_its_key_and_everybody_at_once,
    absurd_amounts_stop_nothing,
    keys_and_limits_in_shadow_come_back,
    the_key_of_money_is_kept_when_detail_is_not,
);

fn call(id: &str, agent: &str, key: Option<&str>, at: i64, cost: i64) -> Event {
    Event {
        agent: AgentName::parse(agent).unwrap(),
        key: key.map(str::to_owned),
        at: Timestamp(at),
        cost: Some(NanoUsd(cost)),
        ..step(id, "r", 1)
    }
}

fn money_counts_for_its_agent_its_key_and_everybody_at_once(home: &Home) {
    let history = home.open();
    for event in [
        call("1", "a", Some("k1"), START - 1, 1),
        call("2", "a", Some("k1"), START, 10),
        call("3", "a", Some("k2"), START + QUARTER_MS, 100),
        call("4", "b", None, START + 1, 1000),
    ] {
        assert_eq!(history.record(&event), Recorded::Whole);
    }
    let agent = |name: &str| AgentName::parse(name).unwrap();
    // Nothing was flushed: what waits in the spool counts too.
    let spent = |of: Spender<'_>, since| history.spent(of, Timestamp(since)).unwrap().0;
    assert_eq!(spent(Spender::Everything, START - 1), 1111);
    assert_eq!(spent(Spender::Everything, START), 1110);
    assert_eq!(spent(Spender::Everything, START + QUARTER_MS - 1), 1110, "from the beginning of its quarter");
    assert_eq!(["a", "b", "c"].map(|name| spent(Spender::Agent(&agent(name)), START)), [110, 1000, 0]);
    assert_eq!(["k1", "k2", "k3"].map(|key| spent(Spender::Key(key), START)), [10, 100, 0]);
    let all = history.spent_by_all(Timestamp(START)).unwrap();
    assert_eq!(all.agents, [(agent("b"), NanoUsd(1000)), (agent("a"), NanoUsd(110))]);
    assert_eq!(all.keys, [("k2".to_owned(), NanoUsd(100)), ("k1".to_owned(), NanoUsd(10))]);
    assert_eq!((all.everything, all.is_partial), (NanoUsd(1110), false));
    let none = history.spent_by_all(Timestamp(START + 2 * QUARTER_MS)).unwrap();
    assert!(none.agents.is_empty() && none.keys.is_empty() && none.everything == NanoUsd::ZERO);
}

fn absurd_amounts_stop_nothing(home: &Home) {
    let history = home.open();
    for n in 0..3 {
        history.record(&call(&format!("{n}"), "a", Some("k"), START + n * QUARTER_MS, i64::MAX));
        history.record(&call(&format!("{n} again"), "a", Some("k"), START + n * QUARTER_MS, i64::MAX));
    }
    assert_eq!(history.spent(Spender::Key("k"), Timestamp(START)).unwrap(), NanoUsd(i64::MAX));
    assert_eq!(history.spent_by_all(Timestamp(START)).unwrap().everything, NanoUsd(i64::MAX));
}

fn keys_and_limits_in_shadow_come_back(home: &Home) {
    let history = home.open();
    let would = |limit: Option<&str>| WouldBlock {
        reason: "budget_exceeded".into(),
        exceeded_limit: limit.map(str::to_owned),
        message: "no money left".into(),
    };
    let would_block = vec![would(Some("daily")), would(None)];
    let event = Event { would_block, ..call("1", "a", Some("k1"), START, 1) };
    history.record(&event);
    history.record(&call("2", "a", None, START, 1));
    history.flush().unwrap();
    let of_key = EventFilter { key: Some("k1".into()), ..EventFilter::default() };
    assert_eq!(all_events(&history, &of_key), [event]);
    assert_eq!(all_events(&history, &EventFilter::default()).len(), 2);
}

fn the_key_of_money_is_kept_when_detail_is_not(home: &Home) {
    let history = home.open_with(HistorySettings { spool_bytes: 1, ..patient() });
    assert_eq!(history.record(&call("1", "a", Some("k1"), START, 5)), Recorded::MoneyOnly);
    assert_eq!(history.spent(Spender::Key("k1"), Timestamp(START)).unwrap(), NanoUsd(5));
}

#[test]
fn sums_of_keys_grow_old_like_those_of_agents() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    history.record(&call("old", "a", Some("k"), START - 1, 1));
    history.record(&call("kept", "a", Some("k"), START, 10));
    history.record(&Event { key: Some("k".into()), blocked: true, ..request("refused") });
    assert_eq!(history.spent(Spender::Key("k"), Timestamp(0)).unwrap(), NanoUsd(11));
    history.prune(Timestamp(START + 400 * DAY_MS)).unwrap();
    assert_eq!(history.spent(Spender::Key("k"), Timestamp(0)).unwrap(), NanoUsd(10), "at the bound");
    assert_eq!(history.spent(Spender::Everything, Timestamp(0)).unwrap(), NanoUsd(10));
    history.prune(Timestamp(START + 401 * DAY_MS)).unwrap();
    assert!(history.spent_by_all(Timestamp(0)).unwrap().keys.is_empty());
}
