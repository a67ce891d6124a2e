//! What `begin` is given.

use std::collections::BTreeMap;

use serde::Serialize;
use sprag_core::event::RunOrigin;
use sprag_core::run::Lookup;

use super::{Head, MoneyTable, RateTable, Stream, hexes};
use crate::shared::{Follows, keys};

#[derive(Clone, Debug)]
pub(in crate::shared) struct BeginTable {
    pub(in crate::shared) head: Head,
    /// It is the part of the call that lies with its agent.
    pub(in crate::shared) agent: bool,
    pub(in crate::shared) run: Option<RunTable>,
    pub(in crate::shared) agent_watch: Option<String>,
    /// The key of what calls of the agent to the model use.
    pub(in crate::shared) habits: Option<String>,
    pub(in crate::shared) rates: Vec<RateTable>,
    pub(in crate::shared) money: Option<MoneyTable>,
    pub(in crate::shared) repeat: Option<RepeatTable>,
    pub(in crate::shared) corrections: BTreeMap<String, i64>,
}

#[derive(Clone, Debug)]
pub(in crate::shared) struct RunTable {
    pub(in crate::shared) id: String,
    pub(in crate::shared) parent: Option<String>,
    pub(in crate::shared) origin: RunOrigin,
    pub(in crate::shared) seed: Option<[i64; 11]>,
    pub(in crate::shared) lineage: Vec<AncestorTable>,
    pub(in crate::shared) clues: Vec<ClueTable>,
    pub(in crate::shared) have: Option<HaveTable>,
    pub(in crate::shared) follows: Follows,
    /// What it leaves at once.
    pub(in crate::shared) left_clues: Vec<u64>,
    pub(in crate::shared) left_offers: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::shared) struct AncestorTable {
    pub(in crate::shared) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::shared) totals: Option<[i64; 11]>,
}

/// A clue: how it is looked up, its hash, and how a run that it leads to was recognised.
#[derive(Clone, Debug)]
pub(in crate::shared) struct ClueTable(
    pub(in crate::shared) Lookup,
    pub(in crate::shared) u64,
    pub(in crate::shared) RunOrigin,
);

#[derive(Clone, Debug)]
pub(in crate::shared) struct HaveTable {
    pub(in crate::shared) id: String,
    pub(in crate::shared) version: String,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::shared) struct RepeatTable {
    pub(in crate::shared) k: String,
    pub(in crate::shared) hits: String,
    pub(in crate::shared) requests: u32,
    pub(in crate::shared) seconds: u32,
    pub(in crate::shared) mode: &'static str,
}

/// Where the first key stands among the arguments.
const FIRST_KEY: usize = 2;

impl BeginTable {
    /// The arguments: values in the order of `given_begin.lua`, then keys, then where clues are brought how each leads to a run.
    /// With `may_doubt` it begins only where nothing is under way any longer that it goes on from.
    pub(in crate::shared) fn arguments(&self, may_doubt: bool) -> Vec<Vec<u8>> {
        let Head { p, call, node, fresh, now } = &self.head;
        let mut reads = self.keys_of_agent();
        let run = self.run.as_ref();
        let clues = run.map(|run| run.clues.as_slice()).unwrap_or_default();
        let clues_at = reads.len() + FIRST_KEY + run.map_or(0, |run| run.left_offers.len());
        reads.extend(run.iter().flat_map(|run| self.keys_of_run(run)));
        let origins_at = reads.len() + FIRST_KEY;
        let brings = !clues.is_empty();
        let have = run.and_then(|run| run.have.as_ref());
        let money = self.money.as_ref();
        let values = Stream::default()
            .put(p)
            .put(call)
            .put(node)
            .put(fresh)
            .put(now)
            .put(&reads.len())
            .put(&self.agent)
            .put(&self.agent_watch)
            .put(&self.habits)
            .put(&run.map(|run| &run.id))
            .put(&run.map(|run| run.origin))
            .put(&run.and_then(|run| run.parent.as_ref()))
            .put(&run.and_then(|run| run.seed))
            .put(&run.map(|run| &run.lineage).filter(|lineage| !lineage.is_empty()))
            .put(&brings.then(|| clues.iter().map(ClueTable::how).collect::<String>()))
            .put(&brings.then_some(origins_at))
            .put(&brings.then_some(clues_at))
            .put(&have.map(|have| &have.id))
            .put(&have.map(|have| &have.version))
            .put(&run.filter(|_| may_doubt).and_then(|run| self.follows(run)))
            .put(&run.map(|run| hexes(&run.left_clues)))
            .put(&run.map(|run| hexes(&run.left_offers)))
            .put(&Some(&self.rates).filter(|rates| !rates.is_empty()))
            .put(&self.repeat)
            .put(&money.map(|money| money.amount))
            .put(&money.map(|money| money.least))
            .put(&money.map(|money| &money.force))
            .put(&money.map(|money| &money.shadow).filter(|shadow| !shadow.is_empty()))
            .put(&Some(&self.corrections).filter(|corrections| !corrections.is_empty()));
        let origins = clues.iter().fold(Stream::default(), |origins, clue| origins.put(&clue.2));
        let keys = reads.into_iter().map(String::into_bytes);
        [values.0].into_iter().chain(keys).chain(brings.then_some(origins.0)).collect()
    }

    fn keys_of_agent(&self) -> Vec<String> {
        let p = &self.head.p;
        let mut keys = vec![keys::call(p, &self.head.call)];
        keys.extend(self.agent.then(|| keys::agent(p)));
        keys.extend(self.agent_watch.as_ref().map(|_| keys::agent_watch(p)));
        keys.extend(self.habits.clone());
        keys.extend(self.rates.iter().map(|rate| rate.k.clone()));
        keys.extend(self.repeat.as_ref().map(|repeat| repeat.k.clone()));
        let draws = self.money.iter().flat_map(|money| money.force.draws.iter().chain(&money.shadow.draws));
        keys.extend(draws.map(|draw| draw.k.clone()));
        keys
    }

    /// Offers that it leaves, then the clues that it brings; or where it brings none, what is kept of the run. Last what it goes on from.
    fn keys_of_run(&self, run: &RunTable) -> Vec<String> {
        let p = &self.head.p;
        let mut keys: Vec<String> = run.left_offers.iter().map(|hash| keys::offer(p, *hash)).collect();
        if run.clues.is_empty() {
            keys.extend([keys::run(p, &run.id), keys::run_watch(p, &run.id)]);
            let purses = self.money.iter().flat_map(|money| [&money.force, &money.shadow]);
            let kinds = purses.filter_map(|purse| purse.runs.as_ref()).map(|runs| runs.kind);
            keys.extend(kinds.map(|kind| keys::run_account_of(p, kind, &run.id)));
        }
        keys.extend(run.clues.iter().map(|clue| match clue.0 {
            Lookup::Known => keys::clue(p, clue.1),
            Lookup::Claim | Lookup::Retry => keys::offer(p, clue.1),
        }));
        keys.extend(self.follows(run).filter(|key| !key.is_empty() && !keys.contains(key)));
        keys
    }

    /// The key that is there when what the call goes on from is over; empty where there is none.
    fn follows(&self, run: &RunTable) -> Option<String> {
        match run.follows {
            Follows::Nothing => None,
            Follows::Answer(clue) => Some(keys::clue(&self.head.p, clue)),
            Follows::Unsaid => Some(String::new()),
        }
    }
}

impl ClueTable {
    fn how(&self) -> char {
        match self.0 {
            Lookup::Known => 'k',
            Lookup::Claim => 'c',
            Lookup::Retry => 'r',
        }
    }
}
