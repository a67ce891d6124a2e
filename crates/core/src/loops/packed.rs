//! Records as bytes: what is kept of a run lies packed, and is spread out only while it is looked at.
//!
//! A hundred thousand runs are kept at once. Small numbers take one byte, hashes as many as telling apart needs.
//! Bytes that end too early read as zeros: they were written by this process, so there is nobody to report to. Those that
//! come from elsewhere are written down anew and compared: what was cut or changed comes out differently.

use super::{Mode, PromptScope};
use crate::time::Timestamp;

/// Room for a record comes in these steps. Records of all sizes that grow byte by byte would leave the allocator with
/// holes that fit nobody.
const GRAIN: usize = 16;
/// What allocators put before each piece: with it, a record fills whole grains.
const HEAD: usize = 8;
/// They give no less.
const LEAST: usize = 2 * GRAIN - HEAD;

/// The bytes of a record that changes at every step. The last byte says how many at the end, itself included, are only
/// room. Without any there is nothing at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept(Box<[u8]>);

impl Kept {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.len()]
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len()
    }

    /// Writes it anew.
    pub(super) fn set(&mut self, bytes: &[u8]) {
        self.shift(self.len(), bytes);
    }

    /// Takes bytes from the front, and adds others behind.
    pub(super) fn shift(&mut self, gone: usize, new: &[u8]) {
        let stays = gone..self.len();
        let length = stays.len() + new.len();
        if length == 0 {
            self.0 = Box::default();
            return;
        }
        let room = ((length + 1 + HEAD).next_multiple_of(GRAIN) - HEAD).max(LEAST);
        let start = stays.len();
        if self.0.len() < room || self.0.len() > room + GRAIN {
            let mut bytes = vec![0; room].into_boxed_slice();
            bytes[..start].copy_from_slice(&self.0[stays]);
            self.0 = bytes;
        } else {
            self.0.copy_within(stays, 0);
        }
        self.0[start..length].copy_from_slice(new);
        let left = self.0.len() - length;
        if let Some(last) = self.0.last_mut() {
            *last = left as u8;
        }
    }

    fn len(&self) -> usize {
        self.0.len() - self.0.last().map_or(0, |left| usize::from(*left))
    }
}

/// 32 bits of a hash. Records of one run are few: chance does not make two of them meet.
pub(super) fn narrow(hash: u64) -> u32 {
    (hash as u32).wrapping_add((hash >> 32) as u32)
}

/// Writes a number; small ones take one byte.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes a number that may be negative.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_number(bytes, (number << 1 ^ number >> 63) as u64);
}

/// Whether a moment that was read can have been: between far back and far ahead there is room to reckon.
pub(super) fn is_plausible(at: Timestamp) -> bool {
    at.0.unsigned_abs() < 1 << 52
}

/// Writes bytes behind their length.
pub(super) fn put_piece(bytes: &mut Vec<u8>, piece: &[u8]) {
    put_number(bytes, piece.len() as u64);
    bytes.extend_from_slice(piece);
}

/// Writes up to eight facts into one byte, the first lowest.
pub(super) fn bits<const N: usize>(facts: [bool; N]) -> u8 {
    facts.iter().rev().fold(0, |bits, fact| bits << 1 | u8::from(*fact))
}

/// Writes an ascending list of at most 127 numbers without repetitions, behind its length and a mark.
///
/// Numbers are told by their gaps, in Golomb-Rice code: as many bits as a usual gap needs, and above them how often that
/// many were not enough.
pub(super) fn put_ascending(bytes: &mut Vec<u8>, numbers: &[u16], mark: bool) {
    debug_assert!(numbers.len() < 0x80);
    bytes.push((numbers.len() as u8) << 1 | u8::from(mark));
    let Some(last) = numbers.last() else { return };
    let width = (u32::from(*last) / numbers.len() as u32).max(1).ilog2();
    bytes.push(width as u8);
    let (mut bits, mut filled, mut before) = (0_u64, 0, 0);
    for number in numbers {
        let gap = u64::from(number - before);
        before = *number;
        for _ in 0..gap >> width {
            bits |= 1 << filled;
            filled += 1;
            flush(bytes, &mut bits, &mut filled);
        }
        bits |= (gap & ((1 << width) - 1)) << (filled + 1);
        filled += 1 + width;
        flush(bytes, &mut bits, &mut filled);
    }
    if filled > 0 {
        bytes.push(bits as u8);
    }
}

/// Writes the bits that fill whole bytes.
fn flush(bytes: &mut Vec<u8>, bits: &mut u64, filled: &mut u32) {
    while *filled >= 8 {
        bytes.push(*bits as u8);
        *bits >>= 8;
        *filled -= 8;
    }
}

/// Reads what was written, in the same order.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next bytes, or as many as there are.
    pub(super) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    #[inline]
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    #[inline]
    pub(super) fn two(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    #[inline]
    pub(super) fn four(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    #[inline]
    pub(super) fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 63 {
                return number;
            }
        }
    }

    /// A number of 32 bits; None where it is larger.
    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()).ok()
    }

    /// How many there are of something; None where that is more than may be.
    pub(super) fn count(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.number()).ok().filter(|count| *count <= most)
    }

    pub(super) fn eight(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A mode, written as its number.
    pub(super) fn mode(&mut self) -> Option<Mode> {
        let number = self.byte();
        [Mode::Off, Mode::Shadow, Mode::Enforce].into_iter().find(|mode| *mode as u8 == number)
    }

    /// What "the prompt" is, written as a number.
    pub(super) fn scope(&mut self) -> Option<PromptScope> {
        let number = self.byte();
        [PromptScope::Turn, PromptScope::LastUserMessage].into_iter().find(|scope| *scope as u8 == number)
    }

    /// Bytes behind their length.
    pub(super) fn piece(&mut self) -> &'a [u8] {
        let length = usize::try_from(self.number()).unwrap_or(usize::MAX);
        self.take(length)
    }

    #[inline]
    pub(super) fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }

    /// An ascending list, into a place that has room for it; how many there are, and their mark.
    #[inline]
    pub(super) fn ascending(&mut self, into: &mut [u16]) -> (usize, bool) {
        let head = self.byte();
        let count = usize::from(head >> 1).min(into.len());
        if count == 0 {
            return (0, head & 1 == 1);
        }
        let width = u32::from(self.byte()).min(15);
        let (list, mut at) = (self.0, 0);
        let (mut bits, mut filled, mut number) = (0_u64, 0, 0_u16);
        for place in &mut into[..count] {
            let mut gap = 0_u16;
            loop {
                while filled <= 48
                    && let Some(byte) = list.get(at)
                {
                    bits |= u64::from(*byte) << filled;
                    filled += 8;
                    at += 1;
                }
                let ones = bits.trailing_ones().min(filled);
                gap = gap.saturating_add(u16::try_from(u64::from(ones) << width).unwrap_or(u16::MAX));
                bits >>= ones;
                filled -= ones;
                if filled > width || at == list.len() {
                    break;
                }
            }
            gap = gap.saturating_add((bits >> 1) as u16 & ((1 << width) - 1));
            let used = (width + 1).min(filled);
            bits >>= used;
            filled -= used;
            // Bytes that nobody wrote must come out in order, too.
            number = number.saturating_add(gap);
            *place = number;
        }
        // What was read too far belongs to what follows.
        self.0 = &list[at - (filled / 8) as usize..];
        (count, head & 1 == 1)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk() else {
            self.0 = &[];
            return [0; N];
        };
        self.0 = rest;
        *first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u64>(), signed in any::<i64>(), small in 0..0x80_u64) {
            let mut bytes = Vec::new();
            put_number(&mut bytes, small);
            prop_assert_eq!(bytes.len(), 1);
            put_number(&mut bytes, number);
            put_signed(&mut bytes, signed);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!((reader.number(), reader.number(), reader.signed()), (small, number, signed));
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn lists_come_back(numbers in prop::collection::btree_set(any::<u16>(), 0..=127), mark in any::<bool>()) {
            let numbers: Vec<u16> = numbers.into_iter().collect();
            let mut bytes = Vec::new();
            put_ascending(&mut bytes, &numbers, mark);
            put_ascending(&mut bytes, &[7, 300], !mark);
            let mut into = [0; 127];
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.ascending(&mut into), (numbers.len(), mark));
            prop_assert_eq!(&into[..numbers.len()], &numbers[..]);
            prop_assert_eq!((reader.ascending(&mut into), into[0], into[1]), ((2, !mark), 7, 300));
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn lists_that_nobody_wrote_come_out_in_order(
            width in any::<u8>(), bytes in prop::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 0..200),
        ) {
            let bytes = [&[0xfe, width][..], &bytes].concat();
            let mut into = [0; 127];
            let (count, _) = Reader::new(&bytes).ascending(&mut into);
            prop_assert!(into[..count].is_sorted());
            put_ascending(&mut Vec::new(), &into[..count], false);
        }
    }

    proptest! {
        #[test]
        fn a_record_is_kept_in_little_more_room(pieces in prop::collection::vec((0..40_usize, 0..40_usize), 1..40)) {
            let (mut kept, mut wanted) = (Kept::default(), Vec::new());
            for (gone, new) in pieces {
                let gone = gone.min(wanted.len());
                let new = vec![new as u8; new];
                wanted.drain(..gone);
                wanted.extend_from_slice(&new);
                kept.shift(gone, &new);
                prop_assert_eq!(kept.bytes(), &wanted[..]);
                prop_assert!(kept.heap_bytes() <= (wanted.len() + 1).max(LEAST) + 2 * GRAIN);
                prop_assert_eq!(kept.heap_bytes() == 0, wanted.is_empty());
            }
        }
    }

    #[test]
    fn a_record_fills_its_room_to_the_last_byte_but_one() {
        let room_of = |length: usize| {
            let mut kept = Kept::default();
            kept.set(&vec![1; length]);
            assert_eq!(kept.bytes().len(), length);
            kept.heap_bytes()
        };
        assert_eq!([0, 1, 23, 24, 39, 40].map(room_of), [0, 24, 24, 40, 40, 56]);
    }

    #[test]
    fn what_ends_too_early_reads_as_zeros() {
        let mut reader = Reader::new(&[7]);
        assert_eq!((reader.four(), reader.two(), reader.number(), reader.byte()), (0, 0, 0, 0));
        let mut into = [9; 4];
        assert_eq!(Reader::new(&[3 << 1]).ascending(&mut into), (3, false));
        assert_eq!(into, [0, 0, 0, 9]);
    }
}
