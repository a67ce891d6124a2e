//! What was found in a body, by places that hold as long as its bytes are the same. Never what stands there.

use std::ops::Range;

use crate::dlp::kind::{Entity, Tier};

/// One finding in a body, or in one item of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dlp) struct Found {
    pub(super) what: What,
    pub(super) form: Form,
    /// Where it stands in the bytes.
    pub(super) first: Range<usize>,
    /// Where it goes on, when it was cut across parts of a message.
    pub(super) others: Vec<Other>,
    /// In how many strings its string stands: 1 in the arguments of a call.
    pub(super) level: u8,
    /// The path of its text: `.content[0].text`.
    pub(super) path: String,
    /// Its place in that text.
    pub(super) start: usize,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Finding(Entity, Tier),
    /// The same, where it is meant for the provider.
    Given(Entity, Tier),
    /// A placeholder of the run's vault.
    Placeholder(Entity, u32),
}

/// What it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// A key of an object, and how many were found in that object before.
    Key(u16),
    /// A number without quotes.
    Number,
}

/// A further part of a value that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) range: Range<usize>,
    /// It is all of its text.
    pub(super) is_all: bool,
    /// It looks like a word.
    pub(super) is_word: bool,
}

impl Found {
    /// The same, in a body in which its item begins at `base` and has this path.
    pub(super) fn moved(&self, base: usize, path: &str) -> Found {
        let mut found = self.clone();
        for range in found.ranges_mut() {
            *range = range.start + base..range.end + base;
        }
        found.path.insert_str(0, path);
        found
    }

    /// It is meant for the provider.
    pub(super) fn give(&mut self) {
        if let What::Finding(entity, tier) = self.what {
            self.what = What::Given(entity, tier);
        }
    }

    /// It is not.
    pub(super) fn take_back(&mut self) {
        if let What::Given(entity, tier) = self.what {
            self.what = What::Finding(entity, tier);
        }
    }

    /// Every place that it takes.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &Range<usize>> {
        std::iter::once(&self.first).chain(self.others.iter().map(|other| &other.range))
    }

    fn ranges_mut(&mut self) -> impl Iterator<Item = &mut Range<usize>> {
        std::iter::once(&mut self.first).chain(self.others.iter_mut().map(|other| &mut other.range))
    }

    /// Takes in a place that it shares bytes with. Whether it does.
    pub(super) fn absorb(&mut self, place: &Range<usize>) -> bool {
        let shared = self.ranges_mut().find(|range| range.start < place.end && place.start < range.end);
        let Some(range) = shared else { return false };
        *range = range.start.min(place.start)..range.end.max(place.end);
        true
    }
}
