//! 64 bytes as bits: which of them are letters, digits, and so on.

use fearless_simd::prelude::*;
use fearless_simd::{i8x64, u8x64};

use super::windows::{WINDOW, WindowTables};

/// How many bytes make a block.
pub(super) const BLOCK: usize = 64;
/// How many are looked at for one: its own, and what a window needs that begins at its last.
const SEEN: usize = BLOCK + WINDOW - 1;

/// Bit `n` speaks of byte `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) letter: u64,
    pub(super) digit: u64,
    /// From `+` on in the ASCII table: letters, digits, `+-._/:=` and some more; no blanks, no quotes, no brackets.
    pub(super) run: u64,
    /// `@`
    pub(super) sign: u64,
    /// `\`
    pub(super) backslash: u64,
    /// `.`
    pub(super) dot: u64,
    /// Where the window of a word that is searched for may begin.
    pub(super) window: u64,
}

/// Of the block that begins at `at`. What is behind the end counts as zeros.
#[inline(always)]
pub(super) fn masks_at<S: Simd>(simd: S, text: &[u8], at: usize, tables: &WindowTables<S>) -> Masks {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<SEEN>() {
        Some(seen) => of(simd, seen, tables),
        None => {
            let mut seen = [0; SEEN];
            let length = rest.len().min(SEEN);
            seen[..length].copy_from_slice(&rest[..length]);
            of(simd, &seen, tables)
        }
    }
}

#[inline(always)]
fn of<S: Simd>(simd: S, seen: &[u8; SEEN], tables: &WindowTables<S>) -> Masks {
    // With a sign: that is how most processors compare, and it puts what is beyond ASCII below all else.
    let bytes: i8x64<S> = u8x64::from_slice(simd, &seen[..BLOCK]).bitcast();
    Masks {
        letter: is_within(bytes | 0x20, b'a', 26),
        digit: is_within(bytes, b'0', 10),
        run: bytes.simd_gt(b'*'.cast_signed()).to_bitmask(),
        sign: is(bytes, b'@'),
        backslash: is(bytes, b'\\'),
        dot: is(bytes, b'.'),
        window: tables.places(simd, seen),
    }
}

/// Which bytes are this one.
#[inline(always)]
fn is<S: Simd>(bytes: i8x64<S>, byte: u8) -> u64 {
    bytes.simd_eq(byte.cast_signed()).to_bitmask()
}

/// Which bytes are one of `count` from `first` on: those are moved to the least numbers there are.
#[inline(always)]
fn is_within<S: Simd>(bytes: i8x64<S>, first: u8, count: u8) -> u64 {
    (bytes - (first ^ 0x80).cast_signed()).simd_lt((0x80 | count).cast_signed()).to_bitmask()
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};

    use super::super::tests::levels;
    use super::super::windows::Windows;
    use super::*;

    /// The same, said byte by byte.
    fn slowly(block: &[u8; BLOCK]) -> Masks {
        let bits = |is: fn(u8) -> bool| (0..BLOCK).filter(|at| is(block[*at])).fold(0, |bits, at| bits | 1 << at);
        Masks {
            letter: bits(|byte| byte.is_ascii_alphabetic()),
            digit: bits(|byte| byte.is_ascii_digit()),
            run: bits(|byte| byte >= b'+' && byte.is_ascii()),
            sign: bits(|byte| byte == b'@'),
            backslash: bits(|byte| byte == b'\\'),
            dot: bits(|byte| byte == b'.'),
            window: 0,
        }
    }

    fn told(level: Level, text: &[u8], start: usize) -> Masks {
        let windows = Windows::default();
        dispatch!(level, simd => masks_at(simd, text, start, &WindowTables::load(simd, &windows)))
    }

    #[test]
    fn every_byte_is_told_as_it_is() {
        for level in levels() {
            for byte in 0..=255 {
                let mut block = [b' '; BLOCK];
                for place in 0..BLOCK {
                    block[place] = byte;
                    assert_eq!(told(level, &block, 0), slowly(&block), "{byte} at {place}");
                    block[place] = b'\\'.wrapping_add(byte);
                }
            }
        }
    }

    #[test]
    fn behind_the_end_is_nothing() {
        let level = Level::new();
        assert_eq!(told(level, b"a1@", 1), Masks { digit: 1, run: 3, sign: 2, ..Masks::default() });
        assert_eq!(told(level, b"a1@", 9), Masks::default());
    }
}
