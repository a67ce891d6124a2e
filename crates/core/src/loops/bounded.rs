//! Lists of the last few of something. Most runs are short: a list takes no more room than it needs.

use std::ops::Deref;

/// A list that takes no more room than it needs, and seldom changes.
#[derive(Clone, Debug)]
pub(super) struct Few<T>(Box<[T]>);

impl<T> Few<T> {
    /// Lets it be changed as a whole.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Vec<T>)) {
        let mut list = std::mem::take(&mut self.0).into_vec();
        change(&mut list);
        self.0 = list.into_boxed_slice();
    }
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few(Box::default())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// Adds an element, and lets the oldest go where there are too many; gives it.
pub(super) fn push_bounded<T>(kept: &mut Vec<T>, new: T, most: usize) -> Option<T> {
    let gone = (kept.len() >= most && !kept.is_empty()).then(|| kept.remove(0));
    if kept.len() == kept.capacity() {
        // Doubled as ever, but from 1 and not beyond the bound.
        let more = kept.len().max(1).min(most.saturating_sub(kept.len()).max(1));
        kept.reserve_exact(more);
    }
    kept.push(new);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_little_room_and_stays_within_its_bound() {
        let mut kept = Vec::new();
        let seen: Vec<(usize, Option<u32>)> = (0..8)
            .map(|n| {
                let gone = push_bounded(&mut kept, n, 6);
                (kept.capacity(), gone)
            })
            .collect();
        assert_eq!(seen.iter().map(|(room, _)| *room).collect::<Vec<_>>(), [1, 2, 4, 4, 6, 6, 6, 6]);
        assert_eq!(seen[5].1, None, "at the bound all are there");
        assert_eq!((seen[6].1, seen[7].1), (Some(0), Some(1)), "past it the oldest is gone");
        assert_eq!(kept, [2, 3, 4, 5, 6, 7]);
    }
}
