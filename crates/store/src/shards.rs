//! A value behind several locks, each reached through a closure so that none can be held across an await.

use std::sync::{Mutex, PoisonError};

/// Locks per map: enough that threads on a large machine seldom meet.
pub(crate) const SHARDS: usize = 16;

#[derive(Debug)]
pub(crate) struct Shards<T> {
    shards: [Mutex<T>; SHARDS],
}

impl<T: Default> Default for Shards<T> {
    fn default() -> Shards<T> {
        Shards { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl<T> Shards<T> {
    /// Works on the shard that `hash` belongs to.
    pub(crate) fn with<R>(&self, hash: u64, work: impl FnOnce(&mut T) -> R) -> R {
        // The multiplication spreads hashes that differ in their low bits only.
        let index = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        with_lock(&self.shards[index % SHARDS], work)
    }

    /// Works on every shard in turn; others may change in between.
    pub(crate) fn fold<R>(&self, start: R, mut work: impl FnMut(R, &mut T) -> R) -> R {
        self.shards.iter().fold(start, |sum, shard| with_lock(shard, |value| work(sum, value)))
    }
}

/// A panic inside a closure leaves plain numbers behind, so the lock stays usable.
pub(crate) fn with_lock<T, R>(lock: &Mutex<T>, work: impl FnOnce(&mut T) -> R) -> R {
    work(&mut lock.lock().unwrap_or_else(PoisonError::into_inner))
}
