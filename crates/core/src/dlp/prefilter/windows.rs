//! Four bytes of each word that is searched for, and a table that tells where one of them may begin.
//!
//! Each byte has a row of bits for each of the four places: bit `n` says whether a word of bucket `n` may have it there. A row is looked
//! up by the halves of its byte, so a vector of bytes takes two look-ups a place; where the four rows have a bit in common, a word may
//! stand. More than eight words share buckets, and then take some bytes for each other's: they are put where that is rare.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, u8x16, u8x64};

/// So many bytes of a word are looked at.
pub(super) const WINDOW: usize = 4;
const BUCKETS: usize = 8;
/// All words find their place in one round; more of them find better ones.
const ROUNDS: usize = 4;

/// What may stand at one place: bytes whose lower and whose upper halves are among these. A bit for each half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Halves {
    low: u16,
    high: u16,
}

type Shape = [Halves; WINDOW];

/// The rows of bits, by the halves of bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Windows {
    low: [[u8; 16]; WINDOW],
    high: [[u8; 16]; WINDOW],
}

/// Which words are searched for, and which of their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) text: &'w [u8],
    /// Not in any case, but as it is.
    pub(super) is_exact: bool,
}

impl Windows {
    /// For these words; and how many bytes of each stand before its window.
    pub(super) fn new(words: &[Wanted<'_>]) -> (Windows, Vec<usize>) {
        let mut places: Vec<Option<(usize, usize)>> = vec![None; words.len()];
        for _ in 0..ROUNDS {
            for (word, wanted) in words.iter().enumerate() {
                places[word] = None;
                let buckets: [Shape; BUCKETS] = std::array::from_fn(|bucket| shape_of(bucket, words, &places));
                let skips = 0..=wanted.text.len().saturating_sub(WINDOW);
                let choices = skips.flat_map(|skipped| (0..BUCKETS).map(move |bucket| (bucket, skipped)));
                places[word] = choices.min_by_key(|&(bucket, skipped)| {
                    let together = united(&buckets[bucket], &shape(wanted, skipped));
                    frequency(&together) - frequency(&buckets[bucket])
                });
            }
        }
        let mut windows = Windows::default();
        for bucket in 0..BUCKETS {
            for (place, halves) in shape_of(bucket, words, &places).iter().enumerate() {
                for half in 0..16 {
                    windows.low[place][half] |= u8::from(halves.low >> half & 1 == 1) << bucket;
                    windows.high[place][half] |= u8::from(halves.high >> half & 1 == 1) << bucket;
                }
            }
        }
        (windows, places.iter().map(|place| place.map_or(0, |(_, skipped)| skipped)).collect())
    }
}

/// What the words of a bucket may have in their windows.
fn shape_of(bucket: usize, words: &[Wanted<'_>], places: &[Option<(usize, usize)>]) -> Shape {
    let mut all = Shape::default();
    for (word, place) in words.iter().zip(places) {
        if let Some((_, skipped)) = place.filter(|(its, _)| *its == bucket) {
            all = united(&all, &shape(word, skipped));
        }
    }
    all
}

fn united(one: &Shape, other: &Shape) -> Shape {
    std::array::from_fn(|place| Halves {
        low: one[place].low | other[place].low,
        high: one[place].high | other[place].high,
    })
}

/// What a word has in the window behind so many of its bytes. Behind its end stands anything.
fn shape(word: &Wanted<'_>, skipped: usize) -> Shape {
    std::array::from_fn(|place| match word.text.get(skipped + place) {
        None => Halves { low: u16::MAX, high: u16::MAX },
        Some(&byte) => {
            let half = |byte: u8| Halves { low: 1 << (byte & 15), high: 1 << (byte >> 4) };
            let (small, large) = match word.is_exact {
                true => (half(byte), half(byte)),
                false => (half(byte.to_ascii_lowercase()), half(byte.to_ascii_uppercase())),
            };
            Halves { low: small.low | large.low, high: small.high | large.high }
        }
    })
}

/// How often such a window is met, in parts of some large number.
fn frequency(shape: &Shape) -> u64 {
    let at = |halves: &Halves| -> u64 {
        let set = |bits: u16| (0..16_u8).filter(move |half| bits >> half & 1 == 1);
        set(halves.high).flat_map(|high| set(halves.low).map(move |low| weight(high << 4 | low))).sum()
    };
    shape.iter().map(at).product()
}

/// How frequent a byte is in texts and programs, roughly; all together are about a thousand.
fn weight(byte: u8) -> u64 {
    match byte {
        b' ' => 150,
        b'e' => 80,
        b'a' | b'i' | b'n' | b'o' | b'r' | b's' | b't' => 50,
        b'c' | b'd' | b'h' | b'l' | b'm' | b'p' | b'u' => 25,
        b'.' | b'-' | b'/' | b'_' | b'"' | b'\\' | b'\n' | b'b' | b'f' | b'g' | b'v' | b'w' | b'y' => 10,
        b'0'..=b'9' | b'A'..=b'Z' | b'k' | b'(' | b')' | b',' | b':' | b'=' | b'\'' => 5,
        b'!'..=0x7f => 2,
        _ => 1,
    }
}

/// [`Windows`] as vectors.
pub(super) struct WindowTables<S: Simd> {
    low: [u8x64<S>; WINDOW],
    high: [u8x64<S>; WINDOW],
}

impl<S: Simd> WindowTables<S> {
    #[inline(always)]
    pub(super) fn load(simd: S, windows: &Windows) -> WindowTables<S> {
        WindowTables { low: vectors(simd, &windows.low), high: vectors(simd, &windows.high) }
    }

    /// Where in the first 64 bytes a word's window may begin.
    #[inline(always)]
    pub(super) fn places<const SEEN: usize>(&self, simd: S, seen: &[u8; SEEN]) -> u64 {
        let (first, second) = (self.row(simd, 0, seen), self.row(simd, 1, seen));
        let (third, fourth) = (self.row(simd, 2, seen), self.row(simd, 3, seen));
        !((first & second) & (third & fourth)).simd_eq(0).to_bitmask()
    }

    /// The rows for one place of the windows.
    #[inline(always)]
    fn row<const SEEN: usize>(&self, simd: S, place: usize, seen: &[u8; SEEN]) -> u8x64<S> {
        let bytes = u8x64::from_slice(simd, &seen[place..place + 64]);
        let low = self.low[place].swizzle_dyn_within_blocks(bytes & 15);
        low & self.high[place].swizzle_dyn_within_blocks(bytes >> 4)
    }
}

#[inline(always)]
fn vectors<S: Simd>(simd: S, rows: &[[u8; 16]; WINDOW]) -> [u8x64<S>; WINDOW] {
    [vector(simd, &rows[0]), vector(simd, &rows[1]), vector(simd, &rows[2]), vector(simd, &rows[3])]
}

#[inline(always)]
fn vector<S: Simd>(simd: S, row: &[u8; 16]) -> u8x64<S> {
    u8x64::block_splat(u8x16::from_slice(simd, row))
}
