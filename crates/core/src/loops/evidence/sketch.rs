//! A small picture of which words a text has.

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::EVIDENCE_WORDS;
use crate::loops::packed::{Reader, put_ascending};

/// Bits of a word's hash: so many that a word seldom passes for another one, and so few that a gap takes a byte or two.
const WORD_BITS: u32 = 13;
/// Words kept of a text that has more than [`EVIDENCE_WORDS`]: a sample says no more for being larger.
const SAMPLED_WORDS: usize = 16;
/// No word.
const NONE: u16 = u16::MAX;

/// The words of a text with the smallest hashes. A text of few words is kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sketch {
    /// Ascending, [`NONE`] behind the last.
    words: [u16; EVIDENCE_WORDS],
    len: u8,
    /// There were more words.
    is_cut: bool,
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch { words: [NONE; EVIDENCE_WORDS], len: 0, is_cut: false }
    }
}

/// The words of a text, while it is read: one bit for each hash that there is.
pub(super) struct Gathered {
    hashes: [u64; HASHES],
    /// Which of these have a bit.
    filled: [u64; HASHES / u64::BITS as usize],
}

const HASHES: usize = (1 << WORD_BITS) / u64::BITS as usize;

impl Gathered {
    pub(super) fn new() -> Gathered {
        Gathered { hashes: [0; HASHES], filled: [0; HASHES / u64::BITS as usize] }
    }

    /// Adds a word.
    #[inline]
    pub(super) fn add(&mut self, word: &[u8]) {
        let hash = (xxh3_64(word) >> (64 - WORD_BITS)) as usize;
        let place = hash / u64::BITS as usize;
        self.hashes[place] |= 1 << (hash % u64::BITS as usize);
        self.filled[place / u64::BITS as usize] |= 1 << (place % u64::BITS as usize);
    }

    /// The words with the smallest hashes.
    pub(super) fn sketch(&self) -> Sketch {
        let mut sketch = Sketch::default();
        let mut len = 0;
        'all: for (row, mut filled) in self.filled.into_iter().enumerate() {
            while filled != 0 {
                let place = row * u64::BITS as usize + filled.trailing_zeros() as usize;
                filled &= filled - 1;
                let mut hashes = self.hashes[place];
                while hashes != 0 {
                    if len == EVIDENCE_WORDS {
                        sketch.is_cut = true;
                        break 'all;
                    }
                    sketch.words[len] = (place as u32 * u64::BITS + hashes.trailing_zeros()) as u16;
                    hashes &= hashes - 1;
                    len += 1;
                }
            }
        }
        sketch.len = len as u8;
        sketch
    }
}

impl Sketch {
    /// Which share of the words of both texts they have in common; an estimate where there are many.
    pub(crate) fn likeness(&self, other: &Sketch) -> f64 {
        let (a, b) = (self.words(), other.words());
        if a.is_empty() && b.is_empty() {
            return 1.0;
        }
        // Beyond what a cut sketch reaches, nothing is known.
        let reach = |sketch: &Sketch| if sketch.is_cut { sketch.words().last().copied() } else { None };
        let reach = reach(self).unwrap_or(u16::MAX).min(reach(other).unwrap_or(u16::MAX));
        let (mut i, mut j, mut common, mut all) = (0, 0, 0_u32, 0_u32);
        loop {
            let x = self.words.get(i).copied().unwrap_or(NONE);
            let y = other.words.get(j).copied().unwrap_or(NONE);
            let next = x.min(y);
            if next > reach || next == NONE {
                break;
            }
            i += usize::from(x == next);
            j += usize::from(y == next);
            common += u32::from(x == y);
            all += 1;
        }
        f64::from(common) / f64::from(all.max(1))
    }

    /// Which share of this text's words is in none of the others. 1 where the text has too many words to tell.
    pub(crate) fn novelty<'a>(&self, others: impl Iterator<Item = &'a Sketch> + Clone) -> f64 {
        if self.is_cut || self.len == 0 {
            return 1.0;
        }
        let is_new = |word: &&u16| !others.clone().any(|other| other.words().binary_search(word).is_ok());
        let new = self.words().iter().filter(is_new).count();
        new as f64 / f64::from(self.len)
    }

    /// Whether the texts are short enough to tell that one has a word that the other has not.
    pub(crate) fn differs(&self, other: &Sketch) -> bool {
        !self.is_cut && !other.is_cut && self.words() != other.words()
    }

    /// Writes it down: whole where it is whole, else as a sample.
    pub(crate) fn pack(&self, bytes: &mut Vec<u8>) {
        let words = self.words();
        let kept = if self.is_cut { words.len().min(SAMPLED_WORDS) } else { words.len() };
        put_ascending(bytes, &words[..kept], self.is_cut);
    }

    /// Writes all of it down.
    pub(crate) fn pack_whole(&self, bytes: &mut Vec<u8>) {
        put_ascending(bytes, self.words(), self.is_cut);
    }

    /// Writes a sample down, for a text of which only its likeness to others will matter.
    pub(crate) fn pack_sample(&self, bytes: &mut Vec<u8>) {
        let words = self.words();
        let kept = words.len().min(SAMPLED_WORDS);
        put_ascending(bytes, &words[..kept], self.is_cut || kept < words.len());
    }

    /// Reads what was written.
    pub(crate) fn unpack(reader: &mut Reader<'_>) -> Sketch {
        let mut sketch = Sketch::default();
        let (len, is_cut) = reader.ascending(&mut sketch.words);
        (sketch.len, sketch.is_cut) = (len as u8, is_cut);
        sketch
    }

    fn words(&self) -> &[u16] {
        &self.words[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(words: impl IntoIterator<Item = usize>) -> Sketch {
        let mut gathered = Gathered::new();
        words.into_iter().for_each(|word| gathered.add(word.to_string().as_bytes()));
        gathered.sketch()
    }

    #[test]
    fn few_words_are_compared_exactly() {
        assert!((sketch(0..8).likeness(&sketch(4..12)) - 4.0 / 12.0).abs() < 1e-9);
        assert!((sketch(0..0).likeness(&sketch(0..0)) - 1.0).abs() < 1e-9);
        assert!(sketch(0..3).likeness(&sketch(0..0)) < 1e-9);
        let (a, b) = (sketch(0..4), sketch(3..6));
        assert!((sketch(2..7).novelty([&a, &b].into_iter()) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn many_words_are_estimated() {
        let estimate = sketch(0..1000).likeness(&sketch(100..1100));
        assert!((0.65..0.95).contains(&estimate), "{estimate} for 0.82");
        assert!(sketch(0..1000).likeness(&sketch(0..1000)) > 0.999);
        assert!(sketch(0..1000).likeness(&sketch(2000..3000)) < 0.2);
    }

    #[test]
    fn words_are_kept_up_to_the_bound() {
        assert!(!sketch(0..EVIDENCE_WORDS).is_cut, "at the bound");
        let past = sketch(0..EVIDENCE_WORDS + 1);
        assert!(past.is_cut && usize::from(past.len) == EVIDENCE_WORDS, "past it");
    }
}
