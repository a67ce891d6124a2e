//! The runs in memory, by name, in shards of which each has room for so many.
//!
//! Beside each run stands what is asked of all of them at once: the hash of its name, for a table that grows, and since when it is
//! idle, for a shard that is full. Both would otherwise read memory of every run, most of which was not used for long.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;
use sprag_core::time::Timestamp;

use super::run::Run;
use crate::run_key::RunKey;
use crate::shards::Shards;

/// The runs of a process.
pub(super) struct Runs {
    shards: Shards<Shard>,
    hashes: RandomState,
    /// Room of one shard.
    room: usize,
}

#[derive(Default)]
struct Shard {
    runs: HashMap<Name, Kept, BuildHasherDefault<Known>>,
}

/// A run's name, which clues and offers share, and its hash.
struct Name {
    hash: u64,
    key: Arc<RunKey>,
}

#[derive(Default)]
struct Kept {
    run: Box<Run>,
    /// Since when; [`BUSY`] while calls of the run, or of one below it, are in flight. An `Option` would take twice the room.
    idle_since: Timestamp,
}

const BUSY: Timestamp = Timestamp(i64::MAX);

/// A name that is looked for.
struct Sought<'a> {
    hash: u64,
    key: &'a RunKey,
}

/// What is the same of a name that is kept and of one that is looked for.
trait Named {
    fn hash(&self) -> u64;
    fn key(&self) -> &RunKey;
}

/// Passes on a hash that is known.
#[derive(Default)]
struct Known(u64);

impl Runs {
    /// Room for this many runs in each shard.
    pub(super) fn new(room: usize) -> Runs {
        Runs { shards: Shards::default(), hashes: RandomState::default(), room }
    }

    /// Looks at a run.
    pub(super) fn look<R>(&self, key: &RunKey, work: impl FnOnce(&Run) -> R) -> Option<R> {
        self.with(key, |shard, sought| shard.get(sought).map(|kept| work(&kept.run)))
    }

    /// Works on what a run keeps beside its calls.
    pub(super) fn amend<R>(&self, key: &RunKey, work: impl FnOnce(&mut Run) -> R) -> Option<R> {
        self.with(key, |shard, sought| shard.get_mut(sought).map(|kept| work(&mut kept.run)))
    }

    /// Works on a run, its calls and times too.
    pub(super) fn change<R>(&self, key: &RunKey, work: impl FnOnce(&mut Run) -> R) -> Option<R> {
        self.with(key, |shard, sought| shard.get_mut(sought).map(|kept| kept.change(work)))
    }

    /// The same, making the run first where it is unknown, under the name that `name` gives. `None` if there is no room for it.
    pub(super) fn change_or_make<R>(
        &self,
        key: &RunKey,
        name: impl FnOnce() -> Arc<RunKey>,
        work: impl FnOnce(&mut Run) -> R,
    ) -> Option<R> {
        let mut work = Some(work);
        let known = self.with(key, |shard, sought| {
            let kept = shard.get_mut(sought)?;
            work.take().map(|work| kept.change(work))
        });
        let Some(work) = work else { return known };
        // Outside of the lock: it may take another one.
        let name = name();
        self.with(key, |shard, sought| {
            if shard.runs.len() >= self.room && shard.get(sought).is_none() && !shard.evict_idlest() {
                return None;
            }
            Some(shard.runs.entry(Name { hash: sought.hash, key: name }).or_default().change(work))
        })
    }

    /// The name of a run as it is kept.
    pub(super) fn name(&self, key: &RunKey) -> Option<Arc<RunKey>> {
        self.with(key, |shard, sought| shard.runs.get_key_value(sought as &dyn Named).map(|(name, _)| name.key.clone()))
    }

    /// Forgets runs that have been idle for this long, and says how many.
    pub(super) fn sweep(&self, now: Timestamp, idle_ms: u64) -> usize {
        self.shards.fold(0, |swept, shard| {
            let runs = &mut shard.runs;
            let before = runs.len();
            runs.retain(|_, kept| !kept.is_idle() || now.since_ms(kept.idle_since) < idle_ms);
            if runs.len() * 4 < runs.capacity() {
                runs.shrink_to_fit();
            }
            swept + before - runs.len()
        })
    }

    pub(super) fn len(&self) -> usize {
        self.shards.fold(0, |sum, shard| sum + shard.runs.len())
    }

    fn with<R>(&self, key: &RunKey, work: impl FnOnce(&mut Shard, &Sought<'_>) -> R) -> R {
        let hash = self.hashes.hash_one(key);
        self.shards.with(hash, |shard| work(shard, &Sought { hash, key }))
    }
}

impl Shard {
    fn get(&self, sought: &Sought<'_>) -> Option<&Kept> {
        self.runs.get(sought as &dyn Named)
    }

    fn get_mut(&mut self, sought: &Sought<'_>) -> Option<&mut Kept> {
        self.runs.get_mut(sought as &dyn Named)
    }

    /// Forgets the idlest eighth of a full shard, so that the search for them is paid once for many runs. False if every
    /// run has calls in flight.
    fn evict_idlest(&mut self) -> bool {
        let mut idle: Vec<Timestamp> =
            self.runs.values().filter(|kept| kept.is_idle()).map(|kept| kept.idle_since).collect();
        if idle.is_empty() {
            return false;
        }
        let last = (self.runs.len() / 8).min(idle.len() - 1);
        let (_, newest_to_go, _) = idle.select_nth_unstable(last);
        let newest_to_go = *newest_to_go;
        // Many may share that moment: never more than were meant to go.
        let mut left = last + 1;
        self.runs.retain(|_, kept| {
            let goes = left > 0 && kept.is_idle() && kept.idle_since <= newest_to_go;
            left -= usize::from(goes);
            !goes
        });
        true
    }
}

impl Kept {
    fn change<R>(&mut self, work: impl FnOnce(&mut Run) -> R) -> R {
        let done = work(&mut self.run);
        self.idle_since = if self.run.is_idle() { self.run.totals.last_at } else { BUSY };
        done
    }

    fn is_idle(&self) -> bool {
        self.idle_since < BUSY
    }
}

impl Named for Name {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn key(&self) -> &RunKey {
        &self.key
    }
}

impl Named for Sought<'_> {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn key(&self) -> &RunKey {
        self.key
    }
}

impl Hash for dyn Named + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Named::hash(self));
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        Named::hash(self) == Named::hash(other) && self.key() == other.key()
    }
}

impl Eq for dyn Named + '_ {}

impl<'a> Borrow<dyn Named + 'a> for Name {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.key == other.key
    }
}

impl Eq for Name {}

impl Hasher for Known {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// Names write nothing but their hash.
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::RunOrigin;
    use sprag_core::id::{AgentName, RunId};

    use super::*;

    fn key(id: &str) -> RunKey {
        RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }
    }

    fn put(shard: &mut Shard, id: &str, work: impl FnOnce(&mut Run)) {
        let name = Name { hash: RandomState::default().hash_one(id), key: Arc::new(key(id)) };
        shard.runs.entry(name).or_default().change(work);
    }

    fn active_at(last_at: i64) -> impl FnOnce(&mut Run) {
        move |run| run.totals.last_at = Timestamp(last_at)
    }

    fn ids(shard: &Shard) -> Vec<String> {
        let mut ids: Vec<_> = shard.runs.keys().map(|name| name.key.id.as_str().to_owned()).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn the_idlest_go_first_and_no_more_than_an_eighth() {
        let mut shard = Shard::default();
        (10..26).for_each(|n| put(&mut shard, &n.to_string(), active_at(n)));
        assert!(shard.evict_idlest());
        assert_eq!(ids(&shard), (13..26).map(|n| n.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn runs_of_the_same_moment_do_not_all_go() {
        let mut shard = Shard::default();
        (0..16).for_each(|n: i64| put(&mut shard, &n.to_string(), active_at(5)));
        assert!(shard.evict_idlest());
        assert_eq!(shard.runs.len(), 13);
    }

    #[test]
    fn a_shard_of_busy_runs_has_no_room() {
        let mut shard = Shard::default();
        put(&mut shard, "busy", |run| run.child_opened(Timestamp(1), RunOrigin::Declared));
        assert!(!shard.evict_idlest());
        assert_eq!(shard.runs.len(), 1);
        put(&mut shard, "idle", active_at(9));
        assert!(shard.evict_idlest());
        assert_eq!(ids(&shard), ["busy"]);
    }

    #[test]
    fn names_with_the_same_hash_are_two_runs() {
        let mut shard = Shard::default();
        for (id, at) in [("one", 1), ("other", 2)] {
            shard.runs.entry(Name { hash: 7, key: Arc::new(key(id)) }).or_default().change(active_at(at));
        }
        let last_at = |key: &RunKey| shard.get(&Sought { hash: 7, key }).map(|kept| kept.run.totals.last_at.0);
        assert_eq!((last_at(&key("one")), last_at(&key("other")), last_at(&key("third"))), (Some(1), Some(2), None));
    }

    #[test]
    fn a_run_is_made_once_and_found_by_every_copy_of_its_name() {
        let runs = Runs::new(4);
        for (n, made) in [true, false].into_iter().enumerate() {
            let mut is_made = false;
            let name = || {
                is_made = true;
                Arc::new(key("a"))
            };
            let steps = runs.change_or_make(&key("a"), name, |run| {
                run.totals.steps += 1;
                run.totals.steps as usize
            });
            assert_eq!((steps, is_made), (Some(n + 1), made));
        }
        assert_eq!((runs.len(), runs.name(&key("a")).as_deref()), (1, Some(&key("a"))));
        assert_eq!(runs.look(&key("b"), |run| run.totals.steps), None);
    }
}
