//! 64 bytes as bits: which of them are letters, digits, and so on.

use wide::{CmpEq, CmpGt, CmpLt, i8x16, u8x16};

/// How many bytes make a block.
pub(super) const BLOCK: usize = 64;

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
}

impl Masks {
    /// Of the block that begins at `at`. What is behind the end counts as zeros.
    #[inline]
    pub(super) fn at(text: &[u8], at: usize) -> Masks {
        match text.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
            Some(block) => Masks::of(block),
            None => Masks::of_the_last(text.get(at..).unwrap_or_default()),
        }
    }

    #[inline]
    fn of(block: &[u8; BLOCK]) -> Masks {
        let mut masks = Masks::default();
        let (lanes, _) = block.as_chunks::<16>();
        for (place, lane) in lanes.iter().enumerate() {
            // With a sign: that is how the processor compares, and it puts what is beyond ASCII below all else.
            let bytes = i8x16::new(lane.map(u8::cast_signed));
            let is = |byte: u8| bytes.cmp_eq(i8x16::splat(byte.cast_signed()));
            let letter = is_within(bytes | i8x16::splat(0x20), b'a', 26);
            let digit = is_within(bytes, b'0', 10);
            let run = bytes.cmp_gt(i8x16::splat(b'*'.cast_signed()));
            let bits = |lane: i8x16| u64::from(lane.move_mask() as u16) << (16 * place);
            masks.letter |= bits(letter);
            masks.digit |= bits(digit);
            masks.run |= bits(run);
            masks.sign |= bits(is(b'@'));
            masks.backslash |= bits(is(b'\\'));
        }
        masks
    }

    #[cold]
    fn of_the_last(rest: &[u8]) -> Masks {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        Masks::of(&block)
    }
}

/// Which bytes are one of `count` from `first` on: those are moved to the least numbers there are.
#[inline]
fn is_within(bytes: i8x16, first: u8, count: u8) -> i8x16 {
    (bytes - i8x16::splat((first ^ 0x80).cast_signed())).cmp_lt(i8x16::splat((0x80 | count).cast_signed()))
}

/// Unsigned, which the processor's comparison is not.
#[inline]
pub(super) fn is_at_most(bytes: u8x16, most: u8) -> u8x16 {
    bytes.min(u8x16::splat(most)).cmp_eq(bytes)
}

#[cfg(test)]
mod tests {
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
        }
    }

    #[test]
    fn every_byte_is_told_as_it_is() {
        for byte in 0..=255 {
            let mut block = [b' '; BLOCK];
            for place in 0..BLOCK {
                block[place] = byte;
                assert_eq!(Masks::of(&block), slowly(&block), "{byte} at {place}");
                block[place] = b'\\'.wrapping_add(byte);
            }
        }
    }

    #[test]
    fn behind_the_end_is_nothing() {
        assert_eq!(Masks::at(b"a1@", 1), Masks { digit: 1, run: 3, sign: 2, ..Masks::default() });
        assert_eq!(Masks::at(b"a1@", 9), Masks::default());
    }
}
