//! Names of the tools that a run has called, for proofs.

use crate::limits::{PROGRESS_TOOL_BYTES, PROGRESS_TOOLS, TOOL_NAME_BYTES};

/// The names, one behind the other, each with its length before it.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolNames(Box<[u8]>);

impl ToolNames {
    /// The place of a name, which is cut where it is long; None where there are too many.
    pub(super) fn place(&mut self, name: &str) -> Option<u8> {
        let name = &name[..name.floor_char_boundary(TOOL_NAME_BYTES)];
        let mut places = 0;
        for known in self.each() {
            if known == name.as_bytes() {
                return Some(places);
            }
            places += 1;
        }
        if usize::from(places) == PROGRESS_TOOLS || self.0.len() + 1 + name.len() > PROGRESS_TOOL_BYTES {
            return None;
        }
        self.0 = [&self.0, &[name.len() as u8][..], name.as_bytes()].concat().into_boxed_slice();
        Some(places)
    }

    pub(super) fn get(&self, place: u8) -> Option<&str> {
        self.each().nth(usize::from(place)).and_then(|name| std::str::from_utf8(name).ok())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.each().count()
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len()
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first()?;
            let (name, behind) = behind.split_at_checked(usize::from(*length))?;
            rest = behind;
            Some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_again_up_to_the_bounds() {
        let mut names = ToolNames::default();
        for place in 0..PROGRESS_TOOLS as u8 {
            assert_eq!(names.place(&format!("tool{place}")), Some(place));
        }
        assert_eq!((names.place("tool3"), names.get(3)), (Some(3), Some("tool3")));
        assert_eq!((names.place("another"), names.len()), (None, PROGRESS_TOOLS), "past the bound");

        let mut names = ToolNames::default();
        let long = |n: usize| format!("{n}{}", "é".repeat(TOOL_NAME_BYTES));
        let room = PROGRESS_TOOL_BYTES / (TOOL_NAME_BYTES + 1);
        assert!((0..room).all(|n| names.place(&long(n)).is_some()), "at the bound");
        assert_eq!(names.place(&long(room)), None, "past it");
        assert_eq!(names.get(0).map(str::len), Some(TOOL_NAME_BYTES - 1), "cut between two characters");
        assert!(names.heap_bytes() <= PROGRESS_TOOL_BYTES);
    }
}
