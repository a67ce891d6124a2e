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

impl Mark {
    /// The further of two places of the same resume.
    pub(super) fn furthest(self, other: Mark) -> Mark {
        Mark { steps: self.steps.max(other.steps), cost: self.cost.max(other.cost), at: self.at }
    }
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

    /// Adds to what was added at a moment.
    pub(super) fn add_adjustment(&mut self, account: &AccountId, start: Timestamp, amount: NanoUsd) {
        let of = Arc::make_mut(&mut self.adjustments).entry(account.clone()).or_default();
        let total = of.entry(start).or_default();
        *total = NanoUsd(total.0.saturating_add(amount.0));
    }

    /// Forgets what was added at these moments.
    pub(super) fn remove_adjustments(&mut self, gone: Vec<(String, Timestamp)>) {
        let gone = gone.into_iter().filter_map(|(account, start)| Some((account.parse::<AccountId>().ok()?, start)));
        for (account, start) in gone {
            let adjustments = Arc::make_mut(&mut self.adjustments);
            let Some(of) = adjustments.get_mut(&account) else { continue };
            of.remove(&start);
            if of.is_empty() {
                adjustments.remove(&account);
            }
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
