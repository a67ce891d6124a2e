//! The ledger of one process, behind one lock: a call draws on several accounts at once, and all of them in one step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, AccountId, AccountState, Crossed, Denied, Draw, Ledger, Reservation, Shortfall};
use sprag_core::time::Timestamp;

use crate::shards::with_lock;

#[derive(Debug, Default)]
pub(in crate::state) struct Accounts {
    ledger: Mutex<Ledger>,
    /// Where there are no budgets, nobody waits for the lock.
    is_used: AtomicBool,
}

impl Accounts {
    pub(in crate::state) fn reserve(
        &self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Reservation, Denied> {
        if draws.is_empty() {
            return Ok(Reservation { amount, accounts: Vec::new() });
        }
        with_lock(&self.ledger, |ledger| {
            self.is_used.store(true, Ordering::Release);
            ledger.reserve(draws, amount, least, now)
        })
    }

    pub(in crate::state) fn follow(&self, draw: &Draw, settled: NanoUsd, now: Timestamp) {
        with_lock(&self.ledger, |ledger| {
            self.is_used.store(true, Ordering::Release);
            ledger.follow(draw, settled, now);
        });
    }

    pub(in crate::state) fn spent(&self, draw: &Draw) -> Option<NanoUsd> {
        self.if_used(|ledger| ledger.spent(draw))
    }

    pub(in crate::state) fn hold_granted(&self, draws: &[Draw], amount: NanoUsd, now: Timestamp) -> Reservation {
        with_lock(&self.ledger, |ledger| ledger.hold_granted(draws, amount, now))
    }

    pub(in crate::state) fn raise_granted(&self, reservation: &mut Reservation, amount: NanoUsd) {
        with_lock(&self.ledger, |ledger| ledger.raise_granted(reservation, amount));
    }

    pub(in crate::state) fn set_marks(&self, marks: Vec<u8>) {
        with_lock(&self.ledger, |ledger| ledger.set_marks(marks));
    }

    pub(in crate::state) fn raise(&self, reservation: &mut Reservation, amount: NanoUsd) -> Result<(), Box<Shortfall>> {
        if reservation.accounts.is_empty() {
            return Ok(());
        }
        with_lock(&self.ledger, |ledger| ledger.raise(reservation, amount))
    }

    pub(in crate::state) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    pub(in crate::state) fn begin_change<'a>(&self, ids: impl Iterator<Item = &'a AccountId>) {
        with_lock(&self.ledger, |ledger| ledger.begin_change(ids));
    }

    pub(in crate::state) fn end_change<'a>(&self, ids: impl Iterator<Item = &'a AccountId>) {
        with_lock(&self.ledger, |ledger| ledger.end_change(ids));
    }

    pub(in crate::state) fn charge_late<'a>(
        &self,
        ids: impl Iterator<Item = &'a AccountId>,
        at: Timestamp,
        cost: NanoUsd,
    ) -> Vec<(usize, NanoUsd)> {
        self.if_used(|ledger| {
            let charged = ids.enumerate().map(|(place, id)| Some((place, ledger.charge_late(id, at, cost)?)));
            charged.flatten().collect()
        })
    }

    pub(in crate::state) fn room(&self, reservation: &Reservation) -> NanoUsd {
        with_lock(&self.ledger, |ledger| ledger.room(reservation))
    }

    pub(in crate::state) fn settle(&self, reservation: &Reservation, cost: NanoUsd) -> Vec<Crossed> {
        if reservation.accounts.is_empty() {
            return Vec::new();
        }
        with_lock(&self.ledger, |ledger| ledger.settle(reservation, cost))
    }

    pub(in crate::state) fn charge(&self, draws: &[Draw], cost: NanoUsd) -> Vec<Crossed> {
        self.if_used(|ledger| ledger.charge(draws, cost))
    }

    pub(in crate::state) fn adjust(&self, id: &AccountId, amount: NanoUsd) -> Option<Account> {
        self.if_used(|ledger| ledger.adjust(id, amount))
    }

    pub(in crate::state) fn reset(&self, id: &AccountId) {
        self.if_used(|ledger| ledger.reset(id));
    }

    pub(in crate::state) fn account(&self, id: &AccountId) -> Option<Account> {
        self.if_used(|ledger| ledger.account(id))
    }

    pub(in crate::state) fn all(&self) -> Vec<AccountState> {
        self.if_used(|ledger| ledger.accounts().collect())
    }

    pub(in crate::state) fn forget(&self, is_meant: impl Fn(&AccountId) -> bool) {
        self.if_used(|ledger| ledger.forget(is_meant));
    }

    pub(super) fn forget_idle(&self, now: Timestamp, idle_ms: u64) -> usize {
        self.if_used(|ledger| ledger.forget_idle(now, idle_ms))
    }

    /// Works on the ledger, unless nothing was ever set aside: then no account is open.
    fn if_used<R: Default>(&self, work: impl FnOnce(&mut Ledger) -> R) -> R {
        match self.is_used() {
            true => with_lock(&self.ledger, work),
            false => R::default(),
        }
    }
}
