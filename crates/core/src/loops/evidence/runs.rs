//! The numbers and words of a text in lower case, one after the other.

use crate::blocks::{BLOCK, bits, is_digit, is_letter};

/// Goes through a text. A run is made of digits, or of letters, underscores and apostrophes.
#[derive(Default)]
pub(super) struct Runs {
    at: usize,
    block: usize,
    /// Which bytes of the block are digits, and which belong to words.
    digits: u64,
    words: u64,
    has_block: bool,
}

impl Runs {
    /// Where the next run begins and ends. To be given the same text at every call.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        while self.at < bytes.len() {
            if !self.has_block || self.at >= self.block + BLOCK {
                self.block = self.at;
                self.has_block = true;
                self.digits = bits(bytes, self.at, is_digit);
                self.words = bits(bytes, self.at, is_in_word);
            }
            let behind = (self.digits | self.words) >> (self.at - self.block);
            if behind == 0 {
                self.at = self.block + BLOCK;
                continue;
            }
            let start = self.at + behind.trailing_zeros() as usize;
            let offset = start - self.block;
            let of_kind = if self.digits >> offset & 1 == 1 { self.digits } else { self.words };
            let others = !of_kind >> offset;
            self.at = if others == 0 { end_of(bytes, start) } else { start + others.trailing_zeros() as usize };
            return Some((start, self.at));
        }
        None
    }
}

#[inline]
fn is_in_word(byte: u8) -> bool {
    is_letter(byte) | (byte == b'_') | (byte == b'\'')
}

/// The end of a run that reaches into the next block.
fn end_of(bytes: &[u8], start: usize) -> usize {
    let is_number = is_digit(bytes[start]);
    let goes_on = |byte: &&u8| if is_number { is_digit(**byte) } else { is_in_word(**byte) };
    start + bytes[start..].iter().take_while(goes_on).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_found_wherever_they_lie(text in "([a-z_']{1,70}|[0-9]{1,70}|[ .é]{1,70}){0,9}") {
            let bytes = text.as_bytes();
            let (mut at, mut runs, mut wanted) = (0, Runs::default(), Vec::new());
            while at < bytes.len() {
                let end = end_of(bytes, at);
                if end > at {
                    wanted.push((at, end));
                }
                at = end.max(at + 1);
            }
            let found: Vec<_> = std::iter::from_fn(|| runs.next(bytes)).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}
