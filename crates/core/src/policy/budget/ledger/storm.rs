//! Whatever calls do, and whenever the process dies: no limit is passed by a nano-dollar, and nothing stays reserved.

use std::collections::HashMap;
use std::ops::Range;

use proptest::prelude::*;

use super::tests::{draw, id, seed};
use super::*;
use crate::policy::budget::Window;
use crate::policy::calendar::Span;

const DAY: i64 = 10;
const MONTH: i64 = 30;
/// Run accounts by depth, then pairs of day and month: key, two agents, everything.
const ACCOUNTS: usize = 11;

#[derive(Clone, Debug)]
enum Act {
    /// A call begins, on so many runs of one tree and the other accounts whose bits are set.
    Begin { runs: usize, others: u16, amount: i64, least_percent: i64 },
    /// A stream outruns what was set aside for it.
    Raise { which: usize, by: i64 },
    /// A call is over: whole (100), cut or abandoned, or failed (0).
    End { which: usize, percent: i64 },
    /// Time passes.
    Tick(i64),
    /// The process dies and starts again.
    Crash,
    /// Idle accounts are forgotten.
    Sweep,
}

/// A call under way, as the provider and the history see it.
struct Call {
    reservation: Reservation,
    /// The windows it was made in, with the part of the reservation that each of them had room for.
    windows: Vec<(Key, i64)>,
}

type Key = (usize, i64);

/// The world around a ledger.
struct World {
    ledger: Ledger,
    room: usize,
    limits: [i64; ACCOUNTS],
    now: i64,
    calls: Vec<Call>,
    /// What the provider charged for calls made in a window.
    spent: HashMap<Key, i64>,
    /// What is on record for it: after a crash the whole reservation, because nobody knows better.
    booked: HashMap<Key, i64>,
}

impl World {
    fn new(limits: [i64; ACCOUNTS], room: usize) -> World {
        let ledger = Ledger::with_room(room);
        World { ledger, room, limits, now: 0, calls: vec![], spent: HashMap::new(), booked: HashMap::new() }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Begin { runs, others, amount, least_percent } => {
                let others = (3..ACCOUNTS).filter(|account| others & (1 << account) != 0);
                let accounts: Vec<usize> = (3 - runs..3).chain(others).collect();
                self.begin(&accounts, *amount, amount * least_percent / 100);
            }
            Act::Raise { which, by } => self.raise(*which, *by),
            Act::End { which, percent } if !self.calls.is_empty() => {
                let call = self.calls.swap_remove(which % self.calls.len());
                let cost = call.reservation.amount.0 * percent / 100;
                self.ledger.settle(&call.reservation, NanoUsd(cost));
                self.book(&call, cost, cost);
            }
            Act::End { .. } => {}
            Act::Tick(by) => self.now += by,
            Act::Crash => {
                self.ledger = Ledger::with_room(self.room);
                for call in std::mem::take(&mut self.calls) {
                    // Some were answered whole, some not at all.
                    let spent = if self.now % 2 == 0 { call.reservation.amount.0 } else { 0 };
                    self.book(&call, spent, call.reservation.amount.0);
                }
            }
            Act::Sweep => {
                self.ledger.forget_idle(Timestamp(self.now), 1);
            }
        }
    }

    fn begin(&mut self, accounts: &[usize], amount: i64, least: i64) {
        let mut draws: Vec<Draw> = accounts.iter().map(|&account| self.draw_on(account)).collect();
        match self.reserve(&mut draws, accounts, amount, least) {
            Ok(reservation) => {
                let reserved = reservation.amount.0;
                assert!((least..=amount).contains(&reserved), "{reserved} of {least} to {amount}");
                let windows = accounts.iter().map(|&account| (self.key(account), reserved)).collect();
                self.calls.push(Call { reservation, windows });
            }
            Err(Denied::Short(short)) => {
                let account = accounts[draws.iter().position(|draw| draw.id == short.draw.id).unwrap()];
                let key = self.key(account);
                let used = self.booked.get(&key).copied().unwrap_or(0) + self.under_way(key);
                assert!(used + amount > self.limits[account], "refused for no reason: {used} + {amount} on {account}");
            }
            Err(Denied::LedgerFull) => assert!(self.room < 2 * ACCOUNTS, "there is room for all"),
            Err(Denied::Unseeded(_)) => panic!("it was looked up"),
        }
    }

    /// Looks up what is on record where it is needed. Accounts may share an epoch with one that is forgotten to make room
    /// for them, and are looked up again.
    fn reserve(
        &mut self,
        draws: &mut [Draw],
        accounts: &[usize],
        amount: i64,
        least: i64,
    ) -> Result<Reservation, Denied> {
        let now = Timestamp(self.now);
        for _ in 0..ACCOUNTS {
            let reserved = self.ledger.reserve(draws, NanoUsd(amount), NanoUsd(least), now);
            let Err(Denied::Unseeded(places)) = reserved else { return reserved };
            for (place, epoch) in places {
                let spent = self.booked.get(&self.key(accounts[place])).copied().unwrap_or(0);
                draws[place].seed = Some(Seed { spent: NanoUsd(spent), epoch });
            }
        }
        panic!("what is on record was just read")
    }

    fn raise(&mut self, which: usize, by: i64) {
        if self.calls.is_empty() {
            return;
        }
        let at = which % self.calls.len();
        let call = &mut self.calls[at];
        let before = call.reservation.amount.0;
        // Nothing is set aside for a free call, and it never costs anything.
        if before == 0 {
            return;
        }
        if self.ledger.raise(&mut call.reservation, NanoUsd(before + by)).is_err() {
            assert_eq!(call.reservation.amount.0, before);
            return;
        }
        // A window that has made room for the next has no more to give: the others cover what is raised then.
        for (key, covered) in &mut call.windows {
            let is_open = |state: &AccountState| state.id == id_of(key.0) && state.account.span.start.0 == key.1;
            if self.ledger.accounts().any(|state| is_open(&state)) {
                *covered = before + by;
            }
        }
    }

    fn draw_on(&self, account: usize) -> Draw {
        Draw { seed: None, ..draw_of(account, self.now, self.limits[account], 0) }
    }

    fn book(&mut self, call: &Call, spent: i64, booked: i64) {
        for (key, covered) in &call.windows {
            *self.spent.entry(*key).or_default() += spent.min(*covered);
            *self.booked.entry(*key).or_default() += booked.min(*covered);
        }
    }

    fn key(&self, account: usize) -> Key {
        (account, window(account, self.now).start)
    }

    fn under_way(&self, key: Key) -> i64 {
        let windows = self.calls.iter().flat_map(|call| &call.windows);
        windows.filter(|(other, _)| *other == key).map(|(_, covered)| covered).sum()
    }

    fn check(&self) {
        for (key, spent) in &self.spent {
            assert!(*spent <= self.limits[key.0], "spent {spent} of {} on {key:?}", self.limits[key.0]);
        }
        for state in self.ledger.accounts() {
            let account = (0..ACCOUNTS).find(|&account| id_of(account) == state.id).unwrap();
            let key = (account, state.account.span.start.0);
            let (settled, reserved) = (state.account.settled.0, state.account.reserved.0);
            assert!(settled + reserved <= self.limits[account], "{settled} + {reserved} on {key:?}");
            assert_eq!(reserved, self.under_way(key), "reserved on {key:?}");
            assert_eq!(settled, self.booked.get(&key).copied().unwrap_or(0), "settled on {key:?}");
        }
    }

    /// Every call is over: nothing is reserved, what fits is admitted, and a nano more is not.
    fn calm(mut self) {
        while !self.calls.is_empty() {
            self.act(&Act::End { which: 0, percent: 50 });
        }
        self.check();
        assert!(self.ledger.accounts().all(|state| state.account.reserved == NanoUsd::ZERO));
        for account in 0..ACCOUNTS {
            let left = self.limits[account] - self.booked.get(&self.key(account)).copied().unwrap_or(0);
            let mut ask = |amount: i64| self.reserve(&mut [self.draw_on(account)], &[account], amount, amount);
            assert!(ask(left + 1).is_err(), "one more than what is left on {account}");
            let last = ask(left);
            assert!(last.is_ok(), "what is left on {account}");
            self.ledger.settle(&last.unwrap(), NanoUsd(left));
        }
    }
}

/// Accounts 0 to 2 are runs; of the others every second one is a month's.
fn window(account: usize, now: i64) -> Range<i64> {
    let length = match account {
        0..=2 => return i64::MIN..i64::MAX,
        _ if account % 2 == 1 => DAY,
        _ => MONTH,
    };
    let start = now / length * length;
    start..start + length
}

fn id_of(account: usize) -> AccountId {
    let names = ["r0", "r1", "r2", "k", "k", "a", "a", "b", "b", "*", "*"];
    let window = match account {
        0..=2 => Window::Run,
        _ if account % 2 == 1 => Window::Day,
        _ => Window::Month,
    };
    id(names[account], window)
}

fn draw_of(account: usize, now: i64, limit: i64, spent: i64) -> Draw {
    let Range { start, end } = window(account, now);
    let span = Span { start: Timestamp(start), end: Timestamp(end) };
    Draw { id: id_of(account), span, seed: seed(spent), ..draw("r", Window::Run, limit) }
}

fn act() -> impl Strategy<Value = Act> {
    let percent = prop_oneof![Just(0), Just(100), 0..=100_i64];
    let least_percent = prop_oneof![2 => Just(100), 1 => 0..=100_i64];
    prop_oneof![
        8 => (0..=3_usize, any::<u16>(), 0..60_i64, least_percent)
            .prop_map(|(runs, others, amount, least_percent)| Act::Begin { runs, others, amount, least_percent }),
        2 => (any::<usize>(), 1..20_i64).prop_map(|(which, by)| Act::Raise { which, by }),
        6 => (any::<usize>(), percent).prop_map(|(which, percent)| Act::End { which, percent }),
        2 => (1..8_i64).prop_map(Act::Tick),
        1 => Just(Act::Crash),
        1 => Just(Act::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_storm_passes_a_limit_or_leaves_anything_reserved(
        limits in prop::array::uniform11(1..200_i64),
        room in prop_oneof![Just(LEDGER), 4..2 * ACCOUNTS],
        acts in prop::collection::vec(act(), 1..100),
    ) {
        let mut world = World::new(limits, room);
        for act in &acts {
            world.act(act);
            world.check();
        }
        world.calm();
    }
}

const LEDGER: usize = crate::limits::LEDGER_ACCOUNTS;
