//! The money of [`State`]: accounts with what is set aside for calls under way, and what calls use by habit.
//!
//! What was spent before an account was opened is the history's to tell: `reserve` says for which draws it is needed.

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
    /// Sets money aside for a call on all its accounts, or on none. See [`sprag_core::policy::Ledger::reserve`].
    ///
    /// # Errors
    /// The first account that has no room, or that there is no room for another account, or those accounts that nobody
    /// has said of what they have spent.
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

    /// Says from now on when these percentages of a limit are reached, besides stages and the limit itself.
    pub fn set_budget_marks(&self, marks: Vec<u8>) {
        match self {
            State::Memory(state) => state.accounts.set_marks(marks),
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

    /// Whether money was ever set aside. Where not, no account is open, and there is nothing to keep in step.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        match self {
            State::Memory(state) => state.accounts.is_used(),
        }
    }

    /// Something is about to be put on record that changes what these accounts have spent. None of them is opened
    /// before `end_change`, which must follow.
    pub fn begin_change<'a>(&self, ids: impl Iterator<Item = &'a AccountId>) {
        match self {
            State::Memory(state) => state.accounts.begin_change(ids),
        }
    }

    /// It is on record, and open accounts know it.
    pub fn end_change<'a>(&self, ids: impl Iterator<Item = &'a AccountId>) {
        match self {
            State::Memory(state) => state.accounts.end_change(ids),
        }
    }

    /// Adds what a call cost to those accounts that are open for its time, though it did not draw on them: their limits
    /// were set while it was under way. Says which those are, by their place, and what they had spent before.
    pub fn charge_late<'a>(
        &self,
        ids: impl Iterator<Item = &'a AccountId>,
        at: Timestamp,
        cost: NanoUsd,
    ) -> Vec<(usize, NanoUsd)> {
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

    /// One account, if it is open.
    #[must_use]
    pub fn account(&self, id: &AccountId) -> Option<Account> {
        match self {
            State::Memory(state) => state.accounts.account(id),
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
