//! SimHash: 64 bits of a text such that texts with most words in common differ in few of them.
//!
//! Each word and each pair of neighbouring words votes with its hash, one vote per bit. Words rather than groups of
//! letters keep short texts apart: two questions of five words share letters, not words. Votes are counted for all 64
//! bits at once: bit k of all counters lies in one number.

use std::ops::ControlFlow;

use super::normalize::{ID, MOMENT, NUMBER, Piece, each_piece, normalize};
use super::words::{Word, ascii_word, each_word};
use crate::limits::COMPARED_TEXT_BYTES;

/// The SimHash of a normalised text; 0 for an empty one.
#[must_use]
pub fn simhash(normalized: &str) -> u64 {
    let mut votes = Votes::default();
    each_word::<true>(normalized, |word| {
        votes.add_word(Some(word));
        ControlFlow::Continue(())
    });
    match (votes.has_words(), normalized.is_empty()) {
        (true, _) => votes.majority(),
        (false, true) => 0,
        (false, false) => xxhash_rust::xxh3::xxh3_64(normalized.as_bytes()),
    }
}

/// The SimHash of a text as it comes; of a very long one the beginning and the end count.
#[must_use]
pub fn similarity_hash(text: &str) -> u64 {
    if text.len() <= COMPARED_TEXT_BYTES {
        return ascii_simhash(text).unwrap_or_else(|| simhash(&normalize(text)));
    }
    let head = text.floor_char_boundary(COMPARED_TEXT_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - COMPARED_TEXT_BYTES / 2);
    let ends = [&text[..head], &text[tail..]].join(" ");
    ascii_simhash(&ends).unwrap_or_else(|| simhash(&normalize(&ends)))
}

/// The same without writing the normalised text down. None where a text has no words, or is not all ASCII.
fn ascii_simhash(text: &str) -> Option<u64> {
    if !text.is_ascii() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let lower = lower.as_bytes();
    let mut votes = Votes::default();
    let hash_of = |placeholder: &[u8]| ascii_word::<true>(placeholder, 1, placeholder.len() - 1);
    let placeholders = [NUMBER, MOMENT, ID].map(hash_of);
    each_piece(lower, |piece| match piece {
        Piece::Number => votes.add_word(placeholders[0]),
        Piece::Moment => votes.add_word(placeholders[1]),
        Piece::Id => votes.add_word(placeholders[2]),
        Piece::Name(start, end) => votes.add_name(lower, start, end),
        Piece::Word(start, end) => votes.add_word(ascii_word::<true>(lower, start, end)),
    });
    votes.has_words().then(|| votes.majority())
}

/// In how many bits two hashes differ.
#[must_use]
pub fn hamming(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

/// Words whose votes are counted together.
const GATHERED: usize = 32;

/// Counters of 64 bits side by side.
#[derive(Default)]
struct Votes {
    /// Words that have not voted yet.
    gathered: [u64; GATHERED],
    number_gathered: usize,
    ones: u64,
    twos: u64,
    fours: u64,
    /// Eights and up.
    high: [u64; 29],
    /// Words that have voted.
    words: u64,
    /// The last word that has voted.
    before: u64,
}

impl Votes {
    #[inline]
    fn add_word(&mut self, word: Option<Word>) {
        let Some(word) = word else { return };
        self.gathered[self.number_gathered] = word.hash;
        self.number_gathered += 1;
        if self.number_gathered == GATHERED {
            self.count_gathered();
        }
    }

    /// The underscore belongs to names, but not to words.
    fn add_name(&mut self, bytes: &[u8], start: usize, end: usize) {
        let mut start = start;
        for part in bytes[start..end].split(|byte| *byte == b'_') {
            if !part.is_empty() {
                self.add_word(ascii_word::<true>(bytes, start, start + part.len()));
            }
            start += part.len() + 1;
        }
    }

    fn has_words(&self) -> bool {
        self.words > 0 || self.number_gathered > 0
    }

    /// Each word votes, and with the one before it as a pair.
    fn count_gathered(&mut self) {
        let words = self.gathered;
        let words = &words[..std::mem::take(&mut self.number_gathered)];
        // Before the first word there is none.
        let mut has_before = if self.words > 0 { u64::MAX } else { 0 };
        for four in words.chunks(4) {
            let mut votes = [0; 8];
            for (votes, word) in votes.as_chunks_mut::<2>().0.iter_mut().zip(four) {
                *votes = [pair(self.before, *word) & has_before, *word];
                (self.before, has_before) = (*word, u64::MAX);
            }
            self.count(votes);
        }
        self.words += words.len() as u64;
    }

    /// Adds eight votes by carry-save addition: fewer operations than one after the other.
    #[inline]
    fn count(&mut self, votes: [u64; 8]) {
        let [a, b, c, d, e, f, g, h] = votes;
        let (ones, two_a) = carry_save(self.ones, a, b);
        let (ones, two_b) = carry_save(ones, c, d);
        let (twos, four_a) = carry_save(self.twos, two_a, two_b);
        let (ones, two_a) = carry_save(ones, e, f);
        let (ones, two_b) = carry_save(ones, g, h);
        let (twos, four_b) = carry_save(twos, two_a, two_b);
        let (fours, mut carry) = carry_save(self.fours, four_a, four_b);
        (self.ones, self.twos, self.fours) = (ones, twos, fours);
        for plane in &mut self.high {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
            if carry == 0 {
                break;
            }
        }
    }

    /// The bits for which more than half of the votes are.
    fn majority(mut self) -> u64 {
        self.count_gathered();
        // All but the first have voted twice.
        let half = (2 * self.words).saturating_sub(1) / 2;
        let (mut above, mut equal) = (0, u64::MAX);
        let planes = self.high.iter().rev().chain([&self.fours, &self.twos, &self.ones]);
        for (plane, weight) in planes.zip((0..self.high.len() + 3).rev()) {
            if half >> weight & 1 == 0 {
                above |= equal & plane;
                equal &= !plane;
            } else {
                equal &= plane;
            }
        }
        above
    }
}

/// The hash of two neighbours; both are well mixed already.
fn pair(before: u64, word: u64) -> u64 {
    let mixed = before.rotate_left(23).wrapping_add(word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Adds three numbers bit by bit: sum and carry.
fn carry_save(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, a & b | half & c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distance(a: &str, b: &str) -> u32 {
        hamming(similarity_hash(a), similarity_hash(b))
    }

    #[test]
    fn texts_that_differ_in_numbers_and_times_are_similar() {
        let table = [
            ("Check order #12345 placed at 2024-01-15T10:30:00Z", "Check order #98765 placed at 2024-02-20T11:45:10Z"),
            ("retry 3", "retry 14"),
            ("page 2 of 17", "page 3 of 17"),
            ("open file1.txt", "open file22.txt"),
            ("it took 1.25 s", "it took 17 s"),
            ("id 550e8400-e29b-41d4-a716-446655440000", "id a1b2c3d4-e5f6-7890-abcd-ef1234567890"),
        ];
        for (a, b) in table {
            assert!(distance(a, b) < 3, "{a:?} {b:?} {}", distance(a, b));
        }
    }

    #[test]
    fn different_texts_are_not_however_short() {
        let texts = [
            "Summarize the quarterly sales report for the EMEA region",
            "Write a haiku about the sea at night in winter",
            "Book me a flight to Rome",
            "What is Python?",
            "What is JavaScript?",
            "Tell me about cats",
            "hello world how are you today",
            "xyzzy plugh foo bar baz qux",
            "List all open pull requests",
            "Delete the temporary files",
            "search for files",
            "yes",
            "no",
            "continue",
            "你好世界",
            "请总结这个文件",
            "{}",
            "???",
        ];
        for (index, a) in texts.iter().enumerate() {
            for b in &texts[index + 1..] {
                assert!(distance(a, b) > 5, "{a:?} {b:?} {}", distance(a, b));
            }
        }
    }

    #[test]
    fn a_word_more_in_a_long_text_changes_little() {
        let text = (0..400)
            .map(|i| format!("{}word{} ", char::from(b'a' + (i % 26) as u8), "x".repeat(i / 26)))
            .collect::<String>();
        assert!(distance(&text, &format!("{text} more")) < 3);
    }

    #[test]
    fn a_text_is_compared_whole_up_to_the_bound() {
        let text = "abcd ".repeat(COMPARED_TEXT_BYTES / 5);
        let middle = |length: usize| {
            let half = (length - 12) / 2;
            let side = "e ".repeat(half / 2 + 1);
            format!("{}different123{}", &side[..half], &side[..length - 12 - half])
        };
        assert!(similarity_hash(&text) != 0);
        let plain = |length: usize| "e ".repeat(length)[..length].to_owned();
        let at = middle(COMPARED_TEXT_BYTES);
        assert_eq!(similarity_hash(&at), simhash(&normalize(&at)));
        let past = middle(COMPARED_TEXT_BYTES + 40);
        assert_eq!(similarity_hash(&past), similarity_hash(&plain(COMPARED_TEXT_BYTES + 40)), "the middle is left out");
    }

    /// The slow way that the fast way must agree with.
    fn counted(hashes: &[u64]) -> u64 {
        (0..64)
            .filter(|bit| hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count() * 2 > hashes.len())
            .fold(0, |bits, bit| bits | 1 << bit)
    }

    proptest! {
        #[test]
        fn a_text_of_ascii_needs_no_normal_form(text in "([a-zA-Z0-9_<>.,:#\\n -]|[0-9]{4}-[0-9]{2}-[0-9]{2}|<NUM>|user_|order-1|0x|[a-f0-9]{16}|T10:30:00Z? ){0,60}") {
            prop_assert_eq!(similarity_hash(&text), simhash(&normalize(&text)));
        }

        #[test]
        fn nor_does_a_text_without_words(text in "[ -~\\n]{0,90}") {
            prop_assert_eq!(similarity_hash(&text), simhash(&normalize(&text)));
        }

        #[test]
        fn votes_are_counted_right(hashes in prop::collection::vec(any::<u64>(), 0..300)) {
            let mut votes = Votes::default();
            hashes.iter().for_each(|hash| votes.add_word(Some(Word { hash: *hash, has_digit: false })));
            let pairs = hashes.windows(2).map(|two| pair(two[0], two[1]));
            let all: Vec<u64> = hashes.iter().copied().chain(pairs).collect();
            prop_assert_eq!(votes.majority(), counted(&all));
        }

        #[test]
        fn numbers_never_matter(words in "[a-z]{1,8}( [a-z]{1,8}){0,12}", a in any::<u32>(), b in any::<u32>()) {
            let distance = distance(&format!("{words} {a}"), &format!("{words} {b}"));
            prop_assert!(distance < 3);
        }
    }
}
