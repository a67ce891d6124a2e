//! Which bytes of a text are of a kind, 64 at a time as the bits of a number.
//!
//! Where words end cannot be foreseen, and a wrong guess of the processor costs more than all else: bits are searched
//! without guessing.

use std::sync::LazyLock;

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// For each of the 64 bytes from `from` on, whether it is of the kind, the first in the lowest bit. 0 behind the end.
#[inline]
pub(crate) fn bits(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> u64 {
    let rest = bytes.get(from..).unwrap_or_default();
    if let Some(block) = rest.first_chunk::<BLOCK>() {
        return bits_of(block, is);
    }
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    bits_of(&block, is) & ((1 << rest.len()) - 1)
}

/// White space of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spaces {
    /// White space of ASCII.
    pub(crate) any: u64,
    /// The space itself.
    pub(crate) plain: u64,
}

/// What the words of a block are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// Letters, digits and underscores of ASCII.
    pub(crate) part: u64,
    /// Digits.
    pub(crate) digit: u64,
    /// Letters that are upper case.
    pub(crate) upper: u64,
}

/// What is known of a block, many bytes at once.
pub(crate) trait Masks: Copy + Default {
    /// Behind the end of a text there are zeros: they are of no kind.
    fn of<S: Simd>(bytes: u8x64<S>) -> Self;
}

impl Masks for Spaces {
    #[inline(always)]
    fn of<S: Simd>(bytes: u8x64<S>) -> Spaces {
        let plain = bytes.simd_eq(b' ');
        // Of those below, the vertical tab is none.
        let others = (bytes - b'\t').simd_lt(5) & !bytes.simd_eq(0x0b);
        Spaces { any: (plain | others).to_bitmask(), plain: plain.to_bitmask() }
    }
}

impl Masks for Words {
    #[inline(always)]
    fn of<S: Simd>(bytes: u8x64<S>) -> Words {
        let digit = (bytes - b'0').simd_lt(10);
        let letter = ((bytes | 0x20) - b'a').simd_lt(26);
        let part = digit | letter | bytes.simd_eq(b'_');
        let upper = (bytes - b'A').simd_lt(26);
        Words { part: part.to_bitmask(), digit: digit.to_bitmask(), upper: upper.to_bitmask() }
    }
}

/// Blocks that are told at once.
pub(crate) const ROW: usize = 8;

/// What is known of the blocks of a text from here on, as many as there are and a row has. Gives how many.
#[inline]
pub(crate) fn row<M: Masks>(bytes: &[u8], from: usize, into: &mut [M; ROW]) -> usize {
    static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);
    let rest = bytes.get(from..).unwrap_or_default();
    dispatch!(*LEVEL, simd => row_with(simd, rest, into));
    rest.len().div_ceil(BLOCK).min(ROW)
}

#[inline(always)]
fn row_with<S: Simd, M: Masks>(simd: S, bytes: &[u8], into: &mut [M; ROW]) {
    let (whole, rest) = bytes.as_chunks::<BLOCK>();
    for (masks, block) in into.iter_mut().zip(whole) {
        *masks = M::of(u8x64::from_slice(simd, block));
    }
    if let (Some(masks), false) = (into.get_mut(whole.len()), rest.is_empty()) {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        *masks = M::of(u8x64::from_slice(simd, &block));
    }
}

/// A letter or digit of ASCII.
#[inline]
pub(crate) fn is_alphanumeric(byte: u8) -> bool {
    is_letter(byte) | is_digit(byte)
}

/// A letter of ASCII.
#[inline]
pub(crate) fn is_letter(byte: u8) -> bool {
    (byte | 0x20).wrapping_sub(b'a') < 26
}

/// A digit of ASCII.
#[inline]
pub(crate) fn is_digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

/// Written such that the compiler takes many bytes at once.
#[inline]
fn bits_of(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut of_kind = [0_u8; BLOCK];
    for (of_kind, byte) in of_kind.iter_mut().zip(block) {
        *of_kind = u8::from(is(*byte));
    }
    // Gathers the lowest bits of eight bytes in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = of_kind.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| bits << 8 | u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_space(byte: u8) -> bool {
        byte.is_ascii_whitespace()
    }

    #[test]
    fn each_byte_has_its_bit() {
        let text: Vec<u8> = (0..=255).chain(*b"tail 9").collect();
        for from in 0..=text.len() + 1 {
            let digits = bits(&text, from, is_digit);
            let words = bits(&text, from, is_alphanumeric);
            let spaces = bits(&text, from, is_space);
            for bit in 0..BLOCK {
                let byte = text.get(from + bit).copied().unwrap_or_default();
                assert_eq!(digits >> bit & 1 == 1, byte.is_ascii_digit(), "{from} {bit}");
                let is_space = byte.is_ascii_whitespace() && from + bit < text.len();
                assert_eq!(spaces >> bit & 1 == 1, is_space, "{from} {bit}");
                assert_eq!(words >> bit & 1 == 1, byte.is_ascii_alphanumeric(), "{from} {bit}");
            }
        }
    }

    #[test]
    fn rows_tell_of_each_byte_what_it_is() {
        let text: Vec<u8> = (0..=255).chain((0..300_usize).map(|at| (at * 7) as u8)).chain(*b"tail 9_Z").collect();
        let (mut spaces, mut words) = ([Spaces::default(); ROW], [Words::default(); ROW]);
        for end in (0..=text.len()).step_by(5).chain([64, 512, 513]) {
            let text = &text[..end];
            for from in [0, 1, 100, 511, 512, 600] {
                let blocks = row(text, from, &mut spaces);
                assert_eq!(row(text, from, &mut words), blocks);
                assert_eq!(blocks, end.saturating_sub(from).div_ceil(BLOCK).min(ROW));
                for (nth, (spaces, words)) in spaces[..blocks].iter().zip(&words[..blocks]).enumerate() {
                    let at = from + nth * BLOCK;
                    let any = bits(text, at, is_space);
                    assert_eq!(*spaces, Spaces { any, plain: bits(text, at, |byte| byte == b' ') });
                    let part = bits(text, at, |byte| is_alphanumeric(byte) | (byte == b'_'));
                    let (digit, upper) = (bits(text, at, is_digit), bits(text, at, |byte| byte.is_ascii_uppercase()));
                    assert_eq!(*words, Words { part, digit, upper });
                }
            }
        }
    }
}
