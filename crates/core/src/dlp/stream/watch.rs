//! What one answer is looked at with, and where findings are put on record.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dlp::inspector::{Inspector, Place, Treatment};
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::policy::Direction;
use crate::dlp::sighting::Sightings;
use crate::limits::{SIGHTINGS, STREAM_NOTED};

/// The call is stopped: nothing goes out any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// Decides on findings of one answer.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) inspector: Inspector,
    pub(super) sightings: Sightings,
    /// Hashes of the values on record.
    noted: Vec<u64>,
}

/// The text that is being looked at.
pub(super) struct Spot<'s> {
    pub(super) watch: &'s mut Watch,
    /// Gives the JSON path; only asked for when something is found.
    pub(super) path: &'s dyn Fn() -> String,
    /// The text may repeat what came before, and is put on record only where it says something new.
    pub(super) is_repeat: bool,
}

impl Watch {
    #[cfg(test)]
    pub(super) fn noted(&self) -> usize {
        self.noted.len()
    }

    pub(super) fn new(inspector: Inspector) -> Watch {
        Watch { inspector, sightings: Sightings::default(), noted: Vec::new() }
    }
}

impl Spot<'_> {
    pub(super) fn treat(&mut self, entity: Entity, tier: Tier, value: &[u8], start: usize) -> Treatment {
        let watch = &mut *self.watch;
        let hash = xxh3_64_with_seed(value, u64::from(entity.0));
        let is_noted = watch.noted.contains(&hash);
        if !is_noted && watch.noted.len() < STREAM_NOTED {
            watch.noted.push(hash);
        }
        let is_known = self.is_repeat && is_noted;
        let mut aside = Sightings::default();
        let sightings = if is_known { &mut aside } else { &mut watch.sightings };
        let is_listed = !is_known && sightings.list.len() < SIGHTINGS;
        let path = if is_listed { (self.path)() } else { String::new() };
        let place = Place { path: &path, start };
        let value = String::from_utf8_lossy(value);
        watch.inspector.treat(Direction::Answer, entity, tier, &value, place, sightings)
    }
}
