//! State that is kept elsewhere as well, where several nodes meet: this one follows what is known there, so that it is
//! near the truth should the other be lost.

use sprag_core::id::AgentName;
use sprag_core::loops::{AgentWatch, RunWatch};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Draw, Habits, Reservation};
use sprag_core::time::Timestamp;

use super::{Ancestor, OpenRefusal, OpenRequest, Opened, RunTotals, State};
use crate::run_key::RunKey;

impl State {
    /// Begins a call that was counted elsewhere: this node counts it too, and takes over what is known there.
    ///
    /// # Errors
    /// When there is no room for its run.
    pub fn open_counted(&self, request: &OpenRequest, counted: &Opened) -> Result<(), OpenRefusal> {
        match self {
            State::Memory(state) => state.open_counted(request, counted),
        }
    }

    /// What this node knows of the runs above one, nearest first.
    #[must_use]
    pub fn lineage(&self, key: &RunKey) -> Vec<Ancestor> {
        match self {
            State::Memory(state) => state.lineage(key),
        }
    }

    /// What the calls of a run used, if it is in memory.
    #[must_use]
    pub fn run_habits(&self, key: &RunKey) -> Option<Habits> {
        match self {
            State::Memory(state) => state.run_habits(key),
        }
    }

    /// Takes over what calls of a run, or of an agent with a model, use: where more calls were seen elsewhere.
    pub fn follow_habits(&self, key: Option<&RunKey>, of_model: Option<(&AgentName, &str)>, habits: Habits) {
        match self {
            State::Memory(state) => state.follow_habits(key, of_model, habits),
        }
    }

    /// Takes over what a run has come to.
    pub fn follow_run(&self, key: &RunKey, totals: &RunTotals) {
        match self {
            State::Memory(state) => state.follow_run(key, totals),
        }
    }

    /// The version of a run's watch that this node has seen elsewhere; 0 for none.
    #[must_use]
    pub fn watch_version(&self, key: &RunKey) -> u64 {
        match self {
            State::Memory(state) => state.with_watch_version(key, |_, version, _| *version).unwrap_or(0),
        }
    }

    /// Takes over another watch of a run. It is merged with what this node saw where `is_merged` says so, or where
    /// other calls of the run are under way here.
    pub fn follow_watch(&self, key: &RunKey, watch: RunWatch, version: u64, is_merged: bool) {
        match self {
            State::Memory(state) => state.follow_watch(key, watch, version, is_merged),
        }
    }

    /// A run's watch, packed, and the version that it grew from. From now on it is known under another one.
    #[must_use]
    pub fn hand_out_watch(&self, key: &RunKey, version: u64) -> Option<(Vec<u8>, u64)> {
        match self {
            State::Memory(state) => state.with_watch_version(key, |watch, own, _| {
                let based_on = std::mem::replace(own, version);
                (watch.pack(), based_on)
            }),
        }
    }

    /// The version of an agent's watch that this node has seen elsewhere; 0 for none.
    #[must_use]
    pub fn agent_watch_version(&self, agent: &AgentName, now: Timestamp) -> u64 {
        match self {
            State::Memory(state) => state.with_agent_version(agent, now, |_, version| *version),
        }
    }

    /// Takes over another watch of an agent. It is merged with what this node saw where `is_merged` says so, or where
    /// calls of the agent are under way here. Says whether any are.
    pub fn follow_agent_watch(&self, agent: &AgentName, watch: AgentWatch, version: u64, is_merged: bool) -> bool {
        match self {
            State::Memory(state) => state.follow_agent_watch(agent, watch, version, is_merged),
        }
    }

    /// An agent's watch, packed, and the version that it grew from. From now on it is known under another one.
    #[must_use]
    pub fn hand_out_agent_watch(&self, agent: &AgentName, now: Timestamp, version: u64) -> (Vec<u8>, u64) {
        match self {
            State::Memory(state) => state.with_agent_version(agent, now, |watch, own| {
                let based_on = std::mem::replace(own, version);
                (watch.pack(), based_on)
            }),
        }
    }

    /// Takes over what an account has spent.
    pub fn follow_account(&self, draw: &Draw, settled: NanoUsd, now: Timestamp) {
        match self {
            State::Memory(state) => state.accounts.follow(draw, settled, now),
        }
    }

    /// What the account of a draw has spent, if it is open for the draw's time.
    #[must_use]
    pub fn spent(&self, draw: &Draw) -> Option<NanoUsd> {
        match self {
            State::Memory(state) => state.accounts.spent(draw),
        }
    }

    /// Holds what was granted elsewhere, room or not. To be settled like any other reservation.
    pub fn hold_granted(&self, draws: &[Draw], amount: NanoUsd, now: Timestamp) -> Reservation {
        match self {
            State::Memory(state) => state.accounts.hold_granted(draws, amount, now),
        }
    }

    /// Raises a reservation to what was granted elsewhere, room or not.
    pub fn raise_granted(&self, reservation: &mut Reservation, amount: NanoUsd) {
        match self {
            State::Memory(state) => state.accounts.raise_granted(reservation, amount),
        }
    }
}
