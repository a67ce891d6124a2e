//! The catalog at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Kills, Span};
use sprag_core::time::Timestamp;

use super::keys::Keys;
use super::tokens::Tokens;
use crate::run_key::RunKey;

/// Everything that requests ask the catalog. A value: it never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Counts the changes since the start.
    pub generation: u64,
    /// What is stopped.
    pub kills: Kills,
    pub(super) agents: Arc<HashMap<AgentName, Arc<AgentStanding>>>,
    pub(super) marks: Arc<HashMap<RunKey, Mark>>,
    /// By account, then by the moment that they are for.
    pub(super) adjustments: Arc<HashMap<AccountId, BTreeMap<Timestamp, NanoUsd>>>,
    pub(super) keys: Arc<Keys>,
    pub(super) tokens: Arc<Tokens>,
}

/// Where a run stood when it was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Steps of its whole tree up to then, refused ones not counted.
    pub steps: u32,
    /// What its whole tree had cost.
    pub cost: NanoUsd,
    /// When.
    pub at: Timestamp,
}

impl Snapshot {
    /// Where an agent stands; nothing for one that nothing was ever set for.
    #[must_use]
    pub fn agent(&self, name: &AgentName) -> Option<&Arc<AgentStanding>> {
        self.agents.get(name)
    }

    /// The agents of which something is remembered, in no order.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &Arc<AgentStanding>)> {
        self.agents.iter()
    }

    pub(super) fn set_adjustment(&mut self, account: &AccountId, start: Timestamp, amount: NanoUsd) {
        Arc::make_mut(&mut self.adjustments).entry(account.clone()).or_default().insert(start, amount);
    }

    pub(super) fn remove_adjustment(&mut self, account: &AccountId, start: Timestamp) {
        let adjustments = Arc::make_mut(&mut self.adjustments);
        let Some(of) = adjustments.get_mut(account) else { return };
        of.remove(&start);
        if of.is_empty() {
            adjustments.remove(account);
        }
    }

    /// Where a run was last resumed.
    #[must_use]
    pub fn mark(&self, run: &RunKey) -> Option<Mark> {
        if self.marks.is_empty() { None } else { self.marks.get(run).copied() }
    }

    /// What was added by hand to what an account has spent in a time. Negative where it was taken away.
    #[must_use]
    pub fn adjustment(&self, account: &AccountId, span: Span) -> NanoUsd {
        self.adjustments
            .get(account)
            .map_or(NanoUsd::ZERO, |of| of.range(span.start..span.end).map(|(_, of)| *of).sum())
    }

    /// What was added at one moment.
    pub(super) fn adjustment_at(&self, account: &AccountId, at: Timestamp) -> NanoUsd {
        self.adjustments.get(account).and_then(|of| of.get(&at)).copied().unwrap_or_default()
    }
}
