//! What a call that begins asks of the shared state.

use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::RepeatRule;
use sprag_core::money::NanoUsd;
use sprag_core::policy::Draw;
use sprag_core::run::{Clue, Remember};

use crate::state::{Ancestor, RateAsk, RunTotals};

/// A call that wants to begin.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    /// Names the call among all calls of all nodes: its request id.
    pub call: &'a str,
    /// Who calls.
    pub agent: &'a AgentName,
    /// The run that is asked for.
    pub run: AskedRun<'a>,
    /// What the call goes on from.
    pub follows: Follows,
    /// What ties later requests to the run as soon as the call begins. Only `clues` and `offers` are looked at.
    pub remember: &'a Remember,
    /// The run of which this node has what detection keeps, and in which version: it is told only where it is another.
    pub watch: Option<(&'a RunId, u64)>,
    /// The version of what detection keeps of the agent. None if it is not wanted at all, 0 if this node has none.
    pub agent_watch: Option<u64>,
    /// The model, of which is told what calls of the agent to it use.
    pub model: Option<&'a str>,
    /// The rates that it takes from: from all in force or from none.
    pub rates: &'a [RateAsk<'a>],
    /// The money to set aside. Not looked at when a rate has no room.
    pub money: Option<MoneyAsk<'a>>,
    /// The counter of identical requests. Not counted when a rate has no room.
    pub repeat: Option<RepeatAsk<'a>>,
}

/// What a call goes on from. A client goes on as soon as it has an answer, and Redis may hear of that before it hears of the answer's
/// end: it came from another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nothing: it may begin whatever is under way.
    Nothing,
    /// An answer, which leaves this clue when it is over.
    Answer(u64),
    /// Perhaps the last call of its run: the request does not say.
    Unsaid,
}

/// The run that is asked for.
#[derive(Clone, Copy, Debug)]
pub enum AskedRun<'a> {
    /// A request outside any run: it only counts for its agent.
    Outside,
    /// The request names it.
    Named(NamedRun<'a>),
    /// The first clue that leads to a run; where none does, the run that the node would take by itself: the one it
    /// knows by its own clues, the one of the trace, or a new one. A run that is found has the parent of that one.
    Evidence {
        /// In their order.
        clues: &'a [Clue],
        /// Where Redis knows none of them.
        otherwise: NamedRun<'a>,
    },
}

/// A run by its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedRun<'a> {
    /// Its id.
    pub id: &'a RunId,
    /// The run that it is a part of. The first one told stays.
    pub parent: Option<&'a RunId>,
    /// How it was recognised.
    pub origin: RunOrigin,
    /// What the node knows of it, by its own state or by the history; used only where Redis knows nothing.
    pub seed: Option<RunTotals>,
    /// The same of the runs above, nearest first.
    pub lineage: &'a [Ancestor],
}

/// Money that is to be set aside.
#[derive(Clone, Copy, Debug)]
pub struct MoneyAsk<'a> {
    /// On accounts whose limits are in force.
    pub enforced: AskedPurse<'a>,
    /// On those whose limits are only watched; not looked at when those in force have no room.
    pub shadow: AskedPurse<'a>,
    /// How much.
    pub amount: NanoUsd,
    /// The part of it that is no guess.
    pub least: NanoUsd,
    /// Runs whose account does not begin with what they have cost, because they were resumed or corrected: by how much
    /// it begins higher or lower. Needed only where the account is not open.
    pub run_corrections: &'a [(RunId, NanoUsd)],
}

/// The accounts of a call, in the order in which they are blamed: runs first.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskedPurse<'a> {
    /// The limit of runs: applied to the run of the call and to every run above it, whatever run it names.
    pub of_runs: Option<&'a Draw>,
    /// All others. The seed is used only where the account is not open.
    pub draws: &'a [Draw],
}

/// A request that is counted among identical ones.
#[derive(Clone, Copy, Debug)]
pub struct RepeatAsk<'a> {
    /// What makes it the same.
    pub fingerprint: u64,
    /// How it is counted.
    pub rule: &'a RepeatRule,
}
