//! Reads a format at a place.

use super::format::{Format, OPEN, Part};
use super::run_ends::RunEnds;
use crate::dlp::allowed::is_placeholder;
use crate::dlp::view::View;

/// What stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Something else.
    Other,
    /// The text ends before that can be said.
    Open,
    /// It, up to here.
    UpTo(usize),
}

/// A run longer than this is a picture or a file in base64, not a key.
pub(super) const LONGEST_RUN: usize = 4096;
/// A run that ends sooner is not worth remembering.
const SHORT_RUN: usize = 4;
/// So much of a value is looked at when its characters are judged: enough to tell, and bounded.
const JUDGED: usize = 64;
/// Base64 on so many bytes beside a value means that the value is a piece of it.
const BASE64_BESIDE: usize = 40;

/// Reads `format` at `at`, behind a prefix of this length.
pub(super) fn read(format: &Format, view: &View<'_>, at: usize, prefix: usize, ends: &mut RunEnds) -> Reading {
    let mut place = at + prefix;
    let mut last = None;
    for part in format.parts() {
        match *part {
            Part::Text(text) => {
                let rest = &view.text[place..];
                if !rest.starts_with(text.as_bytes()) {
                    let is_cut = !view.is_end && text.as_bytes().starts_with(rest);
                    return if is_cut { Reading::Open } else { Reading::Other };
                }
                place += text.len();
            }
            Part::Run { of, least, most } => {
                let end = match most {
                    // Most runs end at once. What goes on is walked over once, and remembered.
                    OPEN => match bounded_end(view, place, SHORT_RUN, |byte| of.has(byte)) {
                        end if end < place + SHORT_RUN => end,
                        _ => ends.end(view, of, place),
                    },
                    _ => bounded_end(view, place, most, |byte| of.has(byte)),
                };
                let length = end - place;
                if length > LONGEST_RUN {
                    return Reading::Other;
                }
                if view.may_go_on(end) && length < most {
                    return Reading::Open;
                }
                if length < least {
                    return Reading::Other;
                }
                place = end;
                last = Some(of);
            }
        }
    }
    if view.may_go_on(place) {
        return Reading::Open;
    }
    if view.text.get(place).is_some_and(u8::is_ascii_alphanumeric) {
        return Reading::Other;
    }
    // A full stop behind a key ends the sentence, not the key.
    let is_dotted = last.is_some_and(|of| of.has(b'.'));
    let dots = view.text[..place].iter().rev().take_while(|byte| is_dotted && **byte == b'.').count();
    Reading::UpTo(place - dots)
}

/// Whether a value that has the form is a key, not a word or a placeholder.
pub(super) fn is_key(format: &Format, value: &[u8], prefix: usize) -> bool {
    if format.checksum.is_some_and(|holds| holds(value)) {
        return true;
    }
    let body = &value[prefix..];
    let judged = &body[..body.len().min(JUDGED)];
    let digits = judged.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits < format.digits || (format.is_mixed && !is_mixed(judged)) {
        return false;
    }
    !is_placeholder(body) && !is_filler(judged)
}

/// Whether the value is a piece of a longer base64 text, where any prefix comes by chance; `None` if that is open.
pub(super) fn is_in_base64(view: &View<'_>, start: usize, end: usize) -> Option<bool> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if start.checked_sub(1).is_some_and(|before| matches!(view.text[before], b'+' | b'/')) {
        let from = start.saturating_sub(BASE64_BESIDE);
        if start - from == BASE64_BESIDE && view.text[from..start].iter().all(|byte| is_base64(*byte)) {
            return Some(is_mixed(&view.text[from..start]));
        }
    }
    if !view.text.get(end).is_some_and(|byte| matches!(byte, b'+' | b'/')) {
        return Some(false);
    }
    let run = bounded_end(view, end, BASE64_BESIDE, is_base64);
    if run - end == BASE64_BESIDE {
        return Some(is_mixed(&view.text[end..run]));
    }
    (!view.may_go_on(run)).then_some(false)
}

/// Where the run from `at` ends, looking at no more than `most` bytes.
pub(super) fn bounded_end(view: &View<'_>, at: usize, most: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let limit = view.text.len().min(at.saturating_add(most));
    view.text[at..limit].iter().position(|byte| !is_part(*byte)).map_or(limit, |length| at + length)
}

/// Whether small letters, capitals and digits are in it.
pub(super) fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_lowercase)
        && text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_digit)
}

/// `xxxxxxxx-xxxx`, `0000…`: hardly any character but one.
fn is_filler(body: &[u8]) -> bool {
    let mut kinds: u128 = 0;
    for byte in body.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        kinds |= 1 << byte.to_ascii_lowercase();
    }
    kinds.count_ones() < 4 && body.len() >= 8
}
