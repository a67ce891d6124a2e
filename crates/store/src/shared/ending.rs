//! What a call that is over tells the shared state, and what it hears.

use sprag_core::money::NanoUsd;
use sprag_core::policy::AccountId;
use sprag_core::run::Remember;

use super::Watch;
use crate::state::{RunTotals, Settlement};

/// How a call ended, and what it leaves behind.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// How it ended.
    pub how: EndHow,
    /// What becomes of the rates that it took.
    pub rates: RatesEnd,
    /// It is not to be counted among identical requests after all: memory would not have come that far.
    pub uncounts_repeat: bool,
    /// What ties later requests to its run.
    pub remember: &'a Remember,
    /// What detection keeps of its run.
    pub watch: Option<NewWatch<'a>>,
    /// What detection keeps of its agent.
    pub agent_watch: Option<NewWatch<'a>>,
    /// What it taught about calls like it.
    pub habits: Option<NewHabits<'a>>,
    /// Accounts that it did not draw on, because no limit was set when it began: charged if they are open for its time.
    pub late: &'a [AccountId],
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum EndHow {
    /// It took place, or was refused. What it cost is booked; `now` is not looked at.
    Settled(Settlement),
    /// It is as if it had never begun: its step is not counted either.
    Withdrawn,
}

/// What becomes of the rates that a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatesEnd {
    /// Tokens are corrected by those that it used; 0 for a call that was not made.
    Used {
        /// How many.
        tokens: u64,
    },
    /// Nothing of it counts: memory would not have come that far.
    GivenBack,
}

/// What detection keeps of a run or an agent, to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewWatch<'a> {
    /// The version that it grew from; 0 for none. Where Redis has another one, nothing is written, and that one is told.
    /// None: written whatever is there.
    pub based_on: Option<u64>,
    /// The version from now on: any number but 0 that nobody else takes.
    pub version: u64,
    /// Packed.
    pub bytes: &'a [u8],
}

/// What calls use by habit, packed. The last one told stays.
#[derive(Clone, Copy, Debug)]
pub struct NewHabits<'a> {
    /// Of the run.
    pub run: Option<&'a [u8]>,
    /// Of the agent with a model.
    pub of_model: Option<(&'a str, &'a [u8])>,
}

/// What the shared state tells about a call that is over.
#[derive(Debug, Default)]
pub struct Ended {
    /// What its run has come to; none outside any run, or where Redis knows nothing of it any more.
    pub totals: Option<RunTotals>,
    /// The accounts that it drew on, in force and in shadow, as they are now.
    pub accounts: Vec<SettledAccount>,
    /// Somebody else has written what detection keeps of the run: merge, and [put](super::Shared::put_watch) it.
    pub watch: Option<Watch>,
    /// The same of the agent.
    pub agent_watch: Option<Watch>,
}

/// An account after a call was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledAccount {
    /// Which.
    pub id: AccountId,
    /// What it had spent before the call.
    pub before: NanoUsd,
    /// What it has spent now.
    pub settled: NanoUsd,
    /// What is still set aside on it.
    pub reserved: NanoUsd,
}
