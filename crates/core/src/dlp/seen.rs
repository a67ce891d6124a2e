//! What was found in items that have been looked at before.
//!
//! Agents send their whole history at every step. An item is known by a keyed hash of its bytes; what is remembered of it
//! is places, never values, so the policy is applied afresh each time. One memory belongs to one [`Scanner`]: another
//! one finds other things.
//!
//! [`Scanner`]: super::Scanner

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128_with_secret;

use super::json::Found;
use crate::limits::{SEEN_FINDINGS, SEEN_ITEMS};

/// A bounded memory of items, shared by all runs.
#[derive(Debug)]
pub struct Seen {
    secret: [u8; SECRET],
    shards: [Mutex<Shard>; SHARDS],
}

const SHARDS: usize = 16;
/// What the hash takes for longer texts.
const SECRET: usize = 192;
/// What a shard keeps of each of its two generations.
const ITEMS: usize = SEEN_ITEMS / SHARDS / 2;
const FINDINGS: usize = SEEN_FINDINGS / SHARDS / 2;

/// None: nothing was found.
type Known = Option<Arc<[Found]>>;
type Generation = HashMap<u128, Known, BuildHasherDefault<Taken>>;

/// When the young generation is full, it becomes the old one, and the old one is forgotten. What is asked for becomes
/// young again.
#[derive(Debug, Default)]
struct Shard {
    young: Generation,
    old: Generation,
    /// Findings of the young.
    findings: usize,
}

impl Seen {
    /// `key` is random and secret: nobody shall be able to make two items with one hash.
    #[must_use]
    pub fn new(key: u64) -> Seen {
        let mut state = key;
        let mut secret = [0; SECRET];
        for bytes in secret.chunks_mut(8) {
            bytes.copy_from_slice(&next_random(&mut state).to_le_bytes()[..bytes.len()]);
        }
        Seen { secret, shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Items that are remembered.
    #[must_use]
    pub fn items(&self) -> usize {
        let count = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.young.len() + shard.old.len()
        };
        self.shards.iter().map(count).sum()
    }

    /// What is known of an item; looks where nothing is. `salt` tells apart what else the findings depend on.
    pub(super) fn or_look(&self, bytes: &[u8], salt: u64, look: impl FnOnce() -> Vec<Found>) -> Known {
        let hash = xxh3_128_with_secret(bytes, &self.secret) ^ (u128::from(salt) << 64);
        let shard = &self.shards[hash as usize % SHARDS];
        let known = shard.lock().unwrap_or_else(PoisonError::into_inner).get(hash);
        if let Some(known) = known {
            return known;
        }
        let found = look();
        let known: Known = (!found.is_empty()).then(|| found.into());
        // What would fill a generation alone is looked at each time.
        if known.as_ref().is_none_or(|found| found.len() < FINDINGS) {
            shard.lock().unwrap_or_else(PoisonError::into_inner).put(hash, known.clone());
        }
        known
    }
}

impl Shard {
    fn get(&mut self, hash: u128) -> Option<Known> {
        if let Some(known) = self.young.get(&hash) {
            return Some(known.clone());
        }
        let known = self.old.remove(&hash)?;
        self.put(hash, known.clone());
        Some(known)
    }

    fn put(&mut self, hash: u128, known: Known) {
        let findings = known.as_ref().map_or(0, |found| found.len());
        if self.young.len() >= ITEMS || self.findings + findings > FINDINGS {
            self.old = std::mem::take(&mut self.young);
            self.findings = 0;
        }
        if self.young.insert(hash, known).is_none() {
            self.findings += findings;
        }
    }
}

/// SplitMix64.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |all, byte| all.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        // The lowest bits have chosen the shard.
        self.0 = (hash >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::json::some_found;

    fn looks(seen: &Seen, item: usize, found: usize) -> bool {
        let mut looked = false;
        let known = seen.or_look(&item.to_le_bytes(), 0, || {
            looked = true;
            vec![some_found(); found]
        });
        assert_eq!(known.map_or(0, |known| known.len()), found);
        looked
    }

    #[test]
    fn an_item_is_looked_at_once() {
        let seen = Seen::new(7);
        assert!(looks(&seen, 1, 0) && looks(&seen, 2, 3));
        assert!(!looks(&seen, 1, 0) && !looks(&seen, 2, 3));
        assert_eq!(seen.items(), 2);
        let mut is_other = false;
        seen.or_look(&1_usize.to_le_bytes(), 1, || {
            is_other = true;
            Vec::new()
        });
        assert!(is_other, "the same bytes elsewhere are another item");
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let seen = Seen::new(7);
        for item in 0..4 * SEEN_ITEMS {
            assert!(item == 0 || !looks(&seen, 0, 0), "{item}");
            looks(&seen, item, 0);
            assert!(item % 1000 != 0 || seen.items() <= SEEN_ITEMS);
        }
        assert!(seen.items() <= SEEN_ITEMS && seen.items() > SEEN_ITEMS / 4);
        assert!(looks(&seen, 1, 0), "what nobody asks for is forgotten");
    }

    #[test]
    fn findings_are_bounded_as_well() {
        let seen = Seen::new(7);
        assert!(looks(&seen, 0, FINDINGS - 1) && !looks(&seen, 0, FINDINGS - 1));
        assert!(looks(&seen, 1, FINDINGS) && looks(&seen, 1, FINDINGS), "one past the bound is not kept");
        let mut shard = Shard::default();
        for hash in 0..100 {
            shard.put(hash, Some(vec![some_found(); FINDINGS / 2].into()));
            assert!(shard.young.len() <= 2 && shard.old.len() <= 2);
        }
    }
}
