//! The inside of a JSON string: what its escapes mean, and how to write text into one.
//!
//! Halves of surrogate pairs that stand alone are kept as the three bytes they would have in UTF-8, so that nothing is
//! lost when a provider cuts a pair across two events.

use std::borrow::Cow;

use memchr::memchr;

/// The smallest part of a string that must not be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Bytes it takes as it is written.
    pub(super) raw: usize,
    bytes: [u8; 4],
    length: usize,
}

impl Unit {
    /// What it means.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn byte(byte: u8, raw: usize) -> Unit {
        Unit { raw, bytes: [byte, 0, 0, 0], length: 1 }
    }
}

/// The unit at the beginning of `raw`; None when it is not whole yet. At the end what is not whole stands for itself.
pub(super) fn unit(raw: &[u8], is_end: bool) -> Option<Unit> {
    let first = *raw.first()?;
    if first != b'\\' {
        return Some(Unit::byte(first, 1));
    }
    let lone = || is_end.then(|| Unit::byte(b'\\', 1));
    let Some(second) = raw.get(1) else { return lone() };
    let meant = match second {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' => *second,
        b'u' => {
            return match four_digits(raw) {
                Digits::Code(code) => character(code, raw, is_end),
                Digits::Cut => lone(),
                Digits::Wrong => Some(Unit::byte(b'\\', 1)),
            };
        }
        _ => return Some(Unit::byte(b'\\', 1)),
    };
    Some(Unit::byte(meant, 2))
}

/// What the inside of a whole string means.
pub(super) fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr(b'\\', raw) else { return Cow::Borrowed(raw) };
    let mut text = raw[..first].to_vec();
    let mut at = first;
    while let Some(unit) = unit(&raw[at..], true) {
        text.extend_from_slice(unit.text());
        at += unit.raw;
    }
    Cow::Owned(text)
}

/// Writes text as the inside of a string.
pub(super) fn write(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len());
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                at += 1;
                continue;
            }
            0xed if text.len() - at >= 3 && text[at + 1] >= 0xa0 => {
                let code = 0xd000 | u16::from(text[at + 1] & 0x3f) << 6 | u16::from(text[at + 2] & 0x3f);
                out.extend_from_slice(b"\\u");
                out.extend([12, 8, 4, 0].map(|shift| HEX[usize::from(code >> shift & 15)]));
                at += 3;
                continue;
            }
            _ => {
                out.push(byte);
                at += 1;
                continue;
            }
        };
        out.extend([b'\\', letter]);
        at += 1;
    }
}

enum Digits {
    Code(u32),
    Cut,
    Wrong,
}

/// The number of an escape `\uXXXX` at the beginning of `raw`.
fn four_digits(raw: &[u8]) -> Digits {
    let (mut code, mut digits) = (0, 0);
    for byte in raw.iter().skip(2).take(4) {
        let Some(digit) = (*byte as char).to_digit(16) else { return Digits::Wrong };
        code = code << 4 | digit;
        digits += 1;
    }
    if digits == 4 { Digits::Code(code) } else { Digits::Cut }
}

/// The character with this code, with the other half of its pair if it is the first one.
fn character(code: u32, raw: &[u8], is_end: bool) -> Option<Unit> {
    let mut unit = Unit { raw: 6, bytes: [0; 4], length: 3 };
    let mut code = code;
    if (0xd800..0xdc00).contains(&code) {
        let behind = &raw[6..];
        let may_pair = behind.starts_with(b"\\u") || b"\\u".starts_with(behind);
        match four_digits(behind) {
            _ if !may_pair => {}
            Digits::Code(low) if (0xdc00..0xe000).contains(&low) => {
                code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
                unit.raw = 12;
            }
            Digits::Cut if !is_end => return None,
            _ => {}
        }
    }
    match char::from_u32(code) {
        Some(character) => unit.length = character.encode_utf8(&mut unit.bytes).len(),
        None => {
            let low = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
            unit.bytes = [0xed, low(6), low(0), 0];
        }
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_they_should() {
        let cases: &[(&str, &[u8])] = &[
            ("plain ß", "plain ß".as_bytes()),
            (r#"a\n\t\"\\\/b"#, b"a\n\t\"\\/b"),
            (r"\u00e9\u0041", "éA".as_bytes()),
            (r"\ud83e\udd80", "🦀".as_bytes()),
            (r"\ud83ex", b"\xed\xa0\xbex"),
            (r"\udd80", b"\xed\xb6\x80"),
            (r"\x\u12", b"\\x\\u12"),
        ];
        for (raw, text) in cases {
            assert_eq!(&*decoded(raw.as_bytes()), *text, "{raw}");
        }
    }

    #[test]
    fn what_is_written_means_the_same() {
        for raw in [r#"a\n\"\\ \u0001"#, r"\ud83e", r"\ud83e\udd80", "é", r"\ud83e\ud83e\udd80\udd80"] {
            let text = decoded(raw.as_bytes());
            let mut written = Vec::new();
            write(&text, &mut written);
            assert_eq!(decoded(&written), text, "{raw}");
        }
        let mut halves = Vec::new();
        write(b"\xed\xa0\xbe\xed\xb6\x80", &mut halves);
        assert_eq!(halves, br"\ud83e\udd80");
    }

    #[test]
    fn a_unit_waits_until_it_is_whole() {
        for raw in [r"\", r"\u", r"\u00", r"\ud83e", r"\ud83e\", r"\ud83e\ud", r"\ud83e\udd8"] {
            assert_eq!(unit(raw.as_bytes(), false), None, "{raw}");
            assert!(unit(raw.as_bytes(), true).is_some(), "{raw}");
        }
        assert_eq!(unit(br"\ud83e\udd80", false).map(|unit| unit.raw), Some(12));
        assert_eq!(unit(br"\ud83e\n", false).map(|unit| unit.raw), Some(6));
    }
}
