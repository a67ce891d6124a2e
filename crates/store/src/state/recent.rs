//! A bounded map that forgets what was not used lately.
//!
//! Two generations per shard: entries go into the young one; when it is full it becomes the old one, and the old one
//! is dropped. Reading an old entry makes it young again. Cheaper than an exact order of use, and bounded as strictly.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::shards::{SHARDS, Shards};

/// A map from hashes to values with room for a fixed number of them.
#[derive(Debug)]
pub struct Recent<V> {
    shards: Shards<Generations<V>>,
    /// Room of one generation of one shard.
    room: usize,
}

/// The keys are hashes already: what is left to do is to keep whoever can choose them from choosing their place, and a seeded
/// multiplication does.
#[derive(Debug)]
struct Generations<V> {
    young: HashMap<u64, V, RandomState>,
    old: HashMap<u64, V, RandomState>,
}

impl<V> Default for Generations<V> {
    fn default() -> Generations<V> {
        Generations { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<V: Clone> Recent<V> {
    /// A map of at most `bound` entries, and at least half of what was used last; very small bounds are rounded up.
    #[must_use]
    pub fn new(bound: usize) -> Recent<V> {
        Recent { shards: Shards::default(), room: (bound / SHARDS / 2).max(1) }
    }

    /// Puts a value in, in place of an earlier one.
    pub fn insert(&self, key: u64, value: V) {
        self.shards.with(key, |shard| shard.insert(key, value, self.room));
    }

    /// The value of a key, which counts as used.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<V> {
        self.shards.with(key, |shard| shard.get(key, self.room))
    }

    /// Replaces what is known of a key by what `change` makes of it, as one step.
    pub fn update(&self, key: u64, change: impl FnOnce(Option<V>) -> V) {
        self.shards.with(key, |shard| shard.update(key, self.room, change));
    }

    /// The keys of values that fit, at most so many. Looks at all of them, and counts none as used.
    pub(super) fn keys_where(&self, most: usize, mut fits: impl FnMut(&V) -> bool) -> Vec<u64> {
        self.shards.fold(Vec::new(), |mut keys, shard| {
            let fitting = shard.young.iter().chain(&shard.old).filter(|(_, value)| fits(value)).map(|(key, _)| *key);
            keys.extend(fitting.take(most - keys.len()));
            keys
        })
    }

    /// Entries now in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.fold(0, |sum, shard| sum + shard.young.len() + shard.old.len())
    }

    /// Whether nothing is in the map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<V: Clone> Generations<V> {
    fn insert(&mut self, key: u64, value: V, room: usize) {
        self.old.remove(&key);
        if self.young.len() >= room && !self.young.contains_key(&key) {
            self.grow_old();
        }
        self.young.insert(key, value);
    }

    /// What a call left behind is mostly new, and otherwise young: neither is looked for twice.
    fn update(&mut self, key: u64, room: usize, change: impl FnOnce(Option<V>) -> V) {
        if let Some(known) = self.young.get_mut(&key) {
            *known = change(Some(known.clone()));
            return;
        }
        let known = self.old.remove(&key);
        if self.young.len() >= room {
            self.grow_old();
        }
        self.young.insert(key, change(known));
    }

    /// The young ones become the old ones. The room that those had is used again: a table that grows to that size anew would
    /// put every entry in its place twice.
    fn grow_old(&mut self) {
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
    }

    fn get(&mut self, key: u64, room: usize) -> Option<V> {
        if let Some(value) = self.young.get(&key) {
            return Some(value.clone());
        }
        let value = self.old.remove(&key)?;
        self.insert(key, value.clone(), room);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_no_more_than_its_bound() {
        let recent = Recent::new(320);
        for key in 0..320 {
            recent.insert(key, key);
        }
        assert!(recent.len() <= 320);
        for key in 320..10_000 {
            recent.insert(key, key);
            assert!(recent.len() <= 320, "after {key}");
        }
        assert_eq!(recent.get(9_999), Some(9_999));
        assert_eq!(recent.get(0), None);
    }

    #[test]
    fn what_is_used_stays() {
        let recent = Recent::new(320);
        recent.insert(7, "used");
        recent.insert(8, "unused");
        for key in 1_000..20_000 {
            recent.insert(key, "other");
            assert_eq!(recent.get(7), Some("used"));
        }
        assert_eq!(recent.get(8), None);
    }

    #[test]
    fn one_generation_of_a_shard_at_its_bound_and_past_it() {
        let mut shard = Generations::default();
        for key in [1, 2] {
            shard.insert(key, key, 2);
        }
        assert_eq!((shard.young.len(), shard.old.len()), (2, 0));
        shard.insert(2, 20, 2);
        assert_eq!((shard.young.len(), shard.old.len()), (2, 0), "a replaced entry takes no room");
        shard.insert(3, 3, 2);
        assert_eq!((shard.young.len(), shard.old.len()), (1, 2));
        assert_eq!(shard.get(1, 2), Some(1));
        assert_eq!((shard.young.len(), shard.old.len()), (2, 1), "an old entry moves");
        assert_eq!(shard.get(2, 2), Some(20));
        assert_eq!((shard.young.len(), shard.old.len()), (1, 2), "and may push the young ones out");
        shard.insert(1, 10, 2);
        assert_eq!((shard.young.len(), shard.old.len()), (2, 1), "never in both");
        assert_eq!(shard.get(1, 2), Some(10));
    }

    #[test]
    fn an_update_sees_what_was_there() {
        let recent = Recent::new(32);
        recent.update(1, |known| known.unwrap_or(0) + 1);
        recent.update(1, |known| known.unwrap_or(0) + 1);
        assert_eq!(recent.get(1), Some(2));
    }
}
