//! Accounts: what was spent, and what is set aside for calls under way.
//!
//! A call draws on several accounts at once, all or nothing. What it set aside is given back when it settles, and what
//! it cost is added. At every moment `settled + reserved` of an account stays within its limit, as far as calls cost no
//! more than they reserved.
//!
//! Not here: what was spent before an account was opened (the caller brings it as a seed), and what is on record.

mod entries;
mod slots;

pub use entries::{Account, AccountState, Crossed, Denied, Draw, Held, Reservation, Shortfall};

use super::AccountId;
use crate::money::NanoUsd;
use crate::time::Timestamp;
use entries::reaches;
use slots::Slots;

/// All accounts.
#[derive(Debug, Default)]
pub struct Ledger {
    slots: Slots,
}

impl Ledger {
    /// A ledger with room for this many accounts.
    #[must_use]
    pub fn with_room(accounts: usize) -> Ledger {
        Ledger { slots: Slots::with_room(accounts) }
    }

    /// Whether an account is open and covers the time of the draw; where not, its seed is needed. An account that was
    /// asked for counts as used, so that it stays until it is drawn on.
    #[must_use]
    pub fn knows(&mut self, draw: &Draw, now: Timestamp) -> bool {
        self.slots.knows(draw, now)
    }

    /// Sets `amount` aside on all accounts, or on none. Where an account has not that much left and no call under way,
    /// what it has left is enough, as long as it covers `least`: a first call is not refused because of a guess, and
    /// guesses do not run side by side beyond a limit.
    ///
    /// # Errors
    /// The first account in the order given that has no room.
    pub fn reserve(
        &mut self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Reservation, Denied> {
        let mut reservation = Reservation { amount, accounts: Vec::with_capacity(draws.len()) };
        for draw in draws {
            let place = self.slots.open(draw, now, draws).ok_or(Denied::LedgerFull)?;
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
            note_crossings(&held.draw, account.settled - cost, account.settled, &mut crossed);
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
            note_crossings(draw, account.settled - cost, account.settled, &mut crossed);
        }
        crossed
    }

    /// Adds what a call cost to an account that it did not draw on, because its limit was set while the call was under
    /// way. Only if the account is open for the time of the call.
    pub fn charge_late(&mut self, id: &AccountId, at: Timestamp, cost: NanoUsd) {
        if let Some(account) = self.slots.by_id(id).filter(|account| account.span.contains(at)) {
            account.settled += cost;
        }
    }

    /// Adds to, or takes from, what an open account has spent, which never is less than nothing. Gives the account.
    pub fn adjust(&mut self, id: &AccountId, amount: NanoUsd) -> Option<Account> {
        let account = self.slots.by_id(id)?;
        account.settled = (account.settled + amount).max(NanoUsd::ZERO);
        Some(*account)
    }

    /// Lets an account begin anew: nothing of what was settled counts any more. What is set aside stays.
    pub fn reset(&mut self, id: &AccountId) {
        if let Some(account) = self.slots.by_id(id) {
            account.settled = NanoUsd::ZERO;
        }
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

fn note_crossings(draw: &Draw, before: NanoUsd, after: NanoUsd, crossed: &mut Vec<Crossed>) {
    for at in draw.stages.iter().map(|stage| stage.at).chain([100]) {
        if reaches(after, draw.limit, at) && !reaches(before, draw.limit, at) {
            crossed.push(Crossed { draw: draw.clone(), at, settled: after });
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod storm;
