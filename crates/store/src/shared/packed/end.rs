//! What `end` is given.

use sprag_core::event::Ending;
use sprag_core::run::Remember;

use super::{Blob, DrawTable, Head, Stream, WatchTable, amount, hexes, pack};
use crate::shared::keys;
use crate::state::Settlement;

/// Of a call that drew on nothing.
const NO_ACCOUNTS: [DrawTable; 0] = [];

/// Where what stands behind the values begins, among the arguments.
const BEHIND_VALUES: usize = 2;

#[derive(Clone, Debug)]
pub(in crate::shared) struct EndTable {
    pub(in crate::shared) head: Head,
    pub(in crate::shared) how: HowTable,
    /// It is the part of the call that lies with its agent.
    pub(in crate::shared) agent: bool,
    pub(in crate::shared) run: Option<String>,
    pub(in crate::shared) born: Option<String>,
    /// It may have been told before.
    pub(in crate::shared) again: bool,
    /// Tokens that were used; absent where what was taken is given back.
    pub(in crate::shared) used: Option<u64>,
    pub(in crate::shared) uncounts: bool,
    pub(in crate::shared) left: Remember,
    pub(in crate::shared) watch: Option<WatchTable>,
    pub(in crate::shared) agent_watch: Option<WatchTable>,
    pub(in crate::shared) habits: Option<Blob>,
    /// What calls of the agent to the model use: its key, and the place of the bytes.
    pub(in crate::shared) of_model: Option<(String, Blob)>,
    /// The accounts that it drew on.
    pub(in crate::shared) drawn: Vec<String>,
    /// The same with what this node has heard of them, should what it noted be lost: a packed list of [`DrawTable`], the first of all
    /// further arguments.
    pub(in crate::shared) accounts: Blob,
    /// Accounts that it did not draw on.
    pub(in crate::shared) late: Vec<String>,
    /// Further arguments.
    pub(in crate::shared) blobs: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
pub(in crate::shared) struct HowTable {
    pub(in crate::shared) cost: i64,
    pub(in crate::shared) input: u64,
    pub(in crate::shared) output: u64,
    pub(in crate::shared) unpriced: u32,
    pub(in crate::shared) failed: u32,
    pub(in crate::shared) is_refused: bool,
    pub(in crate::shared) is_withdrawn: bool,
}

impl EndTable {
    /// Takes a call back, whatever came of it.
    pub(in crate::shared) fn withdrawing(head: Head) -> EndTable {
        let mut blobs = Vec::new();
        EndTable {
            head,
            how: HowTable { is_withdrawn: true, ..HowTable::default() },
            agent: true,
            run: None,
            born: None,
            again: false,
            used: None,
            uncounts: true,
            left: Remember::default(),
            watch: None,
            agent_watch: None,
            habits: None,
            of_model: None,
            drawn: Vec::new(),
            accounts: Blob::put(&mut blobs, pack(&NO_ACCOUNTS)),
            late: Vec::new(),
            blobs,
        }
    }

    /// The arguments: values in the order of `given_end.lua`, then what no script reads, then keys.
    pub(in crate::shared) fn arguments(&self) -> Vec<Vec<u8>> {
        let Head { p, call, node, fresh, now } = &self.head;
        let HowTable { cost, input, output, unpriced, failed, is_refused, is_withdrawn } = &self.how;
        let (left, reads) = (&self.left, self.keys());
        let (watch, agent_watch) = (self.watch.as_ref(), self.agent_watch.as_ref());
        let values = Stream::default()
            .put(p)
            .put(call)
            .put(node)
            .put(fresh)
            .put(now)
            .put(&(BEHIND_VALUES + self.blobs.len()))
            .put(&reads.len())
            .put(&self.late.len())
            .put(&self.agent)
            .put(&self.run)
            .put(&self.born)
            .put(&self.again)
            .put(&self.used)
            .put(&self.uncounts)
            .put(cost)
            .put(input)
            .put(output)
            .put(unpriced)
            .put(failed)
            .put(is_refused)
            .put(is_withdrawn)
            .put(&hexes(&left.clues))
            .put(&hexes(&left.unless_taken))
            .put(&hexes(&left.withdrawn))
            .put(&hexes(&left.offers))
            .put(&watch.and_then(|watch| watch.based.as_ref()))
            .put(&watch.map(|watch| watch.value))
            .put(&agent_watch.and_then(|watch| watch.based.as_ref()))
            .put(&agent_watch.map(|watch| watch.value))
            .put(&self.habits)
            .put(&self.of_model.as_ref().map(|(key, _)| key))
            .put(&self.of_model.as_ref().map(|(_, bytes)| bytes))
            .put(&self.accounts);
        let keys = reads.into_iter().map(String::into_bytes);
        [values.0].into_iter().chain(self.blobs.iter().cloned()).chain(keys).collect()
    }

    /// What it reads. Accounts that it did not draw on are the last.
    fn keys(&self) -> Vec<String> {
        let (p, left) = (&self.head.p, &self.left);
        let mut keys = vec![keys::call(p, &self.head.call)];
        keys.extend(self.agent.then(|| keys::agent(p)));
        if let Some(run) = &self.run {
            keys.push(keys::run(p, run));
            keys.extend(self.watch.as_ref().map(|_| keys::run_watch(p, run)));
            keys.extend(left.unless_taken.iter().map(|hash| keys::clue(p, *hash)));
            keys.extend(left.withdrawn.iter().chain(&left.offers).map(|hash| keys::offer(p, *hash)));
        }
        keys.extend(self.agent_watch.as_ref().map(|_| keys::agent_watch(p)));
        keys.extend(self.drawn.iter().chain(&self.late).cloned());
        keys
    }
}

impl HowTable {
    pub(in crate::shared) fn of(settlement: &Settlement) -> HowTable {
        let usage = settlement.usage;
        let is_failed = matches!(settlement.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        HowTable {
            cost: amount(settlement.cost.unwrap_or_default()),
            input: usage.map_or(0, |usage| usage.prompt_tokens()),
            output: usage.map_or(0, |usage| usage.output),
            unpriced: u32::from(settlement.cost.is_none() && usage.is_some()),
            failed: u32::from(is_failed),
            is_refused: matches!(settlement.ending, Ending::Refused | Ending::Killed),
            is_withdrawn: false,
        }
    }
}
