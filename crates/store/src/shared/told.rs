//! What the shared state tells about a call that has begun.

use std::sync::atomic::AtomicBool;

use sprag_core::event::RunOrigin;
use sprag_core::id::RunId;
use sprag_core::loops::Finding;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Draw, Shortfall};
use sprag_core::time::Timestamp;

use crate::state::{Opened, Rated, RunPlace, RunTotals};

/// A call that has begun. It must be ended.
#[derive(Debug)]
pub struct Begun {
    /// What it is ended by.
    pub call: SharedCall,
    /// When it began, by the clock that counts.
    pub now: Timestamp,
    /// Its run; none for a request outside any run.
    pub run: Option<BegunRun>,
    /// Calls of the agent in flight on all nodes, this one included.
    pub agent_in_flight: u32,
    /// What detection keeps of the agent, where it is wanted and this node has another version.
    pub agent_watch: Option<Watch>,
    /// What calls of the agent to this model use, packed.
    pub agent_habits: Option<Vec<u8>>,
    /// What came of the rates. What was taken is corrected by [`Shared::end`](super::Shared::end): `taken` is empty.
    pub rated: Rated,
    /// What came of the money; none where none was asked for, or a rate had no room.
    pub money: Option<Money>,
    /// One identical request too many.
    pub repeat: Option<Finding>,
}

/// The run of a call.
#[derive(Debug)]
pub struct BegunRun {
    /// Its id.
    pub id: RunId,
    /// How it was recognised.
    pub origin: RunOrigin,
    /// The place of the clue that led to it; none where it was named, or no clue did.
    pub clue: Option<usize>,
    /// The step that was counted. Its habits are those of [`BegunRun::habits`], which the caller unpacks.
    pub opened: Opened,
    /// What its calls used, packed.
    pub habits: Option<Vec<u8>>,
    /// What detection keeps of it, where this node has another version.
    pub watch: Option<Watch>,
}

/// What detection keeps of a run or an agent, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Told apart by being equal or not; never 0.
    pub version: u64,
    /// As it was written.
    pub bytes: Vec<u8>,
}

/// What came of asking for money.
#[derive(Debug, PartialEq)]
pub struct Money {
    /// On accounts whose limits are in force.
    pub enforced: Purse,
    /// On those whose limits are only watched.
    pub shadow: Purse,
}

/// What came of asking some accounts. Nothing is set aside on any of them unless it is on all.
#[derive(Debug, PartialEq)]
pub enum Purse {
    /// Not asked, or of no accounts.
    Nothing,
    /// It is set aside.
    Reserved(Reserved),
    /// The first account that has no room.
    Short(Box<Shortfall>),
    /// Accounts that nobody has said of what they have spent: the places of their draws.
    Unseeded(Vec<usize>),
}

/// Money that is set aside.
#[derive(Debug, PartialEq)]
pub struct Reserved {
    /// How much, on each account. Less than was asked for where an account had no more left, and no call under way.
    pub amount: NanoUsd,
    /// The accounts: those of the runs, nearest first, then in the order of the draws.
    pub accounts: Vec<ReservedAccount>,
}

/// An account that money is set aside on.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservedAccount {
    /// Which, with its limit.
    pub draw: Draw,
    /// What it had spent.
    pub settled: NanoUsd,
    /// What is set aside on it by all calls of all nodes, this one included.
    pub reserved: NanoUsd,
}

/// A run as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNow {
    /// What it has come to.
    pub totals: RunTotals,
    /// False for a run of which only a child has been seen.
    pub is_opened: bool,
    /// Its calls in flight, on all nodes.
    pub in_flight: u32,
}

/// A call that has begun, as [`Shared`](super::Shared) knows it again.
#[derive(Debug)]
pub struct SharedCall {
    pub(super) id: String,
    pub(super) run: Option<RunId>,
    /// The generation of all that is kept of the agent.
    pub(super) born: Option<String>,
    /// The places that know of it: that of its agent first, in a cluster others too.
    pub(super) places: Vec<String>,
    /// What it drew on.
    pub(super) accounts: Vec<Drawn>,
    /// The keys that this node holds something of, for the call.
    pub(super) held: Vec<String>,
    /// The tree of its run, for limits of runs.
    pub(super) tree: Vec<RunPlace>,
    /// It was ended before.
    pub(super) is_over: AtomicBool,
}

/// An account that a call drew on.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) draw: Draw,
    pub(super) key: String,
    /// Where it lies in a cluster.
    pub(super) place: String,
}

impl Purse {
    /// The reservation, if there is one.
    #[must_use]
    pub fn reserved(&self) -> Option<&Reserved> {
        match self {
            Purse::Reserved(reserved) => Some(reserved),
            Purse::Nothing | Purse::Short(_) | Purse::Unseeded(_) => None,
        }
    }
}
