//! Run state of one process, behind sharded locks of which one is held at a time.
//!
//! A call counts in its agent, its run and the runs above. Each of these is exact; a reader between two of the steps
//! may see the one and not yet the other.

mod accounts;
mod agents;
mod elsewhere;
mod offers;
mod rates;
mod run;
mod runs;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foldhash::quality::RandomState;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{CLUES_IN_MEMORY, HABITS, RUN_TREE_DEPTH, RUNS_IN_MEMORY};
use sprag_core::loops::{AgentWatch, Finding, Mode, RepeatCounters, RepeatRule, RunWatch};
use sprag_core::policy::Habits;
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;

use super::{
    Lesson, OpenRefusal, OpenRequest, Opened, RateAsk, Rated, RatesTaken, Recent, RunTotals, Settlement, StateCounts,
};
use crate::run_key::{RunKey, agent_hash, model_hash};
use crate::shards::{SHARDS, Shards, with_lock};
use accounts::Accounts;
use agents::WatchedAgents;
use offers::Offers;
use rates::Rates;
use run::Run;
use runs::Runs;

/// Runs, agents' calls in flight, and clues.
pub struct MemoryState {
    /// Clues and offers share the names.
    runs: Runs,
    /// Only agents with calls in flight, so their number is bounded by those.
    agents: Shards<HashMap<AgentName, u32, RandomState>>,
    clues: Recent<Clue>,
    offers: Offers,
    watched: WatchedAgents,
    repeats: Mutex<RepeatCounters>,
    rates: Rates,
    pub(super) accounts: Accounts,
    /// By agent and model, and by model alone.
    habits: Recent<Habits>,
}

#[derive(Clone, Debug)]
enum Clue {
    Run(Arc<RunKey>),
    /// More than one run left it behind.
    Ambiguous,
}

impl Default for MemoryState {
    fn default() -> MemoryState {
        MemoryState::with_bounds(RUNS_IN_MEMORY, CLUES_IN_MEMORY)
    }
}

impl MemoryState {
    /// State with room for this many runs and clues; very small bounds are rounded up.
    #[must_use]
    pub fn with_bounds(runs: usize, clues: usize) -> MemoryState {
        MemoryState {
            runs: Runs::new((runs / SHARDS).max(1)),
            agents: Shards::default(),
            clues: Recent::new(clues),
            offers: Offers::new(clues / 4),
            watched: WatchedAgents::default(),
            repeats: Mutex::default(),
            rates: Rates::default(),
            accounts: Accounts::default(),
            habits: Recent::new(HABITS),
        }
    }

    pub(super) fn open(&self, request: &OpenRequest) -> Result<Opened, OpenRefusal> {
        let agent_in_flight = self.enter(&request.key.agent);
        let opened = self.with_run(&request.key, |run| run.open(request, agent_in_flight));
        let Some((mut opened, parent)) = opened else {
            self.leave(&request.key.agent);
            return Err(OpenRefusal::TooManyRuns);
        };
        self.for_each_ancestor(&request.key, parent, true, |id, run| {
            run.recall(id, &request.lineage);
            run.child_opened(request.now, request.origin);
            opened.tree.push(run.place(id));
        });
        Ok(opened)
    }

    pub(super) fn enter(&self, agent: &AgentName) -> u32 {
        self.agents.with(agent_hash(agent), |agents| match agents.get_mut(agent) {
            Some(in_flight) => {
                *in_flight += 1;
                *in_flight
            }
            None => {
                agents.insert(agent.clone(), 1);
                1
            }
        })
    }

    pub(super) fn leave(&self, agent: &AgentName) {
        self.agents.with(agent_hash(agent), |agents| match agents.get_mut(agent) {
            Some(in_flight) if *in_flight > 1 => *in_flight -= 1,
            _ => {
                agents.remove(agent);
            }
        });
    }

    pub(super) fn settle(&self, key: &RunKey, settlement: Settlement) -> RunTotals {
        let settled = self.runs.change(key, |run| run.settle(&key.agent, &settlement)).flatten();
        // A run with a call in flight is never forgotten, so this call was settled before or never opened.
        let Some((totals, parent)) = settled else {
            return self.totals(key).unwrap_or_default();
        };
        self.leave(&key.agent);
        self.for_each_ancestor(key, parent, false, |_, run| run.child_settled(&settlement));
        totals
    }

    pub(super) fn knows(&self, key: &RunKey) -> bool {
        self.runs.look(key, |run| run.is_opened).unwrap_or_default()
    }

    pub(super) fn totals(&self, key: &RunKey) -> Option<RunTotals> {
        self.runs.look(key, |run| run.totals)
    }

    pub(super) fn resolve(&self, clues: &[u64]) -> Option<(usize, RunKey)> {
        clues.iter().enumerate().find_map(|(place, &clue)| match self.clues.get(clue) {
            Some(Clue::Run(key)) => Some((place, RunKey::clone(&key))),
            Some(Clue::Ambiguous) | None => None,
        })
    }

    pub(super) fn keep(&self, left: &Remember, key: &RunKey) {
        let Remember { clues, unless_taken, offers, withdrawn } = left;
        withdrawn.iter().for_each(|clue| self.withdraw(*clue, key));
        if clues.is_empty() && unless_taken.is_empty() && offers.is_empty() {
            return;
        }
        let name = self.name(key);
        clues.iter().for_each(|clue| self.clues.insert(*clue, Clue::Run(name.clone())));
        unless_taken.iter().for_each(|clue| self.lead_unless_taken(*clue, &name));
        offers.iter().for_each(|clue| self.offers.offer(*clue, name.clone()));
    }

    pub(super) fn remember(&self, clues: &[u64], key: &RunKey) {
        if clues.is_empty() {
            return;
        }
        let name = self.name(key);
        for &clue in clues {
            self.clues.insert(clue, Clue::Run(name.clone()));
        }
    }

    /// Lets a clue point to a run, unless it points to another one: then it points to none from now on.
    fn lead_unless_taken(&self, clue: u64, name: &Arc<RunKey>) {
        self.clues.update(clue, |known| match known {
            None => Clue::Run(name.clone()),
            Some(Clue::Run(other)) if other == *name => Clue::Run(other),
            Some(Clue::Run(_) | Clue::Ambiguous) => Clue::Ambiguous,
        });
    }

    pub(super) fn claim(&self, clue: u64) -> Option<RunKey> {
        self.offers.claim(clue)
    }

    pub(super) fn withdraw(&self, clue: u64, key: &RunKey) {
        self.offers.withdraw(clue, key);
    }

    pub(super) fn clues_of(&self, key: &RunKey, most: usize) -> Vec<u64> {
        self.clues.keys_where(most, |clue| matches!(clue, Clue::Run(run) if **run == *key))
    }

    pub(super) fn mark(&self, key: &RunKey) -> Option<RunTotals> {
        self.watch(key, RunWatch::forget);
        self.totals(key)
    }

    pub(super) fn watch<R>(&self, key: &RunKey, work: impl FnOnce(&mut RunWatch) -> R) -> Option<R> {
        self.runs.amend(key, |run| work(&mut run.watch))
    }

    pub(super) fn count_repeat(&self, fingerprint: u64, now: Timestamp, rule: &RepeatRule) -> Option<Finding> {
        if rule.common.mode == Mode::Off {
            return None;
        }
        with_lock(&self.repeats, |repeats| repeats.check(fingerprint, now, rule))
    }

    pub(super) fn take_rates(&self, asks: &[RateAsk<'_>], now: Timestamp) -> Rated {
        self.rates.take(asks, now)
    }

    pub(super) fn correct_rates(&self, taken: &RatesTaken, used_tokens: u64) {
        self.rates.correct(taken, used_tokens);
    }

    pub(super) fn watch_agent<R>(
        &self,
        agent: &AgentName,
        now: Timestamp,
        work: impl FnOnce(&mut AgentWatch) -> R,
    ) -> R {
        self.watched.with(agent, now, work)
    }

    pub(super) fn forget_agent(&self, agent: &AgentName) {
        self.watched.forget(agent);
    }

    pub(super) fn learn(&self, key: &RunKey, model: &str, lesson: &Lesson) {
        let Lesson { prompt_bytes, input_full_tokens, output_tokens } = *lesson;
        let learned = |mut habits: Habits| {
            habits.learn(prompt_bytes, input_full_tokens, output_tokens);
            habits
        };
        self.runs.amend(key, |run| run.habits = learned(run.habits));
        for number in [model_hash(Some(&key.agent), model), model_hash(None, model)] {
            self.habits.update(number, |known| learned(known.unwrap_or_default()));
        }
    }

    pub(super) fn habits(&self, agent: &AgentName, model: &str) -> Option<Habits> {
        self.habits.get(model_hash(Some(agent), model)).or_else(|| self.habits.get(model_hash(None, model)))
    }

    pub(super) fn sweep(&self, now: Timestamp, idle_ms: u64) -> usize {
        self.accounts.forget_idle(now, idle_ms);
        self.runs.sweep(now, idle_ms)
    }

    pub(super) fn counts(&self) -> StateCounts {
        StateCounts {
            runs: self.runs.len(),
            in_flight: self.agents.fold(0, |sum, agents| sum + agents.values().map(|&n| n as usize).sum::<usize>()),
            clues: self.clues.len(),
            offers: self.offers.len(),
            rates: self.rates.len(),
        }
    }

    /// Works on a run, making it first where it is unknown. `None` if there is no room for it.
    fn with_run<R>(&self, key: &RunKey, work: impl FnOnce(&mut Run) -> R) -> Option<R> {
        self.runs.change_or_make(key, || self.new_name(key), work)
    }

    /// The name of a run to be kept: the one that is kept already, or a new one.
    fn name(&self, key: &RunKey) -> Arc<RunKey> {
        self.runs.name(key).unwrap_or_else(|| self.new_name(key))
    }

    /// A name with at least the agent's name that is kept already. Every request brings its own copies, and a run would keep
    /// some of each.
    fn new_name(&self, key: &RunKey) -> Arc<RunKey> {
        let agent = self.watched.name(&key.agent).unwrap_or_else(|| key.agent.clone());
        Arc::new(RunKey { agent, id: key.id.clone() })
    }

    /// Works on the runs above one, nearest first. A parent that is not in memory is made only for a call that begins.
    fn for_each_ancestor(
        &self,
        key: &RunKey,
        mut parent: Option<RunKey>,
        is_made: bool,
        mut work: impl FnMut(&RunId, &mut Run),
    ) {
        let mut seen = vec![];
        while let Some(ancestor) = parent {
            // Callers name parents as they like: a circle must not count a call twice.
            if ancestor == *key || seen.contains(&ancestor) || seen.len() == RUN_TREE_DEPTH {
                return;
            }
            let visit = |run: &mut Run| {
                work(&ancestor.id, run);
                run.parent(&ancestor.agent)
            };
            parent = if is_made {
                self.with_run(&ancestor, visit).flatten()
            } else {
                self.runs.change(&ancestor, visit).flatten()
            };
            seen.push(ancestor);
        }
    }
}

#[cfg(test)]
mod tests;
