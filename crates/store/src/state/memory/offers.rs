//! Clues by which one request each may claim a run.
//!
//! Several runs may offer the same clue: identical conversations that go on side by side. Each claim takes one of
//! them, so that no two requests end up in one run because their conversations look alike.

use std::sync::Arc;

use sprag_core::limits::CLUE_OFFERS;

use super::Recent;
use crate::run_key::RunKey;

/// The offers of a process.
pub(super) struct Offers(Recent<Vec<Arc<RunKey>>>);

impl Offers {
    /// Room for offers of this many clues.
    pub(super) fn new(clues: usize) -> Offers {
        Offers(Recent::new(clues))
    }

    pub(super) fn offer(&self, clue: u64, name: Arc<RunKey>) {
        self.0.update(clue, |known| {
            let mut runs = known.unwrap_or_default();
            runs.retain(|run| *run != name);
            if runs.len() >= CLUE_OFFERS {
                runs.remove(0);
            }
            // One is usual.
            runs.reserve_exact(1);
            runs.push(name);
            runs
        });
    }

    /// Takes the newest offer: older ones have more likely been given up.
    pub(super) fn claim(&self, clue: u64) -> Option<RunKey> {
        // Most clues were never offered, and looking leaves nothing behind.
        self.0.get(clue)?;
        let mut claimed = None;
        self.0.update(clue, |known| {
            let mut runs = known.unwrap_or_default();
            claimed = runs.pop();
            runs
        });
        claimed.map(|name| RunKey::clone(&name))
    }

    pub(super) fn withdraw(&self, clue: u64, key: &RunKey) {
        if self.0.get(clue).is_none_or(|runs| !runs.iter().any(|run| **run == *key)) {
            return;
        }
        self.0.update(clue, |known| {
            let mut runs = known.unwrap_or_default();
            runs.retain(|run| **run != *key);
            runs
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprag_core::id::{AgentName, RunId};

    fn key(id: usize) -> RunKey {
        RunKey { agent: AgentName::default(), id: RunId::parse(&id.to_string()).unwrap() }
    }

    #[test]
    fn offers_of_one_clue_are_bounded() {
        let offers = Offers::new(320);
        for id in 0..=CLUE_OFFERS {
            offers.offer(1, Arc::new(key(id)));
        }
        let claimed: Vec<RunKey> = std::iter::from_fn(|| offers.claim(1)).collect();
        assert_eq!(claimed, (1..=CLUE_OFFERS).rev().map(key).collect::<Vec<_>>(), "the oldest one left");
        for id in 0..CLUE_OFFERS {
            offers.offer(1, Arc::new(key(id)));
        }
        assert_eq!(std::iter::from_fn(|| offers.claim(1)).count(), CLUE_OFFERS, "and at the bound none does");
    }

    #[test]
    fn looking_leaves_nothing_behind() {
        let offers = Offers::new(320);
        assert_eq!(offers.claim(1), None);
        offers.withdraw(1, &key(1));
        assert_eq!(offers.len(), 0);
    }
}
