//! What accounts begin with, and which calls concern them.

use super::tests::{draw, seed};
use super::*;
use crate::policy::budget::Window;
use crate::policy::calendar::Span;

const MONDAY: i64 = 1_000;
const TUESDAY: i64 = 1_100;

fn day(start: i64, seed: Option<Seed>) -> Draw {
    let span = Span { start: Timestamp(start), end: Timestamp(start + 100) };
    Draw { span, seed, ..draw("a", Window::Day, 100) }
}

fn ask(ledger: &mut Ledger, draw: &Draw, amount: i64, now: i64) -> Result<Reservation, Denied> {
    ledger.reserve(std::slice::from_ref(draw), NanoUsd(amount), NanoUsd(amount), Timestamp(now))
}

/// The epoch for what is read from now on.
fn unseeded(ledger: &mut Ledger, draw: &Draw, now: i64) -> Epoch {
    match ask(ledger, draw, 1, now) {
        Err(Denied::Unseeded(places)) => {
            assert_eq!(places.len(), 1);
            places[0].1
        }
        other => panic!("{other:?}"),
    }
}

fn settled(ledger: &mut Ledger) -> i64 {
    ledger.account(&day(0, None).id).unwrap().settled.0
}

#[test]
fn no_account_is_opened_by_a_call_that_does_not_know_what_it_has_spent() {
    let mut ledger = Ledger::default();
    let known = Draw { seed: seed(0), ..draw("r", Window::Run, 100) };
    let draws = [known.clone(), day(MONDAY, None), Draw { seed: None, ..draw("*", Window::Day, 100) }];
    let denied = ledger.reserve(&draws, NanoUsd(1), NanoUsd(1), Timestamp(MONDAY)).unwrap_err();
    assert!(matches!(&denied, Denied::Unseeded(places) if places.iter().map(|(at, _)| *at).eq([1, 2])), "{denied:?}");
    assert_eq!(ledger.account(&known.id).unwrap().reserved, NanoUsd::ZERO, "all or nothing");
    assert!(ledger.account(&draws[1].id).is_none());

    // It was open when the call arrived, and is gone when it draws on it.
    let epoch = unseeded(&mut ledger, &day(MONDAY, None), MONDAY);
    let opened = ask(&mut ledger, &day(MONDAY, Some(Seed { spent: NanoUsd(90), epoch })), 5, MONDAY).unwrap();
    ledger.settle(&opened, NanoUsd(5));
    assert!(ask(&mut ledger, &day(MONDAY, None), 6, MONDAY).is_err(), "open, and short");
    ledger.forget(|_| true);
    unseeded(&mut ledger, &day(MONDAY, None), MONDAY);
    unseeded(&mut ledger, &day(MONDAY, Some(Seed { spent: NanoUsd(90), epoch })), MONDAY);
    assert_eq!(ledger.len(), 0);
}

#[test]
fn what_was_read_before_a_change_is_read_again() {
    type Change = fn(&mut Ledger, &AccountId);
    let changes: [(&str, Change); 4] = [
        ("corrected", |ledger, id| assert!(ledger.adjust(id, NanoUsd(5)).is_none())),
        ("charged late", |ledger, id| assert!(ledger.charge_late(id, Timestamp(MONDAY), NanoUsd(5)).is_none())),
        ("reset", |ledger, id| ledger.reset(id)),
        ("on its way to the record, and there", |ledger, id| {
            ledger.begin_change([id].into_iter());
            ledger.end_change([id].into_iter());
        }),
    ];
    for (name, change) in changes {
        let mut ledger = Ledger::default();
        let epoch = unseeded(&mut ledger, &day(MONDAY, None), MONDAY);
        let read = day(MONDAY, Some(Seed { spent: NanoUsd(50), epoch }));
        change(&mut ledger, &read.id);
        let epoch = unseeded(&mut ledger, &read, MONDAY);
        let read = day(MONDAY, Some(Seed { spent: NanoUsd(55), epoch }));
        assert!(ask(&mut ledger, &read, 45, MONDAY).is_ok(), "{name}");
        assert_eq!(settled(&mut ledger), 55, "{name}");
    }
}

#[test]
fn nothing_is_opened_while_a_change_is_half_on_record() {
    let mut ledger = Ledger::default();
    let id = day(MONDAY, None).id;
    ledger.begin_change([&id].into_iter());
    let epoch = unseeded(&mut ledger, &day(MONDAY, None), MONDAY);
    let read = day(MONDAY, Some(Seed { spent: NanoUsd(50), epoch }));
    unseeded(&mut ledger, &read, MONDAY);
    assert_eq!(ledger.charge_late(&id, Timestamp(MONDAY), NanoUsd(50)), None, "it is in what was read, or not");
    ledger.end_change([&id].into_iter());
    unseeded(&mut ledger, &read, MONDAY);
}

#[test]
fn a_call_of_yesterday_holds_nothing_of_today() {
    let mut ledger = Ledger::default();
    let today = ask(&mut ledger, &day(TUESDAY, seed(20)), 10, TUESDAY).unwrap();
    // It was made before midnight and waited: its own day is over.
    let late = ask(&mut ledger, &day(MONDAY, None), 90, TUESDAY + 1).unwrap();
    assert_eq!((late.amount, late.accounts.len()), (NanoUsd(90), 0));
    assert_eq!(ledger.account(&day(TUESDAY, None).id).unwrap().reserved, NanoUsd(10));
    assert_eq!(ledger.settle(&late, NanoUsd(90)), []);
    assert_eq!(ledger.charge(&[day(MONDAY, None)], NanoUsd(7)), []);
    ledger.settle(&today, NanoUsd(10));
    assert_eq!(settled(&mut ledger), 30);
    // A clock that went back gives no day back.
    assert!(ask(&mut ledger, &day(MONDAY, None), 71, TUESDAY - 1).is_err());
}

#[test]
fn a_call_of_the_old_zone_does_not_forget_what_was_spent() {
    let mut ledger = Ledger::default();
    let moved = ask(&mut ledger, &day(MONDAY + 20, seed(60)), 10, MONDAY + 30).unwrap();
    let old = day(MONDAY, None);
    unseeded(&mut ledger, &old, MONDAY + 30);
    assert_eq!(ledger.charge(std::slice::from_ref(&old), NanoUsd(1)), []);
    ledger.settle(&moved, NanoUsd(10));
    let account = ledger.account(&old.id).unwrap();
    assert_eq!((account.settled, account.span), (NanoUsd(70), day(MONDAY + 20, None).span));
}

#[test]
fn what_is_charged_late_says_what_was_spent_before() {
    let mut ledger = Ledger::default();
    let draw = day(MONDAY, seed(40));
    let held = ask(&mut ledger, &draw, 10, MONDAY).unwrap();
    assert_eq!(ledger.charge_late(&draw.id, Timestamp(TUESDAY), NanoUsd(70)), None, "of another day");
    assert_eq!(ledger.charge_late(&draw.id, Timestamp(MONDAY), NanoUsd(70)), Some(NanoUsd(40)));
    let reached =
        |marks: &[u8]| draw.crossed(NanoUsd(40), NanoUsd(110), marks).iter().map(|one| one.at).collect::<Vec<_>>();
    assert_eq!(reached(&[]), [100]);
    assert_eq!(reached(&[20, 50, 100]), [50, 100], "what somebody wants to hear of, each once");
    ledger.settle(&held, NanoUsd(10));
    assert_eq!(settled(&mut ledger), 120);
}
