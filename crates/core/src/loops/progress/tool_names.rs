//! Names of the tools that a run has called, for proofs.

use crate::dlp::{Scanner, for_record};
use crate::limits::{PROGRESS_TOOL_BYTES, PROGRESS_TOOLS, REPLY_WORD_BYTES, TOOL_NAME_BYTES};
use crate::loops::packed::{Reader, put_piece};

/// The names, one behind the other, each with its length before it.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolNames(Box<[u8]>);

impl ToolNames {
    /// One name that went through [`ToolNames::place`] before.
    pub(super) fn only(name: &str) -> ToolNames {
        let name = cut(name);
        ToolNames([&[name.len() as u8][..], name.as_bytes()].concat().into_boxed_slice())
    }

    /// The place of a name, which is cut where it is long; None where there are too many. Proofs go on record, so
    /// secrets are hidden first: half of one is no longer known for what it is.
    pub(super) fn place(&mut self, name: &str) -> Option<u8> {
        // Most are known, and need no second look.
        if let Some(known) = self.known(cut(name)) {
            return Some(known);
        }
        self.add(cut(&for_record(&Scanner::default(), name, REPLY_WORD_BYTES / 2)))
    }

    /// The place of a name that went through [`ToolNames::place`] before.
    pub(super) fn add(&mut self, name: &str) -> Option<u8> {
        if let Some(known) = self.known(name) {
            return Some(known);
        }
        let places = self.each().count();
        if places == PROGRESS_TOOLS || self.0.len() + 1 + name.len() > PROGRESS_TOOL_BYTES {
            return None;
        }
        self.0 = [&self.0, &[name.len() as u8][..], name.as_bytes()].concat().into_boxed_slice();
        u8::try_from(places).ok()
    }

    pub(super) fn get(&self, place: u8) -> Option<&str> {
        self.each().nth(usize::from(place)).and_then(|name| std::str::from_utf8(name).ok())
    }

    /// Writes them down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        put_piece(bytes, &self.0);
    }

    /// Reads what was written; None where there are more than are ever kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<ToolNames> {
        let names = ToolNames(reader.piece().into());
        let is_name = |name: &[u8]| name.len() <= TOOL_NAME_BYTES && std::str::from_utf8(name).is_ok();
        let is_whole = names.each().map(|name| 1 + name.len()).sum::<usize>() == names.0.len();
        let is_kept = names.0.len() <= PROGRESS_TOOL_BYTES && names.each().count() <= PROGRESS_TOOLS;
        (is_whole && is_kept && names.each().all(is_name)).then_some(names)
    }

    /// All of them, in the order of their places.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.each().map(|name| std::str::from_utf8(name).unwrap_or_default())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.each().count()
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len()
    }

    fn known(&self, name: &str) -> Option<u8> {
        self.each().position(|known| known == name.as_bytes()).and_then(|place| u8::try_from(place).ok())
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

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(TOOL_NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_names_are_hidden_before_they_are_cut() {
        let mut names = ToolNames::default();
        let token =
            "look_up.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.Zq7VxKw3TnB9mLr2HdYc5PfJ8sWgQm2Xv9Lr4Tn8Wb0";
        assert_eq!((names.place(token), names.get(0)), (Some(0), Some("look_up.[REDACTED:JWT]")));
        assert_eq!((names.place(token), names.place("look_up"), names.len()), (Some(0), Some(1), 2));
    }

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
