//! Meters by name, of names that turn up while the program runs: so many, and one for all others.
//!
//! Looking one up takes no lock and no memory. A new name makes a new map; there is room for a fixed number of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

/// What everything is called that finds no room, or has no name that may be told.
pub(super) const OTHER: &str = "other";

type Map<T> = BTreeMap<Box<str>, Arc<T>>;

/// Meters by name.
#[derive(Debug)]
pub(crate) struct Known<T> {
    map: ArcSwap<Map<T>>,
    growing: Mutex<()>,
    other: Arc<T>,
    most: usize,
    make: fn() -> T,
}

impl<T> Known<T> {
    pub(super) fn new(most: usize, make: fn() -> T) -> Known<T> {
        Known { map: ArcSwap::default(), growing: Mutex::new(()), other: Arc::new(make()), most, make }
    }

    /// Works on the meters of a name; on those of all others where it has none and there is no room.
    pub(super) fn with<R>(&self, name: &str, work: impl FnOnce(&T) -> R) -> R {
        let map = self.map.load();
        match map.get(name) {
            Some(known) => work(known),
            None if map.len() >= self.most || name == OTHER => work(&self.other),
            None => work(&self.learn(name)),
        }
    }

    /// Works on the meters of everything without a name.
    pub(super) fn with_other<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        work(&self.other)
    }

    /// Every name with its meters, in order; what has no name comes last.
    pub(super) fn all(&self) -> Vec<(String, Arc<T>)> {
        let named = self.map.load();
        let named = named.iter().map(|(name, meters)| (name.to_string(), meters.clone()));
        named.chain([(OTHER.to_owned(), self.other.clone())]).collect()
    }

    #[cold]
    fn learn(&self, name: &str) -> Arc<T> {
        let _alone = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let map = self.map.load();
        if let Some(known) = map.get(name) {
            return known.clone();
        }
        if map.len() >= self.most {
            return self.other.clone();
        }
        let made = Arc::new((self.make)());
        let mut grown = Map::clone(&map);
        grown.insert(name.into(), made.clone());
        self.map.store(Arc::new(grown));
        made
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn counts(known: &Known<AtomicU64>) -> Vec<(String, u64)> {
        known.all().into_iter().map(|(name, count)| (name, count.load(Ordering::Relaxed))).collect()
    }

    #[test]
    fn what_finds_no_room_is_counted_together() {
        let known = Known::new(2, AtomicU64::default);
        for name in ["b", "a", "c", "a", "d", OTHER] {
            known.with(name, |count| count.fetch_add(1, Ordering::Relaxed));
        }
        assert_eq!(counts(&known), [("a".to_owned(), 2), ("b".to_owned(), 1), (OTHER.to_owned(), 3)]);
    }

    #[test]
    fn names_that_turn_up_at_once_are_all_counted() {
        let known = Known::new(64, AtomicU64::default);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..64 {
                        known.with(&number.to_string(), |count| count.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
        });
        assert!(counts(&known).iter().all(|(name, count)| *count == if name == OTHER { 0 } else { 4 }));
    }
}
