//! One way to speak to every kind of state, so that one suite runs over all of them. The shared state is spoken to by
//! `begin` and `end`, as the program does.
#![allow(dead_code, unused_imports, unused_macros, reason = "each suite uses its own part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic and print")]

mod money;
mod redis;

use sprag_core::id::AgentName;
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::state::{
    OpenRefusal, OpenRequest, Opened, RateAsk, Rated, RatesTaken, RunTotals, Settlement, State, StateCounts,
};

pub(crate) use money::Held;
pub(crate) use redis::{NOTHING, RedisState, call_id, ending, outside, refused};

/// A state of some kind.
pub(crate) enum AnyState {
    Memory(Box<State>),
    Redis(Box<RedisState>),
}

/// Rates that were taken, to be corrected.
pub(crate) enum Taken {
    Memory(RatesTaken),
    Redis(redis::Call),
}

/// Runs a test over memory, and over a Redis where there is one.
macro_rules! over_every_state {
    ($($test:ident),* $(,)?) => {
        $(
            mod $test {
                #[test]
                fn in_memory() {
                    super::$test(&crate::contract::AnyState::memory());
                }

                #[test]
                fn in_redis() {
                    if let Some(state) = crate::contract::AnyState::redis() {
                        super::$test(&state);
                    }
                }
            }
        )*
    };
}
pub(crate) use over_every_state;

impl AnyState {
    pub(crate) fn memory() -> AnyState {
        AnyState::Memory(Box::new(State::memory()))
    }

    pub(crate) fn redis() -> Option<AnyState> {
        Some(AnyState::Redis(Box::new(RedisState::start()?)))
    }

    /// How many calls make a storm: as many as take a second or two.
    pub(crate) fn storm(&self) -> i64 {
        match self {
            AnyState::Memory(_) => 1000,
            AnyState::Redis(_) => 100,
        }
    }

    pub(crate) fn open(&self, request: &OpenRequest) -> Result<Opened, OpenRefusal> {
        match self {
            AnyState::Memory(state) => state.open(request),
            AnyState::Redis(state) => Ok(state.open(request)),
        }
    }

    pub(crate) fn settle(&self, key: &RunKey, settlement: Settlement) -> RunTotals {
        match self {
            AnyState::Memory(state) => state.settle(key, settlement),
            AnyState::Redis(state) => state.settle(key, settlement),
        }
    }

    pub(crate) fn enter(&self, agent: &AgentName) -> u32 {
        match self {
            AnyState::Memory(state) => state.enter(agent),
            AnyState::Redis(state) => state.enter(agent),
        }
    }

    pub(crate) fn leave(&self, agent: &AgentName) {
        match self {
            AnyState::Memory(state) => state.leave(agent),
            AnyState::Redis(state) => state.leave(agent),
        }
    }

    pub(crate) fn totals(&self, key: &RunKey) -> Option<RunTotals> {
        match self {
            AnyState::Memory(state) => state.totals(key),
            AnyState::Redis(state) => state.run(key).map(|run| run.totals),
        }
    }

    pub(crate) fn knows(&self, key: &RunKey) -> bool {
        match self {
            AnyState::Memory(state) => state.knows(key),
            AnyState::Redis(state) => state.run(key).is_some_and(|run| run.is_opened),
        }
    }

    pub(crate) fn counts(&self) -> StateCounts {
        match self {
            AnyState::Memory(state) => state.counts(),
            AnyState::Redis(state) => state.counts(),
        }
    }

    pub(crate) fn resolve(&self, clues: &[u64]) -> Option<(usize, RunKey)> {
        match self {
            AnyState::Memory(state) => state.resolve(clues),
            AnyState::Redis(state) => state.resolve(clues),
        }
    }

    pub(crate) fn remember(&self, clues: &[u64], key: &RunKey) {
        match self {
            AnyState::Memory(state) => state.keep(&Remember { clues: clues.to_vec(), ..Remember::default() }, key),
            AnyState::Redis(state) => state.leave_behind(key, |left| left.clues = clues.to_vec()),
        }
    }

    pub(crate) fn remember_unless_taken(&self, clue: u64, key: &RunKey) {
        match self {
            AnyState::Memory(state) => state.keep(&Remember { unless_taken: vec![clue], ..Remember::default() }, key),
            AnyState::Redis(state) => state.leave_behind(key, |left| left.unless_taken = vec![clue]),
        }
    }

    pub(crate) fn offer(&self, clue: u64, key: &RunKey) {
        match self {
            AnyState::Memory(state) => state.keep(&Remember { offers: vec![clue], ..Remember::default() }, key),
            AnyState::Redis(state) => state.leave_behind(key, |left| left.offers = vec![clue]),
        }
    }

    pub(crate) fn withdraw(&self, clue: u64, key: &RunKey) {
        match self {
            AnyState::Memory(state) => state.keep(&Remember { withdrawn: vec![clue], ..Remember::default() }, key),
            AnyState::Redis(state) => state.leave_behind(key, |left| left.withdrawn = vec![clue]),
        }
    }

    pub(crate) fn claim(&self, clue: u64) -> Option<RunKey> {
        match self {
            AnyState::Memory(state) => state.claim(clue),
            AnyState::Redis(state) => state.claim(clue),
        }
    }

    pub(crate) fn take_rates(&self, asks: &[RateAsk<'_>], now: Timestamp) -> (Rated, Taken) {
        match self {
            AnyState::Memory(state) => {
                let mut rated = state.take_rates(asks, now);
                let taken = std::mem::take(&mut rated.taken);
                (rated, Taken::Memory(taken))
            }
            AnyState::Redis(state) => {
                let (rated, call) = state.take_rates(asks, now);
                (rated, Taken::Redis(call))
            }
        }
    }

    pub(crate) fn correct_rates(&self, taken: Taken, used_tokens: u64, now: Timestamp) {
        match (self, taken) {
            (AnyState::Memory(state), Taken::Memory(taken)) => state.correct_rates(&taken, used_tokens),
            (AnyState::Redis(state), Taken::Redis(call)) => state.correct_rates(&call, used_tokens, now),
            _ => panic!("rates of another state"),
        }
    }
}
