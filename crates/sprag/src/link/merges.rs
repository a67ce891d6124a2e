//! Which call writes what nodes saw of an agent at the same time: one on each node, and it writes for all others here.
//!
//! Calls of a busy agent end all the time, on every node. If each wrote what it merged, they would write over each other, and merge and write
//! again. What is merged, and how it is written, is not decided here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sprag_core::id::AgentName;

/// Agents of which something is being written, and whether there is more by now. No more than calls that are settled.
#[derive(Debug, Default)]
pub(crate) struct Merges(Mutex<HashMap<AgentName, bool>>);

/// The right to write. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Merging<'a> {
    merges: &'a Merges,
    agent: &'a AgentName,
    is_over: bool,
}

impl Merges {
    /// For one call at a time. The others are told no, and the one that writes hears that there is more.
    pub(crate) fn claim<'a>(&'a self, agent: &'a AgentName) -> Option<Merging<'a>> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(has_more) = writing.get_mut(agent) {
            *has_more = true;
            return None;
        }
        writing.insert(agent.clone(), false);
        Some(Merging { merges: self, agent, is_over: false })
    }
}

impl Merging<'_> {
    /// Whether others have left more meanwhile. If not, the right to write is over.
    pub(crate) fn has_more(&mut self) -> bool {
        let mut writing = self.merges.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_more = writing.get_mut(self.agent).is_some_and(std::mem::take);
        if !has_more {
            writing.remove(self.agent);
            self.is_over = true;
        }
        has_more
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.merges.0.lock().unwrap_or_else(PoisonError::into_inner).remove(self.agent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_for_all() {
        let (merges, agent, other) = (Merges::default(), AgentName::default(), AgentName::parse("other").unwrap());
        let mut first = merges.claim(&agent).unwrap();
        assert!(merges.claim(&other).is_some(), "another agent is another matter");
        assert!(merges.claim(&agent).is_none());
        assert!(first.has_more());
        assert!(!first.has_more());
        let mut next = merges.claim(&agent).unwrap();
        drop(first);
        assert!(merges.claim(&agent).is_none(), "the first has nothing to give back any more");
        assert!(next.has_more());
    }

    #[test]
    fn whoever_gives_up_leaves_it_to_the_next() {
        let (merges, agent) = (Merges::default(), AgentName::default());
        drop(merges.claim(&agent).unwrap());
        assert!(merges.claim(&agent).is_some());
        assert!(merges.0.lock().unwrap().is_empty());
    }
}
