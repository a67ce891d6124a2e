//! What stands beside a value: whether it ends there, or is a part of something longer.

use crate::dlp::view::View;

/// Whether a value can end at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dlp) enum Edge {
    /// It ends there.
    Ends,
    /// It is a part of something longer.
    GoesOn,
    /// The text ends before that can be said.
    Open,
}

/// The byte before `at`. None where the text begins, and behind an escape: the `n` of `\n` and of `\\n`, `\u003c`.
pub(in crate::dlp) fn left(view: &View<'_>, at: usize) -> Option<u8> {
    let text = &view.text[..at];
    let byte = *text.last()?;
    match text {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => None,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => None,
        _ => Some(byte),
    }
}

/// Whether a number ends at `end`: no letter, digit or `_` follows, and no `.` or `-` with more
/// behind it.
pub(super) fn right(view: &View<'_>, end: usize) -> Edge {
    match (view.text.get(end), view.text.get(end + 1)) {
        (None, _) if view.is_end => Edge::Ends,
        (None, _) => Edge::Open,
        (Some(byte), _) if is_wordly(*byte) => Edge::GoesOn,
        (Some(b'.' | b'-'), None) if !view.is_end => Edge::Open,
        (Some(b'-'), Some(next)) if is_wordly(*next) => Edge::GoesOn,
        (Some(b'.'), Some(next)) if next.is_ascii_digit() => Edge::GoesOn,
        _ => Edge::Ends,
    }
}

/// Whether this byte is a part of names and numbers.
pub(super) fn is_wordly(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
