//! What may have changed while somebody reads what an account has spent.
//!
//! An account that is not open is opened with what is on record. Reading that takes a while, and meanwhile it may be
//! corrected, charged late, reset, or opened and forgotten again. Each of that begins a new epoch, and what was read
//! under an older one is read again. Epochs are shared by accounts that fall into the same place: then something is read
//! once more for nothing.

use std::hash::{BuildHasher, RandomState};

use crate::limits::LEDGER_EPOCHS;
use crate::policy::budget::AccountId;

/// When something was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(u32);

#[derive(Debug)]
pub(super) struct Epochs {
    places: Box<[Place]>,
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    epoch: Epoch,
    /// Changes of which a part is on record and a part not yet.
    under_way: u32,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs { places: vec![Place::default(); LEDGER_EPOCHS].into(), hasher: RandomState::new() }
    }
}

impl Epochs {
    pub(super) fn now(&mut self, id: &AccountId) -> Epoch {
        self.place(id).epoch
    }

    /// Whether what was read then still holds.
    pub(super) fn holds(&mut self, id: &AccountId, read: Epoch) -> bool {
        let place = self.place(id);
        place.under_way == 0 && place.epoch == read
    }

    pub(super) fn next(&mut self, id: &AccountId) {
        let place = self.place(id);
        place.epoch = Epoch(place.epoch.0.wrapping_add(1));
    }

    pub(super) fn begin(&mut self, id: &AccountId) {
        self.place(id).under_way += 1;
    }

    pub(super) fn end(&mut self, id: &AccountId) {
        let place = self.place(id);
        place.under_way = place.under_way.saturating_sub(1);
        self.next(id);
    }

    /// An account in force and its shadow change together.
    fn place(&mut self, id: &AccountId) -> &mut Place {
        let at = self.hasher.hash_one((&id.holder, id.window)) as usize % self.places.len();
        &mut self.places[at]
    }
}
