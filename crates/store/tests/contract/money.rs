//! Money of every kind of state.

use sprag_core::event::Ending;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, Account, AccountId, Crossed, Denied, Draw, Epoch, Reservation, Seed, Shortfall};
use sprag_core::time::Timestamp;
use sprag_store::shared::{AskedPurse, Begin, Change, Correction, EndHow, MoneyAsk, Purse, SharedCall};
use sprag_store::state::Settlement;

use super::AnyState;
use super::redis::{NOTHING, RedisState, call_id, ending, outside, refused};

/// Money that is set aside.
#[derive(Debug)]
pub(crate) enum Held {
    Memory(Reservation),
    Redis { call: SharedCall, amount: NanoUsd, draws: Vec<Draw> },
}

impl Held {
    pub(crate) fn amount(&self) -> NanoUsd {
        match self {
            Held::Memory(reservation) => reservation.amount,
            Held::Redis { amount, .. } => *amount,
        }
    }
}

impl AnyState {
    pub(crate) fn reserve(
        &self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Held, Denied> {
        match self {
            AnyState::Memory(state) => match state.reserve(draws, amount, least, now) {
                // Memory takes no seed that may be out of date: it is as if it was read once more.
                Err(Denied::Unseeded(places)) => {
                    let mut draws = draws.to_vec();
                    for (place, epoch) in places {
                        draws[place].seed = draws[place].seed.map(|seed| Seed { epoch, ..seed });
                    }
                    state.reserve(&draws, amount, least, now).map(Held::Memory)
                }
                outcome => outcome.map(Held::Memory),
            },
            AnyState::Redis(state) => state.reserve(draws, amount, least, now),
        }
    }

    pub(crate) fn raise(&self, held: &mut Held, to: NanoUsd) -> Result<(), Box<Shortfall>> {
        match (self, held) {
            (AnyState::Memory(state), Held::Memory(reservation)) => state.raise(reservation, to),
            (AnyState::Redis(state), Held::Redis { call, amount, .. }) => {
                let raised = state.runtime.block_on(state.shared.raise(call, to)).unwrap();
                if raised.is_ok() {
                    *amount = to.max(*amount);
                }
                raised
            }
            _ => panic!("money of another state"),
        }
    }

    pub(crate) fn settle_money(&self, held: &Held, cost: NanoUsd) -> Vec<Crossed> {
        match (self, held) {
            (AnyState::Memory(state), Held::Memory(reservation)) => state.settle_money(reservation, cost),
            (AnyState::Redis(state), Held::Redis { call, draws, .. }) => state.settle_money(call, draws, cost),
            _ => panic!("money of another state"),
        }
    }

    pub(crate) fn adjust_account(&self, id: &AccountId, by: NanoUsd) -> Option<Account> {
        match self {
            AnyState::Memory(state) => state.adjust_account(id, by),
            AnyState::Redis(state) => state.correct(id, Change::By(by)),
        }
    }

    pub(crate) fn reset_account(&self, id: &AccountId) {
        match self {
            AnyState::Memory(state) => state.reset_account(id),
            AnyState::Redis(state) => {
                state.correct(id, Change::Reset { spent: NanoUsd::ZERO });
            }
        }
    }

    pub(crate) fn account(&self, id: &AccountId) -> Option<Account> {
        match self {
            AnyState::Memory(state) => state.account(id),
            AnyState::Redis(state) => state.account(id),
        }
    }
}

impl RedisState {
    /// Corrects an account, and gives it as it is then.
    pub(crate) fn correct(&self, id: &AccountId, change: Change) -> Option<Account> {
        let span = self.account(id).map_or(ALWAYS, |account| account.span);
        self.shared.correct(Correction { name: call_id(), account: id.clone(), span, change });
        self.runtime.block_on(self.shared.tell_corrections()).unwrap();
        self.account(id)
    }

    pub(crate) fn account(&self, id: &AccountId) -> Option<Account> {
        self.runtime.block_on(self.shared.account(id)).unwrap()
    }

    pub(crate) fn reserve(
        &self,
        draws: &[Draw],
        amount: NanoUsd,
        least: NanoUsd,
        now: Timestamp,
    ) -> Result<Held, Denied> {
        self.at(now);
        let (call, agent) = (call_id(), AgentName::default());
        let enforced = AskedPurse { of_runs: None, draws };
        let money = MoneyAsk { enforced, shadow: AskedPurse::default(), amount, least, run_corrections: &[] };
        let begin = Begin { money: Some(money), ..outside(&call, &agent, &NOTHING) };
        let begun = self.begin(&begin);
        let denied = match begun.money.unwrap().enforced {
            Purse::Reserved(reserved) => {
                return Ok(Held::Redis { call: begun.call, amount: reserved.amount, draws: draws.to_vec() });
            }
            Purse::Nothing => return Ok(Held::Redis { call: begun.call, amount, draws: draws.to_vec() }),
            Purse::Short(short) => Denied::Short(short),
            Purse::Unseeded(places) => {
                Denied::Unseeded(places.into_iter().map(|place| (place, Epoch::default())).collect())
            }
        };
        self.end(&begun.call, &ending(refused(now), &NOTHING));
        Err(denied)
    }

    pub(crate) fn settle_money(&self, call: &SharedCall, draws: &[Draw], cost: NanoUsd) -> Vec<Crossed> {
        let how = Settlement { cost: Some(cost), usage: None, ending: Ending::Complete, now: self.now() };
        let ended = self.end(call, &ending(EndHow::Settled(how), &NOTHING));
        let crossed = draws.iter().filter_map(|draw| {
            let account = ended.accounts.iter().find(|account| account.id == draw.id)?;
            Some(draw.crossed(account.before, account.settled, &[]))
        });
        crossed.flatten().collect()
    }
}
