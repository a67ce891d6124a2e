//! What the ledger is asked and what it answers.

use std::sync::Arc;

use super::epochs::Epoch;
use super::slots::Place;
use crate::money::NanoUsd;
use crate::policy::budget::{AccountId, Level, Stage};
use crate::policy::calendar::Span;
use crate::time::Timestamp;

/// One account a call draws on, with the limit that holds for this call.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// Which account.
    pub id: AccountId,
    /// The most that may be spent.
    pub limit: NanoUsd,
    /// Who set the limit.
    pub level: Level,
    /// The time that the account covers; everything for a run.
    pub span: Span,
    /// What was spent in that time before the account was opened; needed only where it is not open for that time yet.
    pub seed: Option<Seed>,
    /// What happens before the limit, in ascending order.
    pub stages: Arc<[Stage]>,
}

/// What an account has spent before it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// How much.
    pub spent: NanoUsd,
    /// Since when it was read, as [`Denied::Unseeded`] told. It is of no use once the account has changed since.
    pub epoch: Epoch,
}

/// An account of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What calls cost that are over.
    pub settled: NanoUsd,
    /// What is set aside for calls under way.
    pub reserved: NanoUsd,
    /// The time that it covers.
    pub span: Span,
    /// When it was last drawn on.
    pub last_at: Timestamp,
}

/// An account as listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Which.
    pub id: AccountId,
    /// What it holds.
    pub account: Account,
}

/// Money set aside for one call. To be settled once, so it cannot be cloned.
#[derive(Debug, Default, PartialEq)]
pub struct Reservation {
    /// How much, on each account.
    pub amount: NanoUsd,
    /// The accounts, in the order of the draws.
    pub accounts: Vec<Held>,
}

/// An account that a reservation holds money of.
#[derive(Debug, PartialEq)]
pub struct Held {
    /// Which, with its limit.
    pub draw: Draw,
    /// What it had spent when the reservation was made.
    pub settled: NanoUsd,
    pub(super) place: Place,
    /// An earlier draw of the same call names the same account: its money is held once, both limits are kept.
    pub(super) is_repeat: bool,
}

/// Why nothing was set aside.
#[derive(Clone, Debug, PartialEq)]
pub enum Denied {
    /// An account has no room.
    Short(Box<Shortfall>),
    /// Accounts must be opened, and nobody has said what they have spent: the places of their draws, and the epoch for
    /// what is read from now on.
    Unseeded(Vec<(usize, Epoch)>),
    /// Every account that fits into memory has calls under way.
    LedgerFull,
}

/// The account that has no room for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// Which, with its limit.
    pub draw: Draw,
    /// What it holds, without what this call had reserved before.
    pub account: Account,
    /// What was asked for.
    pub amount: NanoUsd,
    /// The part of it that is no guess.
    pub least: NanoUsd,
}

/// A stage, or the limit itself, that a settlement has reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossed {
    /// Which account, with its limit.
    pub draw: Draw,
    /// Percent of the limit; 100 for the limit.
    pub at: u8,
    /// What is spent now.
    pub settled: NanoUsd,
}

impl From<NanoUsd> for Seed {
    /// A seed that was read before anything happened.
    fn from(spent: NanoUsd) -> Seed {
        Seed { spent, epoch: Epoch::default() }
    }
}

impl Shortfall {
    /// Whether it is only for calls under way that there is no room: it may pass when they are over.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        let Account { settled, reserved, .. } = self.account;
        reserved > NanoUsd::ZERO && settled < self.draw.limit && settled + self.least <= self.draw.limit
    }
}

impl Reservation {
    /// Of each account the last stage that was reached when the reservation was made.
    pub fn stages_reached(&self) -> impl Iterator<Item = (&Held, Stage)> {
        self.accounts.iter().filter_map(|held| {
            let reached = |stage: &&Stage| reaches(held.settled, held.draw.limit, stage.at);
            Some((held, *held.draw.stages.iter().rfind(reached)?))
        })
    }
}

/// Whether so much is so many percent of a limit.
pub(super) fn reaches(settled: NanoUsd, limit: NanoUsd, percent: u8) -> bool {
    i128::from(settled.0) * 100 >= i128::from(limit.0) * i128::from(percent)
}
