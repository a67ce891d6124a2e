//! The runs that are going on: their steps, money and calls in flight, and how requests are recognised as theirs.
//!
//! Everything here is bounded and may be forgotten; the record is the history's. Nothing is decided here: callers get
//! the numbers and decide.

mod elsewhere;
mod memory;
mod money;
mod rates;
mod recent;

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{AgentWatch, Finding, RepeatRule, RunWatch};
use sprag_core::money::NanoUsd;
use sprag_core::policy::Habits;
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;

use crate::run_key::RunKey;

pub use memory::MemoryState;
pub use money::Lesson;
pub use rates::{RateAsk, Rated, RatesTaken};
pub use recent::Recent;

/// Where run state is kept.
pub enum State {
    /// In this process.
    Memory(MemoryState),
}

/// A call that wants to begin.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The run that it belongs to.
    pub key: RunKey,
    /// The run of the same agent that this run is a part of. The first one told stays.
    pub parent: Option<RunId>,
    /// How the run was recognised.
    pub origin: RunOrigin,
    /// When the request arrived.
    pub now: Timestamp,
    /// What the history knows of the run; used only where memory knows nothing.
    pub seed: Option<RunTotals>,
    /// What the history knows of the runs above, nearest first; used only where memory knows nothing of them.
    pub lineage: Vec<Ancestor>,
}

/// A run above another, as the history knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its id.
    pub id: RunId,
    /// What it had come to; nothing where only its children are on record.
    pub totals: Option<RunTotals>,
}

/// A run of a call's tree, from the call upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// Its id.
    pub id: RunId,
    /// How it was recognised: by its own calls, or by those below it.
    pub origin: RunOrigin,
    /// Calls begun in its whole tree, this one included, refused ones not.
    pub steps: u32,
    /// When its first call began.
    pub first_at: Timestamp,
    /// What its whole tree has cost so far.
    pub tree_cost: NanoUsd,
}

/// A call that has begun. It must be settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The number of this step; 1 for the first of the run.
    pub step: u32,
    /// The run's totals before this step.
    pub totals: RunTotals,
    /// The run was known neither to memory nor to the seed.
    pub is_new: bool,
    /// Calls of the run in flight, this one included.
    pub in_flight: u32,
    /// Calls of the agent in flight, this one included.
    pub agent_in_flight: u32,
    /// What the run's calls used so far.
    pub habits: Habits,
    /// The run itself, then those above it, nearest first.
    pub tree: Vec<RunPlace>,
}

/// Why a call did not begin. Nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefusal {
    /// Every run that fits into memory has calls in flight.
    #[error("too many runs have calls in flight")]
    TooManyRuns,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub struct Settlement {
    /// What it cost; absent for a model without a price, or when nothing was used.
    pub cost: Option<NanoUsd>,
    /// What it used; absent when nothing was.
    pub usage: Option<Usage>,
    /// How it ended.
    pub ending: Ending,
    /// When it ended.
    pub now: Timestamp,
}

/// What a run has come to. `tree_*` includes the runs that are a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Calls begun, refused ones included.
    pub steps: u32,
    /// What they cost.
    pub cost: NanoUsd,
    /// Calls begun in the whole tree.
    pub tree_steps: u32,
    /// What the whole tree cost.
    pub tree_cost: NanoUsd,
    /// Calls of the whole tree that were refused or cut by a kill: no limit counts them.
    pub tree_refused: u32,
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Calls that used tokens of an unknown price.
    pub unpriced_steps: u32,
    /// Calls that failed upstream.
    pub failed_steps: u32,
    /// When the first call began.
    pub first_at: Timestamp,
    /// When a call last began or ended.
    pub last_at: Timestamp,
}

impl RunTotals {
    /// Calls of the whole tree that count against its limits.
    #[must_use]
    pub fn counted_steps(&self) -> u32 {
        self.tree_steps.saturating_sub(self.tree_refused)
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Runs in memory.
    pub runs: usize,
    /// Calls in flight.
    pub in_flight: usize,
    /// Clues to runs.
    pub clues: usize,
    /// Clues by which runs may be claimed.
    pub offers: usize,
    /// Counters of rate limits.
    pub rates: usize,
}

impl State {
    /// State kept in this process.
    #[must_use]
    pub fn memory() -> State {
        State::Memory(MemoryState::default())
    }

    /// Begins a call: counts its step and the call in flight, both or neither.
    ///
    /// # Errors
    /// When there is no room for its run.
    pub fn open(&self, request: &OpenRequest) -> Result<Opened, OpenRefusal> {
        match self {
            State::Memory(state) => state.open(request),
        }
    }

    /// Begins a request outside any run: counts it in flight for its agent and gives their number, this one included.
    pub fn enter(&self, agent: &AgentName) -> u32 {
        match self {
            State::Memory(state) => state.enter(agent),
        }
    }

    /// Ends a request outside any run. To be called once for each `enter`.
    pub fn leave(&self, agent: &AgentName) {
        match self {
            State::Memory(state) => state.leave(agent),
        }
    }

    /// Ends a call and adds what it cost to its run and to every run above it. To be called once for each `open`.
    pub fn settle(&self, key: &RunKey, settlement: Settlement) -> RunTotals {
        match self {
            State::Memory(state) => state.settle(key, settlement),
        }
    }

    /// Whether calls of the run are in memory. Where they are not, `open` takes what the history knows as a seed.
    #[must_use]
    pub fn knows(&self, key: &RunKey) -> bool {
        match self {
            State::Memory(state) => state.knows(key),
        }
    }

    /// A run's totals, if it is in memory, be it only for its children's sake.
    #[must_use]
    pub fn totals(&self, key: &RunKey) -> Option<RunTotals> {
        match self {
            State::Memory(state) => state.totals(key),
        }
    }

    /// The first clue that points to one run, by its place, and that run.
    #[must_use]
    pub fn resolve(&self, clues: &[u64]) -> Option<(usize, RunKey)> {
        match self {
            State::Memory(state) => state.resolve(clues),
        }
    }

    /// Keeps all that a call left behind.
    pub fn keep(&self, left: &Remember, key: &RunKey) {
        match self {
            State::Memory(state) => state.keep(left, key),
        }
    }

    /// Lets clues point to a run, whatever they pointed to before.
    pub fn remember(&self, clues: &[u64], key: &RunKey) {
        match self {
            State::Memory(state) => state.remember(clues, key),
        }
    }

    /// The run that offered a clue last, and no longer does.
    #[must_use]
    pub fn claim(&self, clue: u64) -> Option<RunKey> {
        match self {
            State::Memory(state) => state.claim(clue),
        }
    }

    /// Takes back what a run offered.
    pub fn withdraw(&self, clue: u64, key: &RunKey) {
        match self {
            State::Memory(state) => state.withdraw(clue, key),
        }
    }

    /// Works on what detection keeps of a run; None if the run is not in memory.
    pub fn watch<R>(&self, key: &RunKey, work: impl FnOnce(&mut RunWatch) -> R) -> Option<R> {
        match self {
            State::Memory(state) => state.watch(key, work),
        }
    }

    /// Counts a request among identical ones; a finding when there are too many.
    pub fn count_repeat(&self, fingerprint: u64, now: Timestamp, rule: &RepeatRule) -> Option<Finding> {
        match self {
            State::Memory(state) => state.count_repeat(fingerprint, now, rule),
        }
    }

    /// Counts a call in every rule that it is asked about, or in none where one in force has no room.
    pub fn take_rates(&self, asks: &[RateAsk<'_>], now: Timestamp) -> Rated {
        match self {
            State::Memory(state) => state.take_rates(asks, now),
        }
    }

    /// Corrects the tokens taken for a call by those that it used. To be called once, with 0 for a call that was not made.
    pub fn correct_rates(&self, taken: &RatesTaken, used_tokens: u64) {
        match self {
            State::Memory(state) => state.correct_rates(taken, used_tokens),
        }
    }

    /// Works on what detection keeps of an agent.
    pub fn watch_agent<R>(&self, agent: &AgentName, now: Timestamp, work: impl FnOnce(&mut AgentWatch) -> R) -> R {
        match self {
            State::Memory(state) => state.watch_agent(agent, now, work),
        }
    }

    /// The clues that lead to a run, as far as they are in memory, at most so many. Looks through all of them.
    #[must_use]
    pub fn clues_of(&self, key: &RunKey, most: usize) -> Vec<u64> {
        match self {
            State::Memory(state) => state.clues_of(key, most),
        }
    }

    /// A run is resumed: what it did so far is no longer evidence against it. Gives its totals, if it is in memory.
    pub fn mark(&self, key: &RunKey) -> Option<RunTotals> {
        match self {
            State::Memory(state) => state.mark(key),
        }
    }

    /// An agent is activated: what it did so far is no longer evidence against it.
    pub fn forget_agent(&self, agent: &AgentName) {
        match self {
            State::Memory(state) => state.forget_agent(agent),
        }
    }

    /// Forgets runs that have been idle for this long, and says how many. Idle accounts go with them.
    pub fn sweep(&self, now: Timestamp, idle_ms: u64) -> usize {
        match self {
            State::Memory(state) => state.sweep(now, idle_ms),
        }
    }

    /// How much is kept.
    #[must_use]
    pub fn counts(&self) -> StateCounts {
        match self {
            State::Memory(state) => state.counts(),
        }
    }
}
