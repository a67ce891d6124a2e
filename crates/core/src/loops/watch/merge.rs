//! Two watches of one run or agent, put together: two nodes saw different steps of it at the same time.
//!
//! A merge may forget evidence and never invents any: what both may have counted is not added, what was seen twice is
//! known for one thing, and what one of them has forgotten on purpose stays forgotten. What one of them could not tell to
//! follow upon what it knew, because another node had what lies between, does not after a merge either. Merged with
//! itself, or with what it grew from, a watch stays as it is.

use super::{AgentWatch, PromptWatch, RunWatch};
use crate::loops::attempts::Steps;

impl RunWatch {
    /// What two nodes know of a run. `mine` is the watch of the node that asks: where rules differ, its rules count.
    #[must_use]
    pub fn merge(mine: &RunWatch, theirs: RunWatch) -> RunWatch {
        let shared = match (mine.shared, theirs.shared) {
            (Some(own), Some(other)) => Some(own.merge(&other)),
            (own, other) => own.or(other),
        };
        if mine.forgotten != theirs.forgotten {
            let newer = if mine.forgotten > theirs.forgotten { mine.clone() } else { theirs };
            return RunWatch { shared, ..newer };
        }
        let (attempts, steps) = mine.attempts.merge(&theirs.attempts);
        RunWatch {
            attempts,
            progress: mine.progress.merge(&theirs.progress, shared.as_ref()),
            prompts: mine.prompts.merge(&theirs.prompts, &steps),
            is_retry: mine.is_retry,
            strikes: mine.strikes.merge(&theirs.strikes),
            forgotten: mine.forgotten,
            shared,
        }
    }
}

impl PromptWatch {
    fn merge(&self, theirs: &PromptWatch, steps: &Steps) -> PromptWatch {
        let since = |prompts: &PromptWatch| [prompts.exact_since, prompts.oscillation_since];
        let (trail, [exact_since, oscillation_since]) =
            self.trail.merge(since(self), &theirs.trail, since(theirs), steps);
        PromptWatch {
            trail,
            exact_since,
            oscillation_since,
            similar: self.similar.merge(&theirs.similar, steps),
            wants_answers: self.wants_answers || theirs.wants_answers,
            wants_similar_answers: self.wants_similar_answers || theirs.wants_similar_answers,
        }
    }
}

impl AgentWatch {
    /// What two nodes know of an agent. `mine` is the watch of the node that asks.
    #[must_use]
    pub fn merge(mine: &AgentWatch, theirs: AgentWatch) -> AgentWatch {
        let velocity = mine.velocity.merge(&theirs.velocity);
        if mine.forgotten != theirs.forgotten {
            let newer = if mine.forgotten > theirs.forgotten { mine.clone() } else { theirs };
            return AgentWatch { velocity, ..newer };
        }
        AgentWatch { score: mine.score.merge(&theirs.score), tally: mine.tally, velocity, forgotten: mine.forgotten }
    }
}

#[cfg(test)]
mod tests;
