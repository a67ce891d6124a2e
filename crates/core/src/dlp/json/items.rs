//! The items of a body that come again at every step: looked at once, and known by their bytes after that.

use std::ops::Range;

use serde_json::value::RawValue;

use super::rules::{Rule, State};
use super::text::Walker;
use crate::dlp::seen::Seen;

/// What is still ahead of a walk.
#[derive(Debug)]
pub(super) struct Items<'a> {
    ahead: &'a [Range<usize>],
    seen: Option<&'a Seen>,
}

/// Where values that borrow from `body` stand in it, in order: messages, input items, system prompts, lists of tools.
#[must_use]
pub fn ranges_of<'v>(body: &[u8], values: impl IntoIterator<Item = &'v RawValue>) -> Vec<Range<usize>> {
    let place = |value: &RawValue| {
        let start = (value.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
        let end = start.checked_add(value.get().len())?;
        (end <= body.len()).then_some(start..end)
    };
    let mut ranges: Vec<_> = values.into_iter().filter_map(place).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

impl<'a> Items<'a> {
    pub(super) fn new(ahead: &'a [Range<usize>], seen: Option<&'a Seen>) -> Items<'a> {
        Items { ahead: if seen.is_some() { ahead } else { &[] }, seen }
    }

    pub(super) fn none() -> Items<'a> {
        Items { ahead: &[], seen: None }
    }

    /// Whether an item begins at `at`. Those that the walk has passed otherwise, or that cannot be, are forgotten.
    pub(super) fn next_is(&mut self, at: usize, end: usize) -> bool {
        while let [first, rest @ ..] = self.ahead
            && (first.start < at || first.is_empty() || first.end > end)
        {
            self.ahead = rest;
        }
        self.ahead.first().is_some_and(|first| first.start == at)
    }

    /// What is found in the item that comes next, freshly or from memory. Gives the place behind it.
    pub(super) fn look(
        &mut self,
        walker: &mut Walker<'_>,
        buf: &[u8],
        root: (State, Rule),
        path: impl Fn() -> String,
    ) -> usize {
        let ([range, rest @ ..], Some(seen)) = (self.ahead, self.seen) else { return buf.len() };
        self.ahead = rest;
        let bytes = &buf[range.clone()];
        if root.0 != State::Never {
            let salt = (walker.dialect as u64) << 16 | (root.0 as u64) << 8 | root.1 as u64;
            let found = seen.or_look(bytes, salt, || {
                let mut apart = Walker::new(walker.scanner, walker.placeholders, walker.dialect);
                apart.walk(bytes, 0..bytes.len(), root, &mut Items::none());
                apart.found
            });
            if let Some(found) = found {
                let path = path();
                walker.found.extend(found.iter().map(|found| found.moved(range.start, &path)));
            }
        }
        range.end
    }
}
