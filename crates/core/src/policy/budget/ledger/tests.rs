use std::sync::Arc;

use super::*;
use crate::id::{AgentName, RunId};
use crate::policy::budget::{Holder, Level, Stage, StageAction, Window};
use crate::policy::calendar::Span;

const NOW: Timestamp = Timestamp(1_000);

/// `r…` is a run, `k…` a key, `*` everything, and any other name an agent.
pub(super) fn id(name: &str, window: Window) -> AccountId {
    let agent = || AgentName::parse(name).unwrap();
    let holder = match name.as_bytes()[0] {
        b'r' => Holder::Run(AgentName::default(), RunId::parse(name).unwrap()),
        b'k' => Holder::Key(name.into()),
        b'*' => Holder::Everything,
        _ => Holder::Agent(agent()),
    };
    AccountId { holder, window, is_shadow: false }
}

pub(super) fn draw(name: &str, window: Window, limit: i64) -> Draw {
    let span = Span { start: Timestamp(i64::MIN), end: Timestamp(i64::MAX) };
    let (limit, seed) = (NanoUsd(limit), Some(Seed::default()));
    Draw { id: id(name, window), limit, level: Level::Agent, span, seed, stages: Arc::default() }
}

fn run(limit: i64) -> Draw {
    draw("r", Window::Run, limit)
}

fn day(name: &str, limit: i64, start: i64) -> Draw {
    let span = Span { start: Timestamp(start), end: Timestamp(start + 100) };
    Draw { span, ..draw(name, Window::Day, limit) }
}

pub(super) fn seed(spent: i64) -> Option<Seed> {
    Some(NanoUsd(spent).into())
}

fn reserve(ledger: &mut Ledger, draws: &[Draw], amount: i64) -> Result<Reservation, Denied> {
    reserve_at(ledger, draws, amount, amount, NOW)
}

/// Accounts may share an epoch, so a seed may have to be brought again.
fn reserve_at(
    ledger: &mut Ledger,
    draws: &[Draw],
    amount: i64,
    least: i64,
    now: Timestamp,
) -> Result<Reservation, Denied> {
    let mut draws = draws.to_vec();
    loop {
        let reserved = ledger.reserve(&draws, NanoUsd(amount), NanoUsd(least), now);
        let Err(Denied::Unseeded(places)) = reserved else { return reserved };
        for (place, epoch) in places {
            draws[place].seed = draws[place].seed.map(|seed| Seed { epoch, ..seed });
        }
    }
}

fn short(denied: Denied) -> Shortfall {
    match denied {
        Denied::Short(short) => *short,
        Denied::LedgerFull | Denied::Unseeded(_) => panic!("{denied:?}"),
    }
}

/// Whether the account of a draw is open for its time.
fn knows(ledger: &mut Ledger, draw: &Draw) -> bool {
    ledger.account(&draw.id).is_some_and(|account| account.span == draw.span)
}

fn held(ledger: &mut Ledger, draw: &Draw) -> (i64, i64) {
    let account = ledger.slots.by_id(&draw.id).unwrap();
    (account.settled.0, account.reserved.0)
}

#[test]
fn a_call_may_use_a_limit_up_and_no_more() {
    let mut ledger = Ledger::default();
    for (cost, reserved) in [(30, 30), (40, 40)] {
        let reservation = reserve(&mut ledger, &[run(100)], reserved).unwrap();
        ledger.settle(&reservation, NanoUsd(cost));
    }
    let refused = short(reserve(&mut ledger, &[run(100)], 50).unwrap_err());
    assert_eq!((refused.account.settled, refused.amount, refused.may_pass()), (NanoUsd(70), NanoUsd(50), false));
    assert!(reserve(&mut ledger, &[run(100)], 31).is_err());
    assert!(reserve(&mut ledger, &[run(100)], 30).is_ok(), "exactly at the limit");
}

#[test]
fn nothing_is_set_aside_where_one_account_has_no_room() {
    let mut ledger = Ledger::default();
    let (a, b) = (day("a", 100, 1_000), day("*", 10, 1_000));
    let refused = short(reserve(&mut ledger, &[a.clone(), b.clone(), run(5)], 20).unwrap_err());
    assert_eq!(refused.draw.id, b.id, "the first in the order given");
    assert_eq!((held(&mut ledger, &a), held(&mut ledger, &b)), ((0, 0), (0, 0)));
}

#[test]
fn what_waits_only_for_calls_under_way_may_pass() {
    let mut ledger = Ledger::default();
    let first = reserve(&mut ledger, &[run(100)], 60).unwrap();
    assert!(short(reserve(&mut ledger, &[run(100)], 60).unwrap_err()).may_pass());
    assert!(!short(reserve(&mut ledger, &[run(100)], 101).unwrap_err()).may_pass());
    ledger.settle(&first, NanoUsd(40));
    assert!(reserve(&mut ledger, &[run(100)], 60).is_ok());
}

#[test]
fn a_guess_takes_what_is_left_but_never_beside_another() {
    let mut ledger = Ledger::default();
    let guess = |ledger: &mut Ledger, limit, least| reserve_at(ledger, &[run(limit)], 500, least, NOW);
    let first = guess(&mut ledger, 100, 10).unwrap();
    assert_eq!(first.amount, NanoUsd(100));
    assert!(short(guess(&mut ledger, 200, 10).unwrap_err()).may_pass(), "one at a time");
    ledger.settle(&first, NanoUsd(70));
    assert!(guess(&mut ledger, 100, 31).is_err(), "what is no guess does not fit");
    assert_eq!(guess(&mut ledger, 100, 30).unwrap().amount, NanoUsd(30));
}

#[test]
fn a_guess_shrinks_to_the_smallest_room_of_all() {
    let mut ledger = Ledger::default();
    let draws = [run(300), day("a", 200, 1_000), day("*", 10_000, 1_000)];
    let reservation = ledger.reserve(&draws, NanoUsd(500), NanoUsd(1), NOW).unwrap();
    assert_eq!(reservation.amount, NanoUsd(200));
    assert!(draws.iter().all(|draw| held(&mut ledger, draw) == (0, 200)));
}

#[test]
fn a_free_call_passes_and_an_unpriced_one_while_anything_is_left() {
    let mut ledger = Ledger::default();
    let spent = Draw { seed: seed(100), ..run(100) };
    assert!(reserve(&mut ledger, std::slice::from_ref(&spent), 0).is_ok());
    assert!(reserve(&mut ledger, std::slice::from_ref(&spent), 1).is_err());
    assert!(reserve(&mut ledger, &[run(101)], 1).is_ok());
    assert!(reserve(&mut ledger, &[run(101)], 1).is_err(), "what is set aside counts");
}

#[test]
fn a_day_begins_with_its_seed_and_leaves_calls_of_the_day_before_alone() {
    let mut ledger = Ledger::default();
    let monday = Draw { seed: seed(7), ..day("a", 100, 1_000) };
    assert!(!knows(&mut ledger, &monday));
    let late = reserve(&mut ledger, std::slice::from_ref(&monday), 60).unwrap();
    assert!(knows(&mut ledger, &monday));
    assert_eq!(held(&mut ledger, &monday), (7, 60));

    let tuesday = Draw { seed: seed(3), ..day("a", 100, 1_100) };
    assert!(!knows(&mut ledger, &tuesday));
    let early = reserve(&mut ledger, std::slice::from_ref(&tuesday), 97).unwrap();
    assert_eq!(held(&mut ledger, &tuesday), (3, 97));
    assert_eq!(ledger.settle(&late, NanoUsd(60)), []);
    assert_eq!(held(&mut ledger, &tuesday), (3, 97));
    ledger.settle(&early, NanoUsd(90));
    assert_eq!(held(&mut ledger, &tuesday), (93, 0));
}

#[test]
fn a_clock_that_went_back_opens_no_new_day() {
    let mut ledger = Ledger::default();
    let tuesday = Draw { seed: seed(90), ..day("a", 100, 1_100) };
    let monday = day("a", 100, 1_000);
    let reservation = reserve(&mut ledger, std::slice::from_ref(&tuesday), 5).unwrap();
    ledger.settle(&reservation, NanoUsd(5));
    assert!(reserve(&mut ledger, std::slice::from_ref(&monday), 6).is_err());
    assert_eq!(held(&mut ledger, &tuesday), (95, 0));
}

#[test]
fn another_time_zone_asks_for_the_seed_and_keeps_calls_under_way() {
    let mut ledger = Ledger::default();
    let reservation = reserve(&mut ledger, &[day("a", 100, 1_000)], 40).unwrap();
    let moved = Draw { seed: seed(20), ..day("a", 100, 1_020) };
    assert!(!knows(&mut ledger, &moved));
    assert!(reserve(&mut ledger, std::slice::from_ref(&moved), 41).is_err());
    ledger.settle(&reservation, NanoUsd(30));
    assert_eq!(held(&mut ledger, &moved), (50, 0));
}

#[test]
fn a_reservation_is_raised_everywhere_or_nowhere() {
    let mut ledger = Ledger::default();
    let (a, b) = (day("a", 100, 1_000), day("*", 50, 1_000));
    let mut reservation = reserve(&mut ledger, &[a.clone(), b.clone()], 20).unwrap();
    assert_eq!(ledger.raise(&mut reservation, NanoUsd(10)), Ok(()));
    assert_eq!(reservation.amount, NanoUsd(20), "never lowered");
    assert_eq!(ledger.raise(&mut reservation, NanoUsd(50)), Ok(()));
    let refused = ledger.raise(&mut reservation, NanoUsd(51)).unwrap_err();
    assert_eq!((refused.draw.id.clone(), refused.account.reserved), (b.id.clone(), NanoUsd(0)));
    assert_eq!((held(&mut ledger, &a), held(&mut ledger, &b)), ((0, 50), (0, 50)));
    // The day of one account ends: it holds nobody up any more.
    let _ = reserve(&mut ledger, &[day("*", 50, 1_100)], 50).unwrap();
    assert_eq!(ledger.raise(&mut reservation, NanoUsd(100)), Ok(()));
    ledger.settle(&reservation, NanoUsd(80));
    assert_eq!((held(&mut ledger, &a), held(&mut ledger, &b)), ((80, 0), (0, 50)));
}

#[test]
fn two_limits_on_one_account_hold_its_money_once() {
    let mut ledger = Ledger::default();
    let draws = [run(100), Draw { level: Level::Key, ..run(50) }];
    let mut reservation = reserve(&mut ledger, &draws, 30).unwrap();
    assert_eq!(held(&mut ledger, &draws[0]), (0, 30));
    assert_eq!(ledger.raise(&mut reservation, NanoUsd(51)).unwrap_err().draw.level, Level::Key);
    assert_eq!(ledger.raise(&mut reservation, NanoUsd(50)), Ok(()));
    let crossed = ledger.settle(&reservation, NanoUsd(50));
    assert_eq!(held(&mut ledger, &draws[0]), (50, 0));
    assert_eq!(crossed.iter().map(|crossed| crossed.draw.level).collect::<Vec<_>>(), [Level::Key]);
}

#[test]
fn each_stage_is_told_once_and_so_is_the_limit() {
    let mut ledger = Ledger::default();
    let stage = |at| Stage { at, action: StageAction::Warn };
    let draw = Draw { stages: [stage(50), stage(80)].into(), ..run(100) };
    let mut pay = |cost| {
        let reservation = reserve(&mut ledger, std::slice::from_ref(&draw), 1).unwrap();
        let reached = reservation.stages_reached().map(|(_, stage)| stage.at).next();
        let crossed = ledger.settle(&reservation, NanoUsd(cost));
        (reached, crossed.iter().map(|crossed| (crossed.at, crossed.settled.0)).collect::<Vec<_>>())
    };
    assert_eq!(pay(49), (None, vec![]));
    assert_eq!(pay(1), (None, vec![(50, 50)]));
    assert_eq!(pay(29), (Some(50), vec![]));
    assert_eq!(pay(41), (Some(50), vec![(80, 120), (100, 120)]), "a call may cost more than was set aside");
    assert_eq!(ledger.charge(std::slice::from_ref(&draw), NanoUsd(5)), []);
}

#[test]
fn a_charge_reaches_open_accounts_only() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.charge(&[run(100)], NanoUsd(5)), []);
    assert!(ledger.is_empty());
    let _ = reserve(&mut ledger, &[run(100), day("a", 100, 1_100)], 10).unwrap();
    let draws = [run(100), Draw { level: Level::Key, ..run(60) }, day("a", 100, 1_000)];
    assert_eq!(ledger.charge(&draws, NanoUsd(60)).len(), 1);
    assert_eq!(held(&mut ledger, &draws[0]), (60, 10));
    assert_eq!(held(&mut ledger, &draws[2]), (0, 10), "a call of the day before");
}

#[test]
fn an_account_is_adjusted_and_reset() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.adjust(&run(0).id, NanoUsd(5)), None);
    let reservation = reserve(&mut ledger, &[Draw { seed: seed(50), ..run(100) }], 10).unwrap();
    assert_eq!(ledger.adjust(&run(0).id, NanoUsd(20)).unwrap().settled, NanoUsd(70));
    assert_eq!(ledger.adjust(&run(0).id, NanoUsd(-100)).unwrap().settled, NanoUsd(0));
    ledger.adjust(&run(0).id, NanoUsd(90));
    ledger.reset(&run(0).id);
    assert_eq!(held(&mut ledger, &run(0)), (0, 10));
    ledger.settle(&reservation, NanoUsd(4));
    assert_eq!(held(&mut ledger, &run(0)), (4, 0));
}

#[test]
fn the_longest_idle_accounts_make_room_and_busy_ones_never() {
    let mut ledger = Ledger::with_room(8);
    let run = |n: i64| draw(&format!("r{n}"), Window::Run, 100);
    let busy = reserve(&mut ledger, &[run(0)], 50).unwrap();
    for n in 1..8 {
        let reservation = reserve_at(&mut ledger, &[run(n)], 1, 1, Timestamp(1_000 + n)).unwrap();
        ledger.settle(&reservation, NanoUsd(1));
    }
    assert_eq!(ledger.len(), 8, "at the bound");
    reserve_at(&mut ledger, &[run(8), run(9)], 1, 1, Timestamp(2_000)).unwrap();
    assert_eq!(ledger.len(), 8, "past it");
    assert!(knows(&mut ledger, &run(0)) && knows(&mut ledger, &run(7)));
    assert!(!knows(&mut ledger, &run(1)) && !knows(&mut ledger, &run(2)));
    ledger.settle(&busy, NanoUsd(50));
    assert_eq!(held(&mut ledger, &run(0)), (50, 0));
}

#[test]
fn a_ledger_of_busy_accounts_is_full() {
    let mut ledger = Ledger::with_room(2);
    let run = |n: i64| draw(&format!("r{n}"), Window::Run, 100);
    let first = reserve(&mut ledger, &[run(0), run(1)], 5).unwrap();
    assert_eq!(reserve(&mut ledger, &[run(2)], 5), Err(Denied::LedgerFull));
    ledger.settle(&first, NanoUsd(5));
    assert_eq!(reserve(&mut ledger, &[run(2), run(3), run(4)], 5), Err(Denied::LedgerFull), "its own accounts stay");
    assert!(reserve(&mut ledger, &[run(2), run(3)], 5).is_ok());
}

#[test]
fn idle_accounts_are_forgotten() {
    let mut ledger = Ledger::default();
    let busy = reserve(&mut ledger, &[run(100)], 5).unwrap();
    let done = reserve(&mut ledger, &[day("a", 100, 1_000)], 5).unwrap();
    ledger.settle(&done, NanoUsd(5));
    assert_eq!(ledger.forget_idle(Timestamp(1_099), 100), 0);
    assert_eq!(ledger.forget_idle(Timestamp(1_100), 100), 1);
    assert_eq!(ledger.len(), 1);
    ledger.settle(&busy, NanoUsd(5));
    assert_eq!(ledger.settle(&done, NanoUsd(5)), [], "its account is gone");
}
