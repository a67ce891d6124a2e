//! The catalog at one moment.

use std::collections::HashMap;
use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::policy::{AgentStanding, Kills};
use sprag_core::time::Timestamp;

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
}

/// Where a run stood when it was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Steps of its whole tree up to then, refused ones not counted.
    pub steps: u32,
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

    /// Where a run was last resumed.
    #[must_use]
    pub fn mark(&self, run: &RunKey) -> Option<Mark> {
        if self.marks.is_empty() { None } else { self.marks.get(run).copied() }
    }
}
