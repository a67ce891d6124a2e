//! What detection keeps of each agent, and the counters of identical requests. Bounded; the longest quiet leave first.

use std::collections::HashMap;

use foldhash::quality::RandomState;
use sprag_core::id::AgentName;
use sprag_core::limits::AGENTS_WATCHED;
use sprag_core::loops::AgentWatch;
use sprag_core::time::Timestamp;

use crate::run_key::agent_hash;
use crate::shards::{SHARDS, Shards};

#[derive(Debug)]
pub(super) struct WatchedAgents {
    agents: Shards<HashMap<AgentName, Watched, RandomState>>,
    /// Room of one shard.
    room: usize,
}

#[derive(Debug, Default)]
struct Watched {
    watch: AgentWatch,
    /// Which version of it the node has seen elsewhere; 0 for none.
    version: u64,
    last_at: Timestamp,
}

impl Default for WatchedAgents {
    fn default() -> WatchedAgents {
        WatchedAgents { agents: Shards::default(), room: AGENTS_WATCHED / SHARDS }
    }
}

impl WatchedAgents {
    /// Works on the record of an agent, which is made where there is none.
    pub(super) fn with<R>(&self, agent: &AgentName, now: Timestamp, work: impl FnOnce(&mut AgentWatch) -> R) -> R {
        self.with_version(agent, now, |watch, _| work(watch))
    }

    /// The same, with the version that was seen elsewhere.
    pub(super) fn with_version<R>(
        &self,
        agent: &AgentName,
        now: Timestamp,
        work: impl FnOnce(&mut AgentWatch, &mut u64) -> R,
    ) -> R {
        self.agents.with(agent_hash(agent), |agents| {
            if agents.len() >= self.room && !agents.contains_key(agent) {
                forget_the_quietest(agents);
            }
            let watched = agents.entry(agent.clone()).or_default();
            watched.last_at = watched.last_at.max(now);
            work(&mut watched.watch, &mut watched.version)
        })
    }

    /// An agent's name as it is kept here, so that others can share it.
    pub(super) fn name(&self, agent: &AgentName) -> Option<AgentName> {
        self.agents.with(agent_hash(agent), |agents| agents.get_key_value(agent).map(|(name, _)| name.clone()))
    }

    /// Forgets an agent's past.
    pub(super) fn forget(&self, agent: &AgentName) {
        self.agents.with(agent_hash(agent), |agents| agents.get_mut(agent).map(|agent| agent.watch.forget()));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.agents.fold(0, |sum, agents| sum + agents.len())
    }
}

/// Forgets the quietest eighth, so that the search for them is paid once for many agents.
fn forget_the_quietest(agents: &mut HashMap<AgentName, Watched, RandomState>) {
    let mut times: Vec<Timestamp> = agents.values().map(|agent| agent.last_at).collect();
    let last = times.len() / 8;
    let (_, newest_to_go, _) = times.select_nth_unstable(last);
    let newest_to_go = *newest_to_go;
    let mut left = last + 1;
    agents.retain(|_, agent| {
        let goes = left > 0 && agent.last_at <= newest_to_go;
        left -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_quiet_agents_are_forgotten_first() {
        let agents = WatchedAgents { agents: Shards::default(), room: 8 };
        let name = |n: u64| AgentName::parse(&format!("agent-{n}")).unwrap();
        for n in 0..10_000 {
            agents.with(&name(n), Timestamp(i64::try_from(n).unwrap()), |_| ());
            assert!(agents.len() <= 8 * SHARDS, "after {n}");
        }
        let newest = name(9_999);
        let is_known = agents.agents.with(agent_hash(&newest), |agents| agents.contains_key(&newest));
        assert!(is_known);
    }
}
