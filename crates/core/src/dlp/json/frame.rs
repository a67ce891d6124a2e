//! Where in a body a walk is: the objects and lists around it.

use std::fmt::Write;
use std::ops::Range;

use super::rules::{Rule, State, is_sealed};
use super::text::Text;

/// One object or list that is not closed yet.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) is_array: bool,
    pub(super) expects_key: bool,
    pub(super) state: State,
    /// What holds for it, and for each value of a list.
    pub(super) rule: Rule,
    /// Its opening bracket.
    pub(super) start: usize,
    /// The key that it is the value of, also through a list.
    pub(super) name: Range<usize>,
    /// The key that is being read, without quotes.
    pub(super) key: Range<usize>,
    /// Nothing was found in the key: it may stand in a path.
    pub(super) is_key_shown: bool,
    pub(super) index: u32,
    pub(super) keys_found: u16,
    pub(super) marks: u8,
    /// How much had been found before it.
    pub(super) found_from: usize,
    /// What an object says under `text`.
    pub(super) text: Option<TextPart>,
    /// What may be encoded bytes, with its key: looked at once it is known what the object is.
    pub(super) encoded: Vec<(Range<usize>, Rule, Text)>,
    /// The texts of a list's objects.
    pub(super) texts: Vec<(u32, TextPart)>,
}

/// A text of a message that others may stand beside.
#[derive(Clone, Debug)]
pub(super) struct TextPart {
    pub(super) content: Range<usize>,
}

/// Keys in a path are cut here; they are for people.
const KEY_IN_PATH: usize = 64;

impl Frame {
    /// What the whole of it stands in.
    pub(super) fn root((state, rule): (State, Rule)) -> Frame {
        Frame {
            is_array: true,
            expects_key: false,
            state,
            rule,
            start: 0,
            name: 0..0,
            key: 0..0,
            is_key_shown: false,
            index: 0,
            keys_found: 0,
            marks: 0,
            found_from: 0,
            text: None,
            encoded: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// An object or a list inside this one.
    pub(super) fn child(&self, is_array: bool, (state, rule): (State, Rule), start: usize, found_from: usize) -> Frame {
        let name = if self.is_array { self.name.clone() } else { self.key.clone() };
        let rule = if is_array && rule == Rule::FreeObject { Rule::Look } else { rule };
        let root = Frame::root((state.inside(rule), rule));
        Frame { is_array, expects_key: !is_array, start, name, found_from, ..root }
    }

    /// Behind a comma.
    pub(super) fn go_on(&mut self) {
        self.index = self.index.saturating_add(1);
        self.expects_key = !self.is_array;
        self.key = 0..0;
    }

    pub(super) fn is_sealed(&self) -> bool {
        !self.is_array && self.state.has_seals() && is_sealed(self.marks)
    }
}

/// The path of what is being read: `.messages[3].content`. A key in which something was found is a star.
pub(super) fn path_of(frames: &[Frame], buf: &[u8]) -> String {
    let mut path = String::new();
    for frame in frames.iter().skip(1) {
        if frame.is_array {
            // Writing to a string cannot fail.
            let _ = write!(path, "[{}]", frame.index);
        } else if frame.is_key_shown {
            let key = String::from_utf8_lossy(&buf[frame.key.clone()]);
            path.push('.');
            path.extend(key.chars().take(KEY_IN_PATH));
        } else {
            path.push_str(".*");
        }
    }
    path
}
