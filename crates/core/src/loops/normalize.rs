//! A text without what changes from one repetition to the next: numbers, times, ids, letter case, white space.
//!
//! `ORDER  #12345` and `order #98765` are both `order #<NUM>`. Digits inside a word (`line1`) stay; SimHash does not
//! look at them. Nothing here knows what a prompt is.

use crate::blocks::{BLOCK, bits, is_alphanumeric};

/// What stands for something that changes.
pub(super) const NUMBER: &[u8] = b"<NUM>";
pub(super) const MOMENT: &[u8] = b"<TS>";
pub(super) const ID: &[u8] = b"<ID>";

/// Shortest run of hexadecimal digits that is an id.
const HEX_ID_BYTES: usize = 16;
/// What a written id begins with: `user_test`, `order-12345`.
const ID_PREFIXES: [&[u8]; 3] = [b"user", b"order", b"session"];

/// Lower-case, single spaces, `<TS>` for ISO timestamps, `<ID>` for UUIDs and the like, `<NUM>` for numbers.
#[must_use]
pub fn normalize(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut reading = Reading { text, lower: lower.as_bytes(), copied: 0, out: Vec::with_capacity(text.len() + 16) };
    let mut at = 0;
    while at < reading.lower.len() {
        at = reading.step(at);
    }
    reading.copy_to(at);
    let mut out = reading.out;
    if out.last() == Some(&b' ') {
        out.pop();
    }
    String::from_utf8(out).unwrap_or_default()
}

/// What the normal form of a text is made of, white space and signs aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Letters and digits from here to there.
    Word(usize, usize),
    /// The same, and underscores.
    Name(usize, usize),
    /// What stands for a number, a moment, an id.
    Number,
    Moment,
    Id,
}

/// Goes through the normal form of a text, given in lower case and all ASCII, without writing it down. The placeholders
/// that stand in a text already are words like any other.
#[inline]
pub(super) fn each_piece(lower: &[u8], mut take: impl FnMut(Piece)) {
    let in_word = |block| bits(lower, block, |byte| is_alphanumeric(byte) | (byte == b'_'));
    let of_name = |block| bits(lower, block, |byte| byte == b'_');
    let (mut block, mut words, mut underscores) = (0, in_word(0), of_name(0));
    let mut at = 0;
    while at < lower.len() {
        let behind = words >> (at - block);
        if behind == 0 {
            block += BLOCK;
            (at, words, underscores) = (block, in_word(block), of_name(block));
            continue;
        }
        let start = at + behind.trailing_zeros() as usize;
        let gaps = !words >> (start - block);
        // Words that reach into the next block are few.
        let end = if gaps == 0 { end_of_word(lower, start) } else { start + gaps.trailing_zeros() as usize };
        at = match (end_of_id(lower, start, end), lower[start]) {
            (Some(id_end), _) => {
                take(Piece::Id);
                id_end
            }
            (None, b'0'..=b'9') => {
                let number = Number::read(lower, start, end);
                take(if number.is_moment { Piece::Moment } else { Piece::Number });
                if number.end < number.unit_end {
                    take(Piece::Name(number.end, number.unit_end));
                }
                number.unit_end
            }
            (None, _) => {
                let is_name = gaps == 0 || (underscores >> (start - block)) & (gaps ^ (gaps - 1)) != 0;
                take(if is_name { Piece::Name(start, end) } else { Piece::Word(start, end) });
                end
            }
        };
        if at >= block + BLOCK {
            block = at;
            (words, underscores) = (in_word(block), of_name(block));
        }
    }
}

/// A moment, or a number with what sticks to it.
struct Number {
    is_moment: bool,
    end: usize,
    /// What sticks to it is its unit: 10ms.
    unit_end: usize,
}

impl Number {
    /// Reads the number that begins a word.
    fn read(bytes: &[u8], start: usize, end: usize) -> Number {
        if let Some(length) = moment_bytes(&bytes[start..]) {
            return Number { is_moment: true, end: start + length, unit_end: start + length };
        }
        let word = &bytes[start..end];
        if word.len() > 2 && word.starts_with(b"0x") && word[2..].iter().all(u8::is_ascii_hexdigit) {
            return Number { is_moment: false, end, unit_end: end };
        }
        let mut at = start + digits(word);
        // 1,234.5 and 10:30:00 are one number each.
        while matches!(bytes.get(at), Some(b'.' | b',' | b':')) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            at += 1 + digits(&bytes[at + 1..]);
        }
        Number { is_moment: false, end: at, unit_end: end_of_word(bytes, at) }
    }
}

/// A text on its way to its normal form: what stays as it is gets copied in long pieces.
struct Reading<'a> {
    text: &'a str,
    /// The text with the letters of ASCII in lower case.
    lower: &'a [u8],
    /// Up to here it is in `out`.
    copied: usize,
    out: Vec<u8>,
}

impl Reading<'_> {
    /// Reads on from `at`; gives where to read next.
    fn step(&mut self, at: usize) -> usize {
        let byte = self.lower[at];
        match byte {
            b'a'..=b'z' | b'_' => {
                let end = end_of_word(self.lower, at);
                match end_of_id(self.lower, at, end) {
                    Some(id_end) => self.replace(at, id_end, ID),
                    None => end,
                }
            }
            b'0'..=b'9' => self.number(at),
            b' ' if self.is_single_space(at) => at + 1,
            b' ' | b'\t'..=b'\r' => {
                self.copy_to(at);
                self.space();
                self.copied = at + 1;
                at + 1
            }
            b'<' => {
                // A placeholder that stands in the text already stays as it is.
                let rest = &self.text.as_bytes()[at..];
                match [NUMBER, MOMENT, ID].into_iter().find(|placeholder| rest.starts_with(placeholder)) {
                    Some(placeholder) => self.replace(at, at + placeholder.len(), placeholder),
                    None => at + 1,
                }
            }
            0x80.. => self.wide(at),
            _ => at + 1,
        }
    }

    fn number(&mut self, start: usize) -> usize {
        let bytes = self.lower;
        let end = end_of_word(bytes, start);
        if let Some(id_end) = end_of_id(bytes, start, end) {
            return self.replace(start, id_end, ID);
        }
        let number = Number::read(bytes, start, end);
        self.replace(start, number.end, if number.is_moment { MOMENT } else { NUMBER });
        number.unit_end
    }

    /// A character outside ASCII.
    fn wide(&mut self, at: usize) -> usize {
        let Some(char) = self.text[at..].chars().next() else { return at + 1 };
        let end = at + char.len_utf8();
        if char.is_whitespace() {
            self.copy_to(at);
            self.space();
            self.copied = end;
        } else if char.is_uppercase() {
            self.copy_to(at);
            let mut buffer = [0; 4];
            for lower in char.to_lowercase() {
                self.out.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
            }
            self.copied = end;
        }
        end
    }

    /// Puts `with` in place of what lies between. Gives where reading goes on.
    fn replace(&mut self, start: usize, end: usize, with: &[u8]) -> usize {
        self.copy_to(start);
        self.out.extend_from_slice(with);
        self.copied = end;
        end
    }

    fn copy_to(&mut self, end: usize) {
        if self.copied < end {
            self.out.extend_from_slice(&self.lower[self.copied..end]);
        }
        self.copied = end;
    }

    fn space(&mut self) {
        if self.out.last().is_some_and(|byte| *byte != b' ') {
            self.out.push(b' ');
        }
    }

    /// A space with no other beside it and something before it.
    fn is_single_space(&self, at: usize) -> bool {
        let before = if at > self.copied { self.lower.get(at - 1) } else { self.out.last() };
        before.is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != 0x0b)
    }
}

/// Letters, digits and the underscore of ASCII.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        word[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    word
};

fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let mut end = start;
    while bytes.get(end).is_some_and(|byte| WORD[usize::from(*byte)]) {
        end += 1;
    }
    end
}

/// Where the id ends that begins here, if one does.
#[inline]
fn end_of_id(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let may_be =
        end - start >= HEX_ID_BYTES || matches!(bytes[start], b'u' | b'o' | b's') || bytes.get(end) == Some(&b'-');
    if may_be { end_of_likely_id(bytes, start, end) } else { None }
}

fn end_of_likely_id(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let word = &bytes[start..end];
    if word.len() == 8 && bytes.get(end) == Some(&b'-') {
        return is_uuid(&bytes[start..]).then_some(start + 36);
    }
    if word.len() >= HEX_ID_BYTES {
        let is_hex = word.iter().all(u8::is_ascii_hexdigit);
        let is_mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
        return (is_hex && is_mixed).then_some(end);
    }
    let prefix = ID_PREFIXES.iter().find(|prefix| word.starts_with(prefix))?;
    if word.len() > prefix.len() + 1 && word[prefix.len()] == b'_' {
        return Some(end);
    }
    if word.len() != prefix.len() || bytes.get(end) != Some(&b'-') {
        return None;
    }
    let number_end = end_of_word(bytes, end + 1);
    bytes[end + 1..number_end].iter().any(u8::is_ascii_digit).then_some(number_end)
}

/// 8-4-4-4-12 hexadecimal digits and nothing attached.
fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && !bytes.get(36).is_some_and(|byte| is_word(*byte))
}

/// The length of the ISO date, or date and time, that begins here.
fn moment_bytes(bytes: &[u8]) -> Option<usize> {
    let date = matches_shape(bytes, b"0000-00-00")?;
    let rest = &bytes[date..];
    let time = match rest.first() {
        Some(b't' | b' ') => matches_shape(&rest[1..], b"00:00").map(|length| length + 1),
        _ => None,
    };
    let Some(time) = time else { return (!rest.first().is_some_and(|byte| is_word(*byte))).then_some(date) };
    let mut at = date + time;
    at += matches_shape(&bytes[at..], b":00").unwrap_or(0);
    if matches!(bytes.get(at), Some(b'.' | b',')) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        at += 1 + digits(&bytes[at + 1..]);
    }
    at += match bytes.get(at) {
        Some(b'z') => 1,
        Some(b'+' | b'-') => {
            let zone = &bytes[at + 1..];
            let length = matches_shape(zone, b"00:00").or_else(|| matches_shape(zone, b"0000"));
            length.or_else(|| matches_shape(zone, b"00")).map_or(0, |length| length + 1)
        }
        _ => 0,
    };
    Some(at)
}

/// The shape's length where the bytes begin with it; `0` stands for a digit.
fn matches_shape(bytes: &[u8], shape: &[u8]) -> Option<usize> {
    let begins = bytes.len() >= shape.len()
        && bytes.iter().zip(shape).all(|(byte, want)| if *want == b'0' { byte.is_ascii_digit() } else { byte == want });
    begins.then_some(shape.len())
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_changes_is_replaced() {
        let table = [
            ("order #12345", "order #<NUM>"),
            ("at 2024-01-15T10:30:00Z", "at <TS>"),
            ("at 2024-01-15T10:30:00.123+05:00, or 2024-01-15 10:30", "at <TS>, or <TS>"),
            ("on 2024-01-15.", "on <TS>."),
            ("id 550e8400-e29b-41d4-a716-446655440000", "id <ID>"),
            ("id A1B2C3D4-E5F6-7890-ABCD-EF1234567890!", "id <ID>!"),
            ("hash 0123456789abcdef0123", "hash <ID>"),
            ("user_abc123 order-12345 session_xyz", "<ID> <ID> <ID>"),
            ("user-friendly users order-by", "user-friendly users order-by"),
            ("1,234.50 at 10:30:00 in 10ms, 0x7ffe1a", "<NUM> at <NUM> in <NUM>ms, <NUM>"),
            ("  a\r\n\r\n\tb\u{a0} c  ", "a b c"),
            ("HELLO Wörld ÄÖ", "hello wörld äö"),
            ("line1\n\n\nline2", "line1 line2"),
            ("1.", "<NUM>."),
            ("550e8400-e29b", "<NUM>e8400-e29b"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(normalize(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "[a-zA-Z0-9_ .:,<>\\-\n\u{e4}\u{4f60}NUMTSID]{0,80}") {
            let once = normalize(&text);
            prop_assert_eq!(normalize(&once), once);
        }

        #[test]
        fn any_text_is_taken(text in any::<String>()) {
            prop_assert!(!normalize(&text).contains("  "));
        }

        #[test]
        fn numbers_do_not_matter(a in 0u64..1_000_000_000, b in 0u64..1_000_000_000, words in "[a-z]{1,8}( [a-z]{1,8}){0,9}") {
            prop_assert_eq!(normalize(&format!("{words} {a} x")), normalize(&format!("{words} {b} x")));
        }
    }
}
