//! The money of [`State`]: accounts with what is set aside for calls under way, and what calls use by habit.
//!
//! What was spent before an account was opened is the history's to tell: `unseeded` says for which draws it is needed.

use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, AccountId, AccountState, Crossed, Denied, Draw, Habits, Reservation, Shortfall};
use sprag_core::time::Timestamp;

use super::State;
use crate::run_key::RunKey;

/// What there is to learn from a call that is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson {
    /// Bytes of its prompt.
    pub prompt_bytes: u64,
    /// What its input cost, in tokens at the full price.
    pub input_full_tokens: f64,
    /// Output tokens of one answer.
    pub output_tokens: u64,
}

impl State {
    /// The draws, by their place, whose accounts are not open for their time. They need a seed before `reserve`.
    #[must_use]
    pub fn unseeded(&self, draws: &[Draw], now: Timestamp) -> Vec<usize> {
        match self {
            State::Memory(state) => state.accounts.unseeded(draws, now),
        }
    }

    /// Sets money aside for a call on all its accounts, or on none. See [`sprag_core::policy::Ledger::reserve`].
    ///
    /// # Errors
    /// The first account that has no room, or that there is no room for another account.
    pub fn reserve(
        &self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Reservation, Denied> {
        match self {
            State::Memory(state) => state.accounts.reserve(draws, amount, least, now),
        }
    }

    /// Raises a reservation to `amount` on all its accounts, or on none.
    ///
    /// # Errors
    /// The first account that has no room.
    pub fn raise(&self, reservation: &mut Reservation, amount: NanoUsd) -> Result<(), Box<Shortfall>> {
        match self {
            State::Memory(state) => state.accounts.raise(reservation, amount),
        }
    }

    /// How much more a reservation could be raised by.
    #[must_use]
    pub fn room(&self, reservation: &Reservation) -> NanoUsd {
        match self {
            State::Memory(state) => state.accounts.room(reservation),
        }
    }

    /// Gives a reservation back and adds what the call cost; says which stages and limits that has reached. To be
    /// called once for each `reserve`.
    pub fn settle_money(&self, reservation: &Reservation, cost: NanoUsd) -> Vec<Crossed> {
        match self {
            State::Memory(state) => state.accounts.settle(reservation, cost),
        }
    }

    /// Adds what a call cost for which nothing was set aside, to those accounts that are open.
    pub fn charge(&self, draws: &[Draw], cost: NanoUsd) -> Vec<Crossed> {
        match self {
            State::Memory(state) => state.accounts.charge(draws, cost),
        }
    }

    /// Adds what a call cost to those accounts that are open for its time, though it did not draw on them: their limits
    /// were set while it was under way.
    pub fn charge_late(&self, ids: impl Iterator<Item = AccountId>, at: Timestamp, cost: NanoUsd) {
        match self {
            State::Memory(state) => state.accounts.charge_late(ids, at, cost),
        }
    }

    /// Adds to, or takes from, what an account has spent, if it is open. Gives the account.
    pub fn adjust_account(&self, id: &AccountId, amount: NanoUsd) -> Option<Account> {
        match self {
            State::Memory(state) => state.accounts.adjust(id, amount),
        }
    }

    /// Nothing of what an account has spent counts any more. What is set aside stays.
    pub fn reset_account(&self, id: &AccountId) {
        match self {
            State::Memory(state) => state.accounts.reset(id),
        }
    }

    /// Forgets accounts without calls under way, so that they begin again with what is on record.
    pub fn forget_accounts(&self, is_meant: impl Fn(&AccountId) -> bool) {
        match self {
            State::Memory(state) => state.accounts.forget(is_meant),
        }
    }

    /// The open accounts, in no order.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountState> {
        match self {
            State::Memory(state) => state.accounts.all(),
        }
    }

    /// Learns from a call that is over what calls of its run, and of its agent with this model, use.
    pub fn learn(&self, key: &RunKey, model: &str, lesson: &Lesson) {
        match self {
            State::Memory(state) => state.learn(key, model, lesson),
        }
    }

    /// What calls of the agent with this model use; for the first call of a run.
    #[must_use]
    pub fn habits(&self, agent: &AgentName, model: &str) -> Option<Habits> {
        match self {
            State::Memory(state) => state.habits(agent, model),
        }
    }
}
