//! The text as detectors see it.

/// How many bytes before a value may count as its context. A stream keeps so many of what it has let go.
pub const LOOK_BACK: usize = 512;
/// The longest thing that can be found, and so the most that is ever held back of a stream.
pub const LOOK_AHEAD: usize = 16 << 10;

/// The end of the last word is held back by itself, up to this length. A detector whose value began earlier has to say so.
pub(super) const OPEN_WORD: usize = 128;
/// Longest colour of a terminal: `ESC[1;38;5;208m`.
const COLOUR: usize = 16;

/// A text, or as much of it as there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'t> {
    /// With what stands before the part that is asked about.
    pub(super) text: &'t [u8],
    /// Nothing follows. Else what touches the end may go on.
    pub(super) is_end: bool,
}

impl View<'_> {
    /// The byte before `at`, unless it is the end of an escape such as the `n` of a `\n` in JSON, or of a `\\n` in JSON
    /// inside JSON: that is a boundary. So is the end of a terminal's colour, the `m` of `ESC[94m`.
    #[inline]
    pub(super) fn before(&self, at: usize) -> Option<u8> {
        let byte = *self.text.get(at.checked_sub(1)?)?;
        let is_escape = byte.is_ascii_alphabetic() && at >= 2 && self.text[at - 2] == b'\\';
        let is_colour = byte == b'm' && self.is_colour(at - 1);
        (!is_escape && !is_colour).then_some(byte)
    }

    fn is_colour(&self, end: usize) -> bool {
        let first = end.saturating_sub(COLOUR);
        let digits =
            self.text[first..end].iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        self.text[first..end - digits].ends_with(b"\x1b[")
    }

    /// Whether a word can begin at `at`.
    #[inline]
    pub(super) fn is_word_start(&self, at: usize) -> bool {
        self.before(at).is_none_or(|byte| !byte.is_ascii_alphanumeric())
    }

    /// Where a run of such bytes that begins at `at` ends.
    pub(super) fn run_end(&self, at: usize, is_part: impl Fn(u8) -> bool) -> usize {
        self.text[at..].iter().position(|byte| !is_part(*byte)).map_or(self.text.len(), |length| at + length)
    }

    /// Whether what ends at `end` could go on when more text comes.
    pub(super) fn may_go_on(&self, end: usize) -> bool {
        !self.is_end && end >= self.text.len()
    }
}
