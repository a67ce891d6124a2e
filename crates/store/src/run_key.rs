//! What names a run everywhere: ids belong to their agent.

use sprag_core::id::{AgentName, RunId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A run of an agent. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// Whose run it is.
    pub agent: AgentName,
    /// Its id among that agent's runs.
    pub id: RunId,
}

impl RunKey {
    /// A number that tells runs apart well enough where a mistake is harmless; not unique.
    #[must_use]
    pub fn number(&self) -> u64 {
        xxh3_64_with_seed(self.id.as_str().as_bytes(), agent_hash(&self.agent))
    }
}

/// A number of an agent with a model, or of a model whoever asks it; not unique.
pub(crate) fn model_hash(agent: Option<&AgentName>, model: &str) -> u64 {
    xxh3_64_with_seed(model.as_bytes(), agent.map_or(0, agent_hash))
}

/// A hash that picks an agent's shard; not unique.
pub(crate) fn agent_hash(agent: &AgentName) -> u64 {
    xxh3_64(agent.as_str().as_bytes())
}
