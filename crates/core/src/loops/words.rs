//! The words of a text as numbers, and how much two texts' words have in common.
//!
//! A word is a run of letters and digits, whatever the case; of scripts without spaces each character is one. Numbers
//! are words like others: "step 1" and "step 2" differ.

use std::ops::ControlFlow;

use super::packed::{Reader, put_ascending};
use crate::blocks::{BLOCK, bits, is_alphanumeric};
use crate::limits::SKETCH_WORDS;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits of a word in a set: a word seldom passes for another one, and most take a byte when they are packed.
const WORD_BITS: u32 = 14;
/// Bytes of a word and its space, on average.
const BYTES_OF_WORD: usize = 6;

/// One word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its hash.
    pub(super) hash: u64,
    /// A digit is in it.
    pub(super) has_digit: bool,
}

/// The distinct words of a text, or a fair sample of a bounded number of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordSet {
    /// The lowest hashes, in order.
    lowest: Box<[u16]>,
    /// No word was left out.
    is_whole: bool,
}

/// Goes through the words of a text until told to stop. Where that is said, `line1` is the same word as `line2`.
#[inline]
pub(super) fn each_word<const BLIND_TO_DIGITS: bool>(text: &str, mut take: impl FnMut(Word) -> ControlFlow<()>) {
    let bytes = text.as_bytes();
    // Where the word began that reaches into this block, and whether there is one: 0 or 1.
    let (mut start, mut is_open) = (0, 0);
    for block in (0..bytes.len()).step_by(BLOCK) {
        let in_word = bits(bytes, block, |byte| is_alphanumeric(byte) | (byte >= 0x80));
        let mut edges = in_word ^ (in_word << 1 | is_open);
        if is_open == 0 && edges != 0 {
            start = block + edges.trailing_zeros() as usize;
            edges &= edges - 1;
        }
        while edges != 0 {
            let end = block + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if take_run::<BLIND_TO_DIGITS>(text, start, end, &mut take).is_break() {
                return;
            }
            if edges != 0 {
                start = block + edges.trailing_zeros() as usize;
                edges &= edges - 1;
            }
        }
        is_open = in_word >> (BLOCK - 1);
    }
    if is_open == 1 {
        let _ = take_run::<BLIND_TO_DIGITS>(text, start, bytes.len(), &mut take);
    }
}

/// One word, or the several of a run that is not all ASCII.
#[inline]
fn take_run<const BLIND_TO_DIGITS: bool>(
    text: &str,
    start: usize,
    end: usize,
    take: &mut impl FnMut(Word) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match ascii_word::<BLIND_TO_DIGITS>(text.as_bytes(), start, end) {
        Some(word) => take(word),
        None => take_wide::<BLIND_TO_DIGITS>(&text[start..end], take),
    }
}

#[cold]
fn take_wide<const BLIND_TO_DIGITS: bool>(
    run: &str,
    take: &mut impl FnMut(Word) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut rest = run;
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let Some(first) = rest.chars().next() else { return ControlFlow::Continue(()) };
        if is_word_alone(first) {
            rest = &rest[first.len_utf8()..];
            take(Word { hash: finish(step(FACTOR, u64::from(u32::from(first)))), has_digit: false })?;
            continue;
        }
        let length = rest.find(|c: char| !c.is_alphanumeric() || is_word_alone(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        rest = after;
        let ascii = ascii_word::<BLIND_TO_DIGITS>(word.as_bytes(), 0, length);
        take(ascii.unwrap_or_else(|| wide_word::<BLIND_TO_DIGITS>(word)))?;
    }
}

impl WordSet {
    pub(super) fn new(text: &str) -> WordSet {
        // Of a long text most words will be left out: those with high hashes need not be sorted first.
        let words = text.len() / BYTES_OF_WORD;
        let share = (2 * SKETCH_WORDS) as f64 / words.max(1) as f64;
        if share < 1.0 {
            let set = WordSet::below(text, (f64::from(1 << WORD_BITS) * share) as u16);
            if set.lowest.len() == SKETCH_WORDS {
                return set;
            }
        }
        WordSet::below(text, u16::MAX)
    }

    /// The words with hashes up to this.
    fn below(text: &str, highest: u16) -> WordSet {
        let mut hashes = Vec::with_capacity(3 * SKETCH_WORDS);
        let (mut is_whole, mut highest) = (true, highest);
        // Frequent words are met here again before they are sorted out.
        let mut met = [u16::MAX; 128];
        each_word::<false>(text, |word| {
            let hash = (word.hash >> (64 - WORD_BITS)) as u16;
            let place = &mut met[hash as usize % 128];
            if *place == hash {
                return ControlFlow::Continue(());
            }
            *place = hash;
            if hash > highest {
                is_whole = false;
                return ControlFlow::Continue(());
            }
            hashes.push(hash);
            if hashes.len() == 3 * SKETCH_WORDS {
                is_whole &= keep_lowest(&mut hashes);
                if hashes.len() == SKETCH_WORDS {
                    highest = hashes[SKETCH_WORDS - 1];
                }
            }
            ControlFlow::Continue(())
        });
        is_whole &= keep_lowest(&mut hashes);
        WordSet { lowest: hashes.into_boxed_slice(), is_whole }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lowest.is_empty()
    }

    /// Words in both over words in either, 0 to 1; estimated where a set is a sample. 0 as soon as it is clear that it
    /// is not above `threshold`.
    pub(super) fn jaccard_above(&self, other: &WordSet, threshold: f64) -> f64 {
        let most = if self.is_whole && other.is_whole { usize::MAX } else { SKETCH_WORDS };
        let (a, b) = (&self.lowest, &other.lowest);
        let (mut i, mut j, mut either, mut both) = (0, 0, 0_usize, 0_usize);
        while either < most && i < a.len() && j < b.len() {
            // No branches: which is lower cannot be foreseen.
            let (x, y) = (a[i], b[j]);
            both += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
            either += 1;
            let left = (a.len() - i).min(b.len() - j);
            if ((both + left) as f64) <= threshold * (either + left).min(most) as f64 {
                return 0.0;
            }
        }
        let either = (either + a.len() - i + b.len() - j).min(most.max(either));
        if either == 0 { 0.0 } else { both as f64 / either as f64 }
    }

    /// Writes it down.
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * self.lowest.len() + 1);
        put_ascending(&mut bytes, &self.lowest, self.is_whole);
        bytes
    }

    /// Reads what was written.
    pub(super) fn unpack(bytes: &[u8]) -> WordSet {
        let mut words = [0; SKETCH_WORDS];
        let (count, is_whole) = Reader::new(bytes).ascending(&mut words);
        WordSet { lowest: words[..count].into(), is_whole }
    }
}

/// A number for all words with digits in a text, whatever their order.
pub(super) fn numbers(text: &str) -> u64 {
    let mut sum = 0_u64;
    each_word::<false>(text, |word| {
        sum = sum.wrapping_add(if word.has_digit { word.hash } else { 0 });
        ControlFlow::Continue(())
    });
    sum
}

/// Whether a text has fewer words than this.
pub(super) fn has_fewer_words(text: &str, number: usize) -> bool {
    let mut words = 0;
    each_word::<false>(text, |_| {
        words += 1;
        if words < number { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    words < number
}

/// Sorts, and keeps the lowest. False where some were left out.
fn keep_lowest(hashes: &mut Vec<u16>) -> bool {
    hashes.sort_unstable();
    hashes.dedup();
    let is_whole = hashes.len() <= SKETCH_WORDS;
    hashes.truncate(SKETCH_WORDS);
    is_whole
}

/// Scripts that write no spaces: each of their characters is taken as a word.
fn is_word_alone(char: char) -> bool {
    char >= '\u{2e80}'
}

/// The word of letters and digits that lies there; None where it is not all ASCII.
#[inline]
pub(super) fn ascii_word<const BLIND_TO_DIGITS: bool>(bytes: &[u8], start: usize, end: usize) -> Option<Word> {
    let mut eight = eight_within(bytes, start, end);
    let mut hash = step(FACTOR, eight | ((0x20 * ALL) & kept(end - start)));
    let (mut digits, mut wide) = (!eight & kept(end - start), eight);
    let mut at = start + 8;
    while at < end {
        eight = eight_within(bytes, at, end);
        digits |= !eight & kept(end - at);
        wide |= eight;
        hash = step(hash, eight | ((0x20 * ALL) & kept(end - at)));
        at += 8;
    }
    // Bit 5 set lowers letters and leaves digits; of letters and digits only digits lack bit 6.
    if wide & (0x80 * ALL) != 0 {
        return None;
    }
    let has_digit = digits & (0x40 * ALL) != 0;
    let hash = if BLIND_TO_DIGITS && has_digit { hash_masked(&bytes[start..end]) } else { finish(hash) };
    Some(Word { hash, has_digit })
}

const ALL: u64 = 0x0101_0101_0101_0101;

/// The bits of as many bytes, at most eight.
#[inline]
fn kept(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.min(8))
}

/// Up to eight bytes between here and there, which are not the same.
#[inline]
fn eight_within(bytes: &[u8], at: usize, end: usize) -> u64 {
    eight_at(bytes, at) & kept(end - at)
}

/// A word that is not all ASCII.
fn wide_word<const BLIND_TO_DIGITS: bool>(word: &str) -> Word {
    let mut hash = FACTOR;
    let (mut has_digit, mut was_digit) = (false, false);
    for char in word.chars().flat_map(char::to_lowercase) {
        let is_masked = BLIND_TO_DIGITS && char.is_numeric();
        if !(is_masked && was_digit) {
            hash = step(hash, if is_masked { 1 } else { u64::from(u32::from(char)) });
        }
        has_digit |= char.is_numeric();
        was_digit = is_masked;
    }
    Word { hash: finish(hash), has_digit }
}

/// Eight bytes from here on; zeros where the text ends.
#[inline]
fn eight_at(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    if let Some(eight) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    rest.iter().rev().fold(0, |eight, byte| eight << 8 | u64::from(*byte))
}

/// Any run of digits counts as one and the same.
fn hash_masked(word: &[u8]) -> u64 {
    let mut hash = FACTOR;
    let mut was_digit = false;
    for byte in word {
        let is_digit = byte.is_ascii_digit();
        if !(is_digit && was_digit) {
            hash = step(hash, if is_digit { 1 } else { u64::from(byte | 0x20) });
        }
        was_digit = is_digit;
    }
    finish(hash)
}

#[inline]
fn step(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(FACTOR);
    mixed ^ mixed >> 32
}

/// Spreads every bit over all others.
#[inline]
fn finish(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jaccard(a: &str, b: &str) -> f64 {
        WordSet::new(a).jaccard_above(&WordSet::new(b), -1.0)
    }

    #[test]
    fn words_are_compared_as_sets() {
        let table = [
            ("What is 2+2?", "what is 2 + 2", 1.0),
            ("step 1", "step 2", 1.0 / 3.0),
            ("a b c d", "d c b a", 1.0),
            ("", "", 0.0),
            ("ÄRGER über", "ärger ÜBER", 1.0),
            ("你好世界", "你好天界", 3.0 / 5.0),
            ("one-two—three", "one two three", 1.0),
        ];
        for (a, b, expected) in table {
            assert!((jaccard(a, b) - expected).abs() < 1e-9, "{a:?} {b:?} {}", jaccard(a, b));
        }
    }

    #[test]
    fn sets_are_exact_at_the_bound_and_a_sample_past_it() {
        let hash = |word: &str| WordSet::new(word).lowest[0];
        let mut seen = std::collections::HashSet::new();
        let distinct: Vec<String> = (0..3000).map(|i| format!("w{i} ")).filter(|w| seen.insert(hash(w))).collect();
        let text = |words: usize| distinct.iter().take(words).map(String::as_str).collect::<String>();
        let set = WordSet::new(&text(SKETCH_WORDS));
        assert!(set.is_whole && set.lowest.len() == SKETCH_WORDS);
        let set = WordSet::new(&text(SKETCH_WORDS + 1));
        assert!(!set.is_whole && set.lowest.len() == SKETCH_WORDS);
        let (long, longer) = (text(900), text(1000));
        assert!((jaccard(&long, &longer) - 0.9).abs() < 0.1, "{}", jaccard(&long, &longer));
        assert!((jaccard(&long, &long) - 1.0).abs() < 1e-9);
        assert!(jaccard(&text(3000), "something else altogether") < 0.05);
    }

    #[test]
    fn what_is_not_above_a_threshold_is_given_up_early() {
        let text = |own: &str| format!("{own} {}", (0..34).map(|i| format!("w{i} ")).collect::<String>());
        let sets = [text("a b c"), text("d e f"), text("a b g")].map(|text| WordSet::new(&text));
        assert!((sets[0].jaccard_above(&sets[1], 0.84) - 34.0 / 40.0).abs() < 1e-9);
        assert!(sets[0].jaccard_above(&sets[1], 0.85) == 0.0, "not above");
        assert!((sets[0].jaccard_above(&sets[2], 0.85) - 36.0 / 38.0).abs() < 1e-9);
    }

    #[test]
    fn few_words_are_told_and_numbers_kept_apart() {
        assert!(has_fewer_words("continue, please!", 3) && !has_fewer_words("go on now", 3));
        assert!(has_fewer_words("继续", 3) && !has_fewer_words("请继续吧", 3));
        assert_eq!(numbers("item 17 of 20"), numbers("of 20: item 17"));
        assert_ne!(numbers("item 17 of 20"), numbers("item 18 of 20"));
        assert_eq!(numbers("no digit"), 0);
    }

    #[test]
    fn a_long_run_without_spaces_is_read_once() {
        let text = "世".repeat(200_000);
        let mut words = 0;
        each_word::<false>(&text, |_| {
            words += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(words, 200_000);
    }
}
