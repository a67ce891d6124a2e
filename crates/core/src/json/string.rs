//! Where strings end, many bytes at a time.

use std::sync::LazyLock;

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

/// Short strings are looked at eight bytes at a time, so many times.
const EIGHT: usize = 8;
const EIGHTS: usize = 3;
/// Longer ones by blocks, few at first: what stands behind the end is looked at for nothing.
const BLOCK: usize = 64;
const FEWEST_BLOCKS: usize = 2;
const MOST_BLOCKS: usize = 8;
const ALL: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x80 * ALL;

/// Where the string ends whose first byte stands at `start`, and whether it has escapes. None where it does not end, holds
/// what no string may hold, or has an escape that there is not.
#[inline]
pub(crate) fn end_of_string(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    // Most strings are keys and words of the protocol.
    let (eights, _) = bytes.get(start..)?.as_chunks::<EIGHT>();
    let mut at = start;
    for eight in eights.iter().take(EIGHTS) {
        let signs = signs_of(u64::from_le_bytes(*eight));
        if signs != 0 {
            at += signs.trailing_zeros() as usize / 8;
            return if bytes[at] == b'"' { Some((at, false)) } else { end_of_escaped(bytes, at) };
        }
        at += EIGHT;
    }
    end_of_long(bytes, at)
}

/// The same from a place before which there is no sign. Most long strings have none at all before their end.
fn end_of_long(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);
    let at = from + dispatch!(*LEVEL, simd => first_sign(simd, &bytes[from..]))?;
    if bytes[at] == b'"' { Some((at, false)) } else { end_of_escaped(bytes, at) }
}

/// Where the first quote, backslash or control character stands.
#[inline(always)]
fn first_sign<S: Simd>(simd: S, bytes: &[u8]) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (place, block) in blocks.iter().enumerate() {
        let signs = signs_in(simd, block);
        if signs != 0 {
            return Some(place * BLOCK + signs.trailing_zeros() as usize);
        }
    }
    // As if letters followed.
    let mut block = [b'a'; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    let signs = signs_in(simd, &block);
    (signs != 0).then(|| blocks.len() * BLOCK + signs.trailing_zeros() as usize)
}

/// Whether a quote, a backslash or a control character stands anywhere: such a text cannot be written as it is.
#[inline]
pub(super) fn has_sign(bytes: &[u8]) -> bool {
    const SIXTEEN: usize = 16;
    let is_sign = |byte: u8| u8::from((byte < 0x20) | (byte == b'"') | (byte == b'\\'));
    // Written such that the compiler takes many bytes at once.
    let mut signs = [0; SIXTEEN];
    let mut note = |bytes: &[u8; SIXTEEN]| {
        signs.iter_mut().zip(bytes).for_each(|(sign, byte)| *sign |= is_sign(*byte));
    };
    match bytes.last_chunk() {
        Some(last) => {
            bytes.as_chunks().0.iter().for_each(&mut note);
            // Some of these are looked at twice.
            note(last);
        }
        None => {
            // As if letters followed.
            let mut last = [b'a'; SIXTEEN];
            last[..bytes.len()].copy_from_slice(bytes);
            note(&last);
        }
    }
    u128::from_le_bytes(signs) != 0
}

/// In each byte that is a quote, a backslash or a control character, the highest bit. Behind the first such byte others
/// may have theirs as well.
#[inline]
fn signs_of(eight: u64) -> u64 {
    let below = |word: u64, least: u64| word.wrapping_sub(least * ALL) & !word & HIGHEST;
    let quote = eight ^ (u64::from(b'"') * ALL);
    let backslash = eight ^ (u64::from(b'\\') * ALL);
    below(quote, 1) | below(backslash, 1) | below(eight, 0x20)
}

/// The bytes that are a quote, a backslash or a control character.
#[inline(always)]
fn signs_in<S: Simd>(simd: S, block: &[u8; BLOCK]) -> u64 {
    let bytes = u8x64::from_slice(simd, block);
    (bytes.simd_eq(b'"') | bytes.simd_eq(b'\\') | bytes.simd_lt(0x20)).to_bitmask()
}

/// The same for a string of any length, by the masks of its blocks.
fn end_of_escaped(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut masks = [Masks::default(); MOST_BLOCKS];
    let (mut at, mut blocks, mut is_escaped) = (start, FEWEST_BLOCKS, false);
    // Whether the first byte of the next block belongs to an escape.
    let mut carry = 0;
    while at < bytes.len() {
        masks_from(bytes, at, &mut masks[..blocks]);
        for masks in &masks[..blocks] {
            let escaped = masks.escaped(&mut carry);
            let end = masks.quote & !escaped;
            // What stands before the end, where it ends here.
            let inside = end.wrapping_sub(1) & !end;
            if masks.control & inside != 0 {
                return None;
            }
            let mut escapes = masks.backslash & !escaped & inside;
            is_escaped |= escapes != 0;
            while escapes != 0 {
                escape_bytes(bytes, at + escapes.trailing_zeros() as usize)?;
                escapes &= escapes - 1;
            }
            if end != 0 {
                return Some((at + end.trailing_zeros() as usize, is_escaped));
            }
            at += BLOCK;
        }
        blocks = (blocks * 2).min(MOST_BLOCKS);
    }
    None
}

/// Which of 64 bytes are a quote, a backslash or a control character. Bit `n` speaks of byte `n`.
#[derive(Clone, Copy, Debug, Default)]
struct Masks {
    quote: u64,
    backslash: u64,
    control: u64,
}

impl Masks {
    /// Bytes that stand behind a backslash which is no second half itself. `carry` is 1 where the first one does, and then
    /// says the same of the block behind.
    #[inline]
    fn escaped(&self, carry: &mut u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        if self.backslash == 0 {
            return std::mem::take(carry);
        }
        let backslash = self.backslash & !*carry;
        let behind = backslash << 1 | *carry;
        // A row of backslashes that begins at an odd place, added to itself, ends with its parity turned around.
        let (rows, overflows) = (backslash & !EVEN & !behind).overflowing_add(backslash);
        *carry = u64::from(overflows);
        (EVEN ^ (rows << 1)) & behind
    }
}

/// The masks of as many blocks as there is room for. Behind the end of the bytes nothing is set.
///
/// All are made before the first is used: in registers, compilers take them apart.
fn masks_from(bytes: &[u8], at: usize, masks: &mut [Masks]) {
    static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);
    dispatch!(*LEVEL, simd => masks_with(simd, &bytes[at..], masks));
}

#[inline(always)]
fn masks_with<S: Simd>(simd: S, bytes: &[u8], masks: &mut [Masks]) {
    let (whole, rest) = bytes.as_chunks::<BLOCK>();
    let count = whole.len().min(masks.len());
    for (masks, block) in masks.iter_mut().zip(whole) {
        *masks = masks_of(simd, block);
    }
    if let Some((last, behind)) = masks[count..].split_first_mut() {
        // As if letters followed.
        let mut block = [b'a'; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        *last = masks_of(simd, &block);
        behind.fill(Masks::default());
    }
}

#[inline(always)]
fn masks_of<S: Simd>(simd: S, block: &[u8; BLOCK]) -> Masks {
    let bytes = u8x64::from_slice(simd, block);
    Masks {
        quote: bytes.simd_eq(b'"').to_bitmask(),
        backslash: bytes.simd_eq(b'\\').to_bitmask(),
        control: bytes.simd_lt(0x20).to_bitmask(),
    }
}

/// Bytes of the escape that begins here; None where there is no such escape.
#[inline]
fn escape_bytes(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// A string without its escapes; None where characters are given by their numbers.
pub(crate) fn unescaped(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        text.push(match rest.as_bytes().get(at + 1)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            sign @ (b'"' | b'\\' | b'/') => char::from(*sign),
            _ => return None,
        });
        rest = &rest[at + 2..];
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, byte by byte.
    fn slowly(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
        let (mut at, mut is_escaped) = (start, false);
        loop {
            match bytes.get(at)? {
                b'"' => return Some((at, is_escaped)),
                b'\\' => {
                    is_escaped = true;
                    at += escape_bytes(bytes, at)?;
                }
                0..0x20 => return None,
                _ => at += 1,
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_is_told() {
        for length in [0, 1, 7, 8, 9, 63, 64, 65, 66, 70, 127, 128, 130, 200] {
            let text: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).chain(*b"\" , \"next\" ").collect();
            for place in 0..length {
                for sign in (0..=255).filter(|sign| *sign < 0x24 || *sign == b'\\' || *sign > 0x7d) {
                    for behind in [b'n', b'"', b'\\', b'u', b'x'] {
                        let mut text = text.clone();
                        text[place] = sign;
                        if sign == b'\\' && place + 1 < length {
                            text[place + 1] = behind;
                        }
                        let told = slowly(&text, 0);
                        assert_eq!(end_of_string(&text, 0), told, "{length} {place} {sign}");
                        assert_eq!(end_of_long(&text, 0), told, "{length} {place} {sign}");
                    }
                }
            }
        }
    }

    #[test]
    fn escapes_may_stand_anywhere() {
        for before in (0..30).chain(50..70).chain(120..140).chain(376..392) {
            for escape in ["\\\\", "\\\"", "\\u00e9", "\\n", "\\\\\\\\\\\"", "\\u00g9", "\\u00"] {
                for after in [0, 3, 70] {
                    let text = format!("{}{escape}{}\" and \"", "x".repeat(before), "y".repeat(after));
                    assert_eq!(end_of_string(text.as_bytes(), 0), slowly(text.as_bytes(), 0), "{text}");
                }
            }
        }
        assert_eq!(end_of_string(b"never", 0), None);
        assert_eq!(end_of_string(b"", 0), None);
        assert_eq!(end_of_string(b"ends in \\", 0), None);
    }

    #[test]
    fn a_sign_is_found_wherever_it_stands() {
        for length in 0..40 {
            let text = vec![b'a'; length];
            assert!(!has_sign(&text), "{length}");
            for place in 0..length {
                for byte in 0..=255 {
                    let mut text = text.clone();
                    text[place] = byte;
                    assert_eq!(
                        has_sign(&text),
                        byte < 0x20 || byte == b'"' || byte == b'\\',
                        "{length} {place} {byte}"
                    );
                }
            }
        }
    }
}
