//! What a node did by itself while Redis was away: sums, so that it stays small however long that was.

use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Span};

use crate::state::RunTotals;

/// What was done by a node alone.
#[derive(Clone, Debug, Default)]
pub struct Missed {
    /// Names it, so that it counts once however often it is sent. Another one for each absence.
    pub id: String,
    /// By run.
    pub runs: Vec<MissedRun>,
    /// By account.
    pub accounts: Vec<MissedAccount>,
}

/// What was done in one run. Calls that began while Redis was there are not in it: those end by themselves.
#[derive(Clone, Debug)]
pub struct MissedRun {
    /// Whose run.
    pub agent: AgentName,
    /// Its id.
    pub id: RunId,
    /// The run that it is a part of.
    pub parent: Option<RunId>,
    /// How it was recognised.
    pub origin: RunOrigin,
    /// What was added meanwhile; of `tree_*` only the run's own part, which is added to the runs above too.
    pub added: RunTotals,
    /// What the node knows of it in all; used only where Redis knows nothing of it.
    pub known: RunTotals,
}

/// What was spent on one account.
#[derive(Clone, Debug)]
pub struct MissedAccount {
    /// Which.
    pub id: AccountId,
    /// The time that it covers.
    pub span: Span,
    /// How much.
    pub spent: NanoUsd,
    /// What the node knows was spent beside that; used only where nobody has opened the account in Redis.
    pub before: NanoUsd,
}
