//! What a key looks like, as a row of the table: what it begins with, and what follows.
//!
//! Rows are written with the builders here and read by `matching`. A format is read from left to right without going
//! back, so a run must not swallow what its next part begins with, unless its length is fixed.

use super::alphabet::Alphabet;
use crate::dlp::catalogue::row;
use crate::dlp::kind::{Family, Kind};

/// A kind of key and the formats it comes in.
#[derive(Clone, Copy)]
pub(in crate::dlp) struct Vendor {
    pub(in crate::dlp) kind: Kind,
    pub(in crate::dlp) formats: &'static [Format],
}

/// One format of a key.
#[derive(Clone, Copy)]
pub(in crate::dlp) struct Format {
    /// Any of these begins it, each at least two bytes long. None: `bare` or `marks` reach it.
    pub(super) prefixes: &'static [&'static str],
    parts: [Part; MOST_PARTS],
    length: usize,
    /// So many digits stand behind the prefix, or it is a word that looks like a key.
    pub(super) digits: usize,
    /// Small letters, capitals and digits stand behind the prefix.
    pub(super) is_mixed: bool,
    /// A checksum. One that holds is proof; one that does not says nothing, for public examples seldom keep it.
    pub(super) checksum: Option<fn(&[u8]) -> bool>,
    /// What stands in its middle and is rarer than what it begins with.
    pub(super) mark: Option<Mark>,
    /// It is the end of an address, which is hidden with its scheme and host.
    pub(super) is_address: bool,
}

/// A text inside a key, and what stands before it.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) text: &'static str,
    pub(super) before: Alphabet,
    pub(super) most: usize,
}

/// A part of what follows the prefix.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Run { of: Alphabet, least: usize, most: usize },
    Text(&'static str),
}

/// No upper length: the run is taken whole, so that longer keys of later years are hidden whole as well.
pub(super) const OPEN: usize = usize::MAX;
const MOST_PARTS: usize = 7;

/// A vendor's key.
pub(in crate::dlp) const fn vendor(
    id: &'static str,
    title: &'static str,
    form: &'static str,
    formats: &'static [Format],
) -> Vendor {
    Vendor { kind: row(id, Family::ApiKey, title, form), formats }
}

/// The kinds of a table.
pub(in crate::dlp) const fn kinds<const N: usize>(vendors: &[Vendor]) -> [Kind; N] {
    let mut kinds = [row("", Family::ApiKey, "", ""); N];
    let mut at = 0;
    while at < N {
        kinds[at] = vendors[at].kind;
        at += 1;
    }
    kinds
}

/// A format that begins with any of these.
pub(in crate::dlp) const fn begins(prefixes: &'static [&'static str]) -> Format {
    Format {
        prefixes,
        parts: [Part::Text(""); MOST_PARTS],
        length: 0,
        digits: 0,
        is_mixed: false,
        checksum: None,
        mark: None,
        is_address: false,
    }
}

/// A format without a prefix: the first run tells, or a mark.
pub(in crate::dlp) const fn bare() -> Format {
    begins(&[])
}

impl Format {
    /// Then so many or more of these.
    pub(in crate::dlp) const fn run(self, of: Alphabet, least: usize) -> Format {
        self.then(Part::Run { of, least, most: OPEN })
    }

    /// Then so many of these.
    pub(in crate::dlp) const fn exactly(self, of: Alphabet, count: usize) -> Format {
        self.then(Part::Run { of, least: count, most: count })
    }

    /// Then at least and at most so many of these.
    pub(in crate::dlp) const fn between(self, of: Alphabet, least: usize, most: usize) -> Format {
        self.then(Part::Run { of, least, most })
    }

    /// Then this.
    pub(in crate::dlp) const fn text(self, text: &'static str) -> Format {
        self.then(Part::Text(text))
    }

    /// Has so many digits behind the prefix.
    pub(in crate::dlp) const fn digits(mut self, digits: usize) -> Format {
        self.digits = digits;
        self
    }

    /// Has small letters, capitals and digits behind the prefix.
    pub(in crate::dlp) const fn mixed(mut self) -> Format {
        self.is_mixed = true;
        self
    }

    /// Ends in a checksum.
    pub(in crate::dlp) const fn checksum(mut self, holds: fn(&[u8]) -> bool) -> Format {
        self.checksum = Some(holds);
        self
    }

    /// Is found by this text in its middle, before which stand so many of `before`.
    pub(in crate::dlp) const fn marked(mut self, text: &'static str, before: Alphabet, most: usize) -> Format {
        self.mark = Some(Mark { text, before, most });
        self
    }

    /// Is the end of an address.
    pub(in crate::dlp) const fn address(mut self) -> Format {
        self.is_address = true;
        self
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts[..self.length]
    }

    /// What may stand behind the prefix.
    pub(super) const fn follows(&self, byte: u8) -> bool {
        match self.parts[0] {
            Part::Run { of, .. } => of.has(byte),
            Part::Text(text) => text.as_bytes()[0] == byte,
        }
    }

    const fn then(mut self, part: Part) -> Format {
        self.parts[self.length] = part;
        self.length += 1;
        self
    }
}
