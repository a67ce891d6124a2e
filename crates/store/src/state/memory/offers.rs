//! Clues by which one request each may claim a run.
//!
//! Several runs may offer the same clue: identical conversations that go on side by side. Each claim takes one of
//! them, so that no two requests end up in one run because their conversations look alike.

use std::sync::Arc;

use sprag_core::limits::CLUE_OFFERS;

use super::Recent;
use crate::run_key::RunKey;

/// The offers of a process.
pub(super) struct Offers(Recent<Offered>);

/// The runs that offer a clue. One is usual, and takes no memory of its own.
#[derive(Clone, Default)]
struct Offered {
    newest: Option<Arc<RunKey>>,
    /// The newest last.
    older: Box<[Arc<RunKey>]>,
}

impl Offers {
    /// Room for offers of this many clues.
    pub(super) fn new(clues: usize) -> Offers {
        Offers(Recent::new(clues))
    }

    pub(super) fn offer(&self, clue: u64, name: Arc<RunKey>) {
        self.0.update(clue, |known| {
            let mut offered = known.unwrap_or_default();
            offered.withdraw(&name);
            offered.offer(name);
            offered
        });
    }

    /// Takes the newest offer: older ones have more likely been given up.
    pub(super) fn claim(&self, clue: u64) -> Option<RunKey> {
        // Most clues were never offered, and looking leaves nothing behind.
        self.0.get(clue)?;
        let mut claimed = None;
        self.0.update(clue, |known| {
            let mut offered = known.unwrap_or_default();
            claimed = offered.claim();
            offered
        });
        claimed.map(|name| RunKey::clone(&name))
    }

    pub(super) fn withdraw(&self, clue: u64, key: &RunKey) {
        if self.0.get(clue).is_none_or(|offered| !offered.runs().any(|run| **run == *key)) {
            return;
        }
        self.0.update(clue, |known| {
            let mut offered = known.unwrap_or_default();
            offered.withdraw(key);
            offered
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Offered {
    fn runs(&self) -> impl Iterator<Item = &Arc<RunKey>> {
        self.older.iter().chain(&self.newest)
    }

    /// Puts a run last, in place of the oldest where there are too many.
    fn offer(&mut self, name: Arc<RunKey>) {
        if let Some(before) = self.newest.replace(name) {
            let surplus = (self.older.len() + 2).saturating_sub(CLUE_OFFERS);
            self.older = self.older.iter().cloned().chain([before]).skip(surplus).collect();
        }
    }

    fn claim(&mut self) -> Option<Arc<RunKey>> {
        let claimed = self.newest.take();
        if !self.older.is_empty() {
            let mut older = std::mem::take(&mut self.older).into_vec();
            self.newest = older.pop();
            self.older = older.into();
        }
        claimed
    }

    fn withdraw(&mut self, key: &RunKey) {
        if self.runs().any(|run| **run == *key) {
            let mut left: Vec<_> = self.runs().filter(|run| ***run != *key).cloned().collect();
            self.newest = left.pop();
            self.older = left.into();
        }
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
    fn a_run_stands_once_and_where_it_was_offered_last() {
        let offers = Offers::new(320);
        for id in [1, 2, 3, 1, 2] {
            offers.offer(1, Arc::new(key(id)));
        }
        offers.withdraw(1, &key(1));
        let claimed: Vec<RunKey> = std::iter::from_fn(|| offers.claim(1)).collect();
        assert_eq!(claimed, [key(2), key(3)]);
        offers.offer(1, Arc::new(key(4)));
        offers.withdraw(1, &key(4));
        assert_eq!(offers.claim(1), None);
    }

    #[test]
    fn looking_leaves_nothing_behind() {
        let offers = Offers::new(320);
        assert_eq!(offers.claim(1), None);
        offers.withdraw(1, &key(1));
        assert_eq!(offers.len(), 0);
    }
}
