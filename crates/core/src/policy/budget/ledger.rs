//! Accounts: what was spent, and what is set aside for calls under way.
//!
//! A call draws on several accounts at once, all or nothing. What it set aside is given back when it settles, and what
//! it cost is added. At every moment `settled + reserved` of an account stays within its limit, as far as calls cost no
//! more than they reserved.
//!
//! Not here: what was spent before an account was opened (the caller brings it as a seed), and what is on record.

mod elsewhere;
mod entries;
mod epochs;
mod slots;

pub use entries::{Account, AccountState, Crossed, Denied, Draw, Held, Reservation, Seed, Shortfall};
pub use epochs::Epoch;

use std::collections::BTreeSet;

use super::AccountId;
use crate::money::NanoUsd;
use crate::time::Timestamp;
use entries::reaches;
use slots::{Opened, Slots};

/// All accounts.
#[derive(Debug, Default)]
pub struct Ledger {
    slots: Slots,
    /// Percentages of limits that somebody wants to hear of, besides stages.
    marks: Vec<u8>,
}

impl Ledger {
    /// A ledger with room for this many accounts.
    #[must_use]
    pub fn with_room(accounts: usize) -> Ledger {
        Ledger { slots: Slots::with_room(accounts), ..Ledger::default() }
    }

    /// Says from now on when these percentages of a limit are reached, besides stages and the limit.
    pub fn set_marks(&mut self, marks: Vec<u8>) {
        self.marks = marks;
    }

    /// Sets `amount` aside on all accounts, or on none. Where an account has not that much left and no call under way,
    /// what it has left is enough, as long as it covers `least`: a first call is not refused because of a guess, and
    /// guesses do not run side by side beyond a limit.
    ///
    /// `now` is this moment, and the draws are of the time that the call was made in. An account that has begun anew in
    /// between holds nothing for it.
    ///
    /// # Errors
    /// The first account in the order given that has no room; or those that must be opened and have no seed.
    pub fn reserve(
        &mut self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Reservation, Denied> {
        let mut reservation = Reservation { amount, accounts: Vec::with_capacity(draws.len()) };
        let mut unseeded = Vec::new();
        for (at, draw) in draws.iter().enumerate() {
            let place = match self.slots.open(draw, now, draws) {
                Opened::At(place) => place,
                Opened::Later => continue,
                Opened::Full => return Err(Denied::LedgerFull),
                Opened::Unseeded => {
                    unseeded.push((at, self.slots.epochs.now(&draw.id)));
                    continue;
                }
            };
            // An account before it may be the one to blame.
            if !unseeded.is_empty() {
                continue;
            }
            let Some(account) = self.slots.at(place) else { continue };
            let Some(granted) = grant(account, draw.limit, amount, least) else {
                return Err(Denied::Short(Box::new(Shortfall {
                    draw: draw.clone(),
                    account: *account,
                    amount,
                    least,
                })));
            };
            reservation.amount = reservation.amount.min(granted);
            let is_repeat = reservation.accounts.iter().any(|held| held.place == place);
            reservation.accounts.push(Held { draw: draw.clone(), settled: account.settled, place, is_repeat });
        }
        if !unseeded.is_empty() {
            return Err(Denied::Unseeded(unseeded));
        }
        self.hold(&reservation, reservation.amount);
        Ok(reservation)
    }

    /// Raises a reservation to `amount` on all its accounts, or on none. Accounts that have begun anew since are none
    /// of its business any more.
    ///
    /// # Errors
    /// The first account that has no room.
    pub fn raise(&mut self, reservation: &mut Reservation, amount: NanoUsd) -> Result<(), Box<Shortfall>> {
        let more = amount - reservation.amount;
        if more <= NanoUsd::ZERO {
            return Ok(());
        }
        for held in &reservation.accounts {
            let Some(account) = self.slots.at(held.place) else { continue };
            if grant(account, held.draw.limit, more, more).is_none() {
                let account = Account { reserved: account.reserved - reservation.amount, ..*account };
                return Err(Box::new(Shortfall { draw: held.draw.clone(), account, amount, least: amount }));
            }
        }
        self.hold(reservation, more);
        reservation.amount = amount;
        Ok(())
    }

    /// How much more a reservation could be raised by.
    #[must_use]
    pub fn room(&mut self, reservation: &Reservation) -> NanoUsd {
        let mut room = NanoUsd(i64::MAX);
        for held in &reservation.accounts {
            let Some(account) = self.slots.at(held.place) else { continue };
            room = room.min(held.draw.limit - account.settled - account.reserved);
        }
        room.max(NanoUsd::ZERO)
    }

    /// Gives a reservation back and adds what the call cost; says what that has reached. An account that has begun anew
    /// since is left alone: the cost belongs to the time in which the call was made.
    pub fn settle(&mut self, reservation: &Reservation, cost: NanoUsd) -> Vec<Crossed> {
        let mut crossed = Vec::new();
        for held in &reservation.accounts {
            let Some(account) = self.slots.at(held.place) else { continue };
            if !held.is_repeat {
                account.reserved = (account.reserved - reservation.amount).max(NanoUsd::ZERO);
                account.settled += cost;
            }
            crossed.extend(held.draw.crossed(account.settled - cost, account.settled, &self.marks));
        }
        crossed
    }

    /// Adds what a call cost for which nothing was set aside, to those accounts that are open meanwhile. The history
    /// tells it to the others when they are opened.
    pub fn charge(&mut self, draws: &[Draw], cost: NanoUsd) -> Vec<Crossed> {
        let mut crossed = Vec::new();
        for (at, draw) in draws.iter().enumerate() {
            let Some(account) = self.slots.find(draw) else { continue };
            if !draws[..at].iter().any(|earlier| earlier.id == draw.id) {
                account.settled += cost;
            }
            crossed.extend(draw.crossed(account.settled - cost, account.settled, &self.marks));
        }
        crossed
    }

    /// Something is about to be put on record that changes what these accounts have spent. Until it is over, none of
    /// them is opened: nobody could say whether what is read has it already.
    pub fn begin_change<'a>(&mut self, ids: impl Iterator<Item = &'a AccountId>) {
        ids.for_each(|id| self.slots.epochs.begin(id));
    }

    /// It is on record, and open accounts know it. Once for each [`Ledger::begin_change`].
    pub fn end_change<'a>(&mut self, ids: impl Iterator<Item = &'a AccountId>) {
        ids.for_each(|id| self.slots.epochs.end(id));
    }

    /// Adds what a call cost to an account that it did not draw on, because its limit was set while the call was under
    /// way. Only if the account is open for the time of the call. Gives what it had spent before.
    pub fn charge_late(&mut self, id: &AccountId, at: Timestamp, cost: NanoUsd) -> Option<NanoUsd> {
        self.slots.epochs.next(id);
        let account = self.slots.by_id(id).filter(|account| account.span.contains(at))?;
        let before = account.settled;
        account.settled += cost;
        Some(before)
    }

    /// Adds to, or takes from, what an open account has spent, which never is less than nothing. Gives the account.
    pub fn adjust(&mut self, id: &AccountId, amount: NanoUsd) -> Option<Account> {
        self.slots.epochs.next(id);
        let account = self.slots.by_id(id)?;
        account.settled = (account.settled + amount).max(NanoUsd::ZERO);
        Some(*account)
    }

    /// Lets an account begin anew: nothing of what was settled counts any more. What is set aside stays.
    pub fn reset(&mut self, id: &AccountId) {
        self.slots.epochs.next(id);
        if let Some(account) = self.slots.by_id(id) {
            account.settled = NanoUsd::ZERO;
        }
    }

    /// One account, if it is open.
    #[must_use]
    pub fn account(&mut self, id: &AccountId) -> Option<Account> {
        self.slots.by_id(id).copied()
    }

    /// Forgets accounts without calls under way that were not drawn on for this long, and says how many.
    pub fn forget_idle(&mut self, now: Timestamp, idle_ms: u64) -> usize {
        self.slots.forget_idle(now, idle_ms)
    }

    /// Forgets accounts whose limits may have been away for a while: what was spent meanwhile is only on record. Those
    /// with calls under way stay.
    pub fn forget(&mut self, is_meant: impl Fn(&AccountId) -> bool) -> usize {
        self.slots.forget(is_meant)
    }

    /// The open accounts, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = AccountState> {
        self.slots.iter()
    }

    /// How many accounts are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn hold(&mut self, reservation: &Reservation, amount: NanoUsd) {
        for held in reservation.accounts.iter().filter(|held| !held.is_repeat) {
            if let Some(account) = self.slots.at(held.place) {
                account.reserved += amount;
            }
        }
    }
}

/// How much of `amount` an account lets a call have.
fn grant(account: &Account, limit: NanoUsd, amount: NanoUsd, least: NanoUsd) -> Option<NanoUsd> {
    let left = limit - account.settled - account.reserved;
    if amount <= left || amount <= NanoUsd::ZERO {
        return Some(amount);
    }
    let is_alone = account.reserved == NanoUsd::ZERO;
    (is_alone && left > NanoUsd::ZERO && least <= left).then_some(left)
}

impl Draw {
    /// The stages, the limit itself, and the percentages in `marks` that lie between what was spent before and what is
    /// spent now, each once.
    pub fn crossed(&self, before: NanoUsd, after: NanoUsd, marks: &[u8]) -> Vec<Crossed> {
        let is_new = |at: &u8| reaches(after, self.limit, *at) && !reaches(before, self.limit, *at);
        let stages = self.stages.iter().map(|stage| stage.at);
        let reached: BTreeSet<u8> = stages.chain([100]).chain(marks.iter().copied()).filter(is_new).collect();
        reached.into_iter().map(|at| Crossed { draw: self.clone(), at, settled: after }).collect()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod opening;

#[cfg(test)]
mod storm;
