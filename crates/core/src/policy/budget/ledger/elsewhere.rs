//! Accounts that are kept elsewhere as well, where more is known: this ledger follows, so that it is near the truth
//! should the other one be lost.

use super::Ledger;
use super::entries::{Draw, Held, Reservation, Seed};
use super::slots::Opened;
use crate::money::NanoUsd;
use crate::time::Timestamp;

impl Ledger {
    /// Takes over what an account has spent. It is opened where it is not open yet.
    pub fn follow(&mut self, draw: &Draw, settled: NanoUsd, now: Timestamp) {
        let seed = Some(Seed { spent: settled, epoch: self.slots.epochs.now(&draw.id) });
        let seeded = Draw { seed, ..draw.clone() };
        if let Opened::At(place) = self.slots.open(&seeded, now, &[])
            && let Some(account) = self.slots.at(place)
        {
            account.settled = settled;
        }
    }

    /// What an account has spent, if it is open for the time of the draw.
    #[must_use]
    pub fn spent(&mut self, draw: &Draw) -> Option<NanoUsd> {
        self.slots.find(draw).map(|account| account.settled)
    }

    /// Holds what was granted elsewhere, room or not. Accounts that are not open are left out.
    pub fn hold_granted(&mut self, draws: &[Draw], amount: NanoUsd, now: Timestamp) -> Reservation {
        let mut reservation = Reservation { amount, accounts: Vec::with_capacity(draws.len()) };
        for draw in draws {
            let Opened::At(place) = self.slots.open(draw, now, draws) else { continue };
            let Some(account) = self.slots.at(place) else { continue };
            let settled = account.settled;
            let is_repeat = reservation.accounts.iter().any(|held| held.place == place);
            reservation.accounts.push(Held { draw: draw.clone(), settled, place, is_repeat });
        }
        self.hold(&reservation, amount);
        reservation
    }

    /// Raises a reservation to what was granted elsewhere, room or not.
    pub fn raise_granted(&mut self, reservation: &mut Reservation, amount: NanoUsd) {
        let more = amount - reservation.amount;
        if more > NanoUsd::ZERO {
            self.hold(reservation, more);
            reservation.amount = amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentName;
    use crate::policy::budget::{ALWAYS, AccountId, Holder, Level, Window};

    fn draw(limit: i64) -> Draw {
        let id = AccountId { holder: Holder::Agent(AgentName::default()), window: Window::Day, is_shadow: false };
        Draw { id, limit: NanoUsd(limit), level: Level::Agent, span: ALWAYS, seed: None, stages: [].into() }
    }

    #[test]
    fn what_was_granted_elsewhere_is_held_whatever_is_known_here() {
        let (mut ledger, draw) = (Ledger::default(), draw(100));
        ledger.follow(&draw, NanoUsd(95), Timestamp(1));
        let held = ledger.hold_granted(std::slice::from_ref(&draw), NanoUsd(50), Timestamp(1));
        let account = ledger.account(&draw.id).unwrap();
        assert_eq!((account.settled, account.reserved), (NanoUsd(95), NanoUsd(50)));
        ledger.settle(&held, NanoUsd(3));
        let account = ledger.account(&draw.id).unwrap();
        assert_eq!((account.settled, account.reserved), (NanoUsd(98), NanoUsd::ZERO));
    }

    #[test]
    fn what_is_known_elsewhere_counts_also_where_it_is_less() {
        let (mut ledger, draw) = (Ledger::default(), draw(100));
        for spent in [10, 90, 20] {
            ledger.follow(&draw, NanoUsd(spent), Timestamp(1));
            assert_eq!(ledger.spent(&draw), Some(NanoUsd(spent)));
        }
    }

    #[test]
    fn a_raise_holds_the_difference() {
        let (mut ledger, draw) = (Ledger::default(), draw(100));
        ledger.follow(&draw, NanoUsd(0), Timestamp(1));
        let mut held = ledger.hold_granted(std::slice::from_ref(&draw), NanoUsd(50), Timestamp(1));
        ledger.raise_granted(&mut held, NanoUsd(70));
        ledger.raise_granted(&mut held, NanoUsd(60));
        assert_eq!(ledger.account(&draw.id).unwrap().reserved, NanoUsd(70));
        ledger.settle(&held, NanoUsd(60));
        assert_eq!(ledger.account(&draw.id).unwrap().reserved, NanoUsd::ZERO);
    }
}
