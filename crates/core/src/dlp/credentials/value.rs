//! Where a value begins and ends.

use super::gap::Operator;
use super::name::Name;
use crate::dlp::byte_set::ByteSet;
use crate::dlp::view::View;

/// Longest value that is found by its context.
const VALUE_BYTES: usize = 4096;
/// Blanks in a quoted value behind which it is prose.
const BLANKS: usize = 2;

/// Most signs in a value without quotes that join names to values: what has more is a row of such pairs.
const JOINTS: usize = 8;

/// Signs at the end of a value without quotes that belong to the sentence or the program.
const TRAILING: usize = 4;

/// A value, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) quote: Option<u8>,
    /// The text ends before the value does.
    pub(super) is_open: bool,
}

/// What may stand in a value without quotes.
static BARE: ByteSet = ByteSet::graphic_but(b"\"'`,;<").and_beyond_ascii();
/// Those of them that never end it, nor count.
static PLAIN: ByteSet = ByteSet::graphic_but(b"\"'`,;<\\&=:").and_beyond_ascii();

/// Words before a token in a header.
const SCHEMES: &[&[u8]] = &[
    b"Bearer ",
    b"Basic ",
    b"Token ",
    b"OAuth ",
    b"ApiKey ",
    b"SSWS ",
    b"Splunk ",
    b"Key ",
    b"Bot ",
    b"GenieKey ",
    b"token=",
    b"key=",
    b"pass:",
];

impl Value {
    /// What begins at `at`.
    pub(super) fn read(view: &View<'_>, at: usize, name: &Name<'_>, operator: Operator) -> Option<Value> {
        let text = view.text;
        let value = match text.get(at..)? {
            [quote @ (b'"' | b'\'' | b'`'), ..] => quoted(view, at + 1, *quote, 0)?,
            [b'\\', b'\\', b'\\', quote @ (b'"' | b'\''), ..] => quoted(view, at + 4, *quote, 3)?,
            [b'\\', quote @ (b'"' | b'\''), ..] => quoted(view, at + 2, *quote, 1)?,
            [b'\\', ..] if view.may_go_on(at + 1) => Value { start: at, end: at, quote: None, is_open: true },
            [] => return None,
            _ if matches!(operator, Operator::Comma | Operator::Call) => return None,
            _ => bare(view, at, name.start.checked_sub(1).is_some_and(|before| matches!(text[before], b'?' | b'&'))),
        };
        Some(behind_scheme(view, value))
    }

    /// What a dash glued to its name.
    pub(super) fn glued(view: &View<'_>, start: usize) -> Value {
        let end = view.run_end(start, |byte| byte.is_ascii_alphanumeric());
        Value { start, end, quote: None, is_open: view.may_go_on(end) }
    }
}

/// Where the next value of a list begins (with its quote): behind `[`, or behind the comma.
pub(super) fn next_of_list(view: &View<'_>, at: usize) -> Option<usize> {
    let rest = view.text.get(at..)?;
    let skipped = rest.iter().take(64).take_while(|byte| b"[, \n\t\r".contains(byte)).count();
    (skipped > 0 && matches!(rest.get(skipped)?, b'"' | b'\'')).then_some(at + skipped)
}

/// Up to the quote that closes it, on the same line. `escapes` backslashes stand before that quote.
fn quoted(view: &View<'_>, start: usize, quote: u8, escapes: usize) -> Option<Value> {
    let text = view.text;
    let (mut at, mut blanks, mut slashes) = (start, 0, 0);
    loop {
        let Some(&byte) = text.get(at) else {
            return (!view.is_end).then_some(Value { start, end: at, quote: Some(quote), is_open: true });
        };
        match byte {
            b'\n' | b'\r' => return None,
            b' ' | b'\t' => blanks += 1,
            _ => {}
        }
        if byte == quote && (slashes == escapes || (escapes == 0 && slashes % 2 == 0)) {
            return Some(Value { start, end: at - escapes.min(slashes), quote: Some(quote), is_open: false });
        }
        // A quote that is less escaped ends the text that the value stands in.
        if byte == quote && slashes < escapes {
            return None;
        }
        slashes = if byte == b'\\' { slashes + 1 } else { 0 };
        at += 1;
        if blanks > BLANKS || at - start > VALUE_BYTES {
            return None;
        }
    }
}

/// Up to what cannot be part of a value without quotes.
fn bare(view: &View<'_>, start: usize, is_query: bool) -> Value {
    let text = view.text;
    let (mut end, mut joints) = (start, 0);
    loop {
        end += text[end..].iter().take(VALUE_BYTES).take_while(|byte| PLAIN.has(**byte)).count();
        let Some(&byte) = text.get(end).filter(|_| end - start <= VALUE_BYTES) else { break };
        let is_escape = byte == b'\\' && text.get(end + 1).is_none_or(|next| b"nrt\"'\\/".contains(next));
        if !BARE.has(byte) || is_escape || (byte == b'&' && is_query) {
            break;
        }
        joints += usize::from(matches!(byte, b'=' | b':'));
        end += 1;
        if joints > JOINTS {
            break;
        }
    }
    if joints > JOINTS || end - start > VALUE_BYTES {
        return Value { start, end: start, quote: None, is_open: false };
    }
    let is_open = view.may_go_on(end) || (!view.is_end && text.get(end) == Some(&b'\\') && end + 1 >= text.len());
    let trailing = text[start..end].iter().rev().take(TRAILING).take_while(|byte| b".:)]}|>".contains(byte)).count();
    for _ in 0..if is_open { 0 } else { trailing } {
        let opening = match text[end - 1] {
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => 0,
        };
        if text[start..end].contains(&opening) {
            break;
        }
        end -= 1;
    }
    Value { start, end, quote: None, is_open }
}

/// Without the word that says what kind of token follows.
fn behind_scheme(view: &View<'_>, value: Value) -> Value {
    let text = &view.text[value.start..];
    let Some(first) = text.first().map(u8::to_ascii_lowercase).filter(|first| b"abgkopst".contains(first)) else {
        return value;
    };
    let is_here = |scheme: &&&[u8]| {
        scheme[0].to_ascii_lowercase() == first
            && text.get(..scheme.len()).is_some_and(|here| here.eq_ignore_ascii_case(scheme))
    };
    let scheme = SCHEMES.iter().find(is_here);
    let is_cut = value.end == value.start + scheme.map_or(0, |scheme| scheme.len() - 1);
    match scheme {
        Some(scheme) if value.quote.is_some() && !is_cut => Value { start: value.start + scheme.len(), ..value },
        Some(scheme) if value.quote.is_none() && (is_cut || scheme.ends_with(b"=") || scheme.ends_with(b":")) => {
            bare(view, value.start + scheme.len(), false)
        }
        _ => value,
    }
}
