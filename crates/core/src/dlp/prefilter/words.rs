//! Literals that are met anywhere: words that announce a secret, in any case; `://`, `-----BEGIN` and marks, as they are.
//!
//! Masks tell where the window of one may begin (`windows`); the few places are checked in the text itself.

use std::ops::Range;

use fearless_simd::Level;

use super::Trigger;
use super::windows::{WINDOW, Wanted, Windows};

/// Shorter ones are too frequent.
const SHORTEST_WORD: usize = 2;
const URL: &str = "://";
const DASHES: &str = "-----BEGIN";
/// What makes small letters of capitals. It also changes signs, here as there.
const FOLD: u8 = 0x20;
/// Lists of words by the first two bytes of their windows.
const LISTS: usize = 256;

/// Finds words, wherever they begin.
#[derive(Debug)]
pub(in crate::dlp) struct WordSearch {
    pub(super) level: Level,
    pub(super) windows: Windows,
    /// Those of one list stand together.
    words: Vec<Word>,
    lists: [Range<usize>; LISTS],
    commons: [Common; LISTS],
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    /// So many of its bytes stand before its window.
    skipped: usize,
    /// The window, folded, and which bits of it are the word's.
    window: u32,
    mask: u32,
    trigger: Trigger,
}

impl WordSearch {
    /// For these words in any case, these marks in their own, and the literals that everybody needs.
    pub(in crate::dlp) fn new(words: &[&str], marks: &[&str]) -> WordSearch {
        WordSearch::with(words, marks, Level::new())
    }

    /// With what this level of processors can do.
    pub(super) fn with(words: &[&str], marks: &[&str], level: Level) -> WordSearch {
        let words = words.iter().enumerate().map(|(place, word)| (*word, Trigger::Word(place)));
        let marks = marks.iter().enumerate().map(|(place, mark)| (*mark, Trigger::Mark(place)));
        let own = [(URL, Trigger::Url), (DASHES, Trigger::Dashes)];
        let all: Vec<_> = words.chain(marks).chain(own).filter(|(text, _)| text.len() >= SHORTEST_WORD).collect();
        let wanted: Vec<Wanted<'_>> = all
            .iter()
            .map(|(text, trigger)| Wanted { text: text.as_bytes(), is_exact: !matches!(trigger, Trigger::Word(_)) })
            .collect();
        let (windows, skips) = Windows::new(&wanted);
        let mut words: Vec<Word> =
            all.iter().zip(skips).map(|((text, trigger), skipped)| Word::new(text, skipped, *trigger)).collect();
        words.sort_by_key(|word| list(word.window));
        let first = |which: usize| words.partition_point(|word| list(word.window) < which);
        let lists = std::array::from_fn(|which| first(which)..first(which + 1));
        let commons = std::array::from_fn(|which| Common::of(&words[first(which)..first(which + 1)]));
        WordSearch { level, windows, words, lists, commons }
    }

    /// Whether a word's window may begin at `at`: nearly always right.
    #[inline(always)]
    pub(super) fn may_be_at(&self, text: &[u8], at: usize) -> bool {
        let window = window(text.get(at..).unwrap_or_default());
        let common = &self.commons[list(window)];
        window & common.mask == common.bits
    }

    /// Calls `look` for each word whose window begins at `at`.
    #[inline]
    pub(super) fn each_at(&self, text: &[u8], at: usize, mut look: impl FnMut(Trigger, usize)) {
        let window = window(text.get(at..).unwrap_or_default());
        for word in &self.words[self.lists[list(window)].clone()] {
            if window & word.mask == word.window {
                word.look(text, at, &mut look);
            }
        }
    }
}

/// What the windows of a list have in common.
#[derive(Clone, Copy, Debug)]
struct Common {
    /// The bits that they agree in.
    mask: u32,
    bits: u32,
}

impl Common {
    /// Agrees with nothing: each byte of a window is folded, and this is not.
    const NOTHING: Common = Common { mask: u32::MAX, bits: 0 };

    fn of(words: &[Word]) -> Common {
        let Some((first, rest)) = words.split_first() else { return Common::NOTHING };
        let mask = rest.iter().fold(first.mask, |mask, word| mask & word.mask & !(word.window ^ first.window));
        Common { mask, bits: first.window & mask }
    }
}

impl Word {
    fn new(text: &str, skipped: usize, trigger: Trigger) -> Word {
        let text = text.as_bytes().to_vec();
        let length = (text.len() - skipped).min(WINDOW);
        let mask = u32::MAX >> (8 * (WINDOW - length));
        Word { skipped, window: window(&text[skipped..]) & mask, mask, trigger, text }
    }

    #[inline]
    fn look(&self, text: &[u8], window: usize, look: &mut impl FnMut(Trigger, usize)) {
        let Some(at) = window.checked_sub(self.skipped) else { return };
        if let Some(here) = text.get(at..at + self.text.len())
            && match self.trigger {
                Trigger::Word(_) => here.eq_ignore_ascii_case(&self.text),
                _ => here == self.text,
            }
        {
            look(self.trigger, at);
        }
    }
}

/// The first bytes, folded, the first of them lowest.
#[inline(always)]
fn window(rest: &[u8]) -> u32 {
    let four = rest.first_chunk().copied().unwrap_or_else(|| {
        let mut four = [0; WINDOW];
        four[..rest.len()].copy_from_slice(rest);
        four
    });
    u32::from_le_bytes(four) | u32::from_le_bytes([FOLD; WINDOW])
}

/// The list of words with such a window.
#[inline(always)]
fn list(window: u32) -> usize {
    (window as u16).wrapping_mul(0x9e37) as usize >> 8
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::super::places::Places;
    use super::super::tests::levels;
    use super::super::{MayBe, STRETCH, TokenStart};
    use super::*;
    use crate::dlp::view::View;

    const WORDS: &[&str] = &["pwd", "passw", "password", "secret", "api_key", "token"];
    const MARKS: &[&str] = &["Q~", "AZDO", "Secret", "==:"];

    static SEARCHES: LazyLock<Vec<WordSearch>> =
        LazyLock::new(|| levels().into_iter().map(|level| WordSearch::with(WORDS, MARKS, level)).collect());

    fn found(search: &WordSearch, text: &[u8]) -> Vec<(Trigger, usize)> {
        let nothing = MayBe { token: |_: TokenStart| false, number: |_: &View<'_>, _: usize, _: u64| false };
        let (view, mut places, mut all) = (View { text, is_end: true }, Places::new(), Vec::new());
        let mut start = 0;
        while start < text.len() {
            let end = places.find(&view, start, text.len().min(start + STRETCH), search, &nothing);
            for place in places.windows.iter() {
                search.each_at(text, start + place, |trigger, at| all.push((trigger, at)));
            }
            start = end;
        }
        all.sort_unstable_by_key(|(trigger, at)| (*at, *trigger));
        all
    }

    /// What words are, said place by place.
    fn slowly(text: &[u8]) -> Vec<(Trigger, usize)> {
        let marks = MARKS.iter().enumerate().map(|(place, mark)| (*mark, Trigger::Mark(place)));
        let marks: Vec<_> = marks.chain([(URL, Trigger::Url), (DASHES, Trigger::Dashes)]).collect();
        let mut all = Vec::new();
        for at in 0..text.len() {
            let here = |length: usize| text.get(at..at + length).unwrap_or_default();
            for (place, word) in WORDS.iter().enumerate() {
                if here(word.len()).eq_ignore_ascii_case(word.as_bytes()) {
                    all.push((Trigger::Word(place), at));
                }
            }
            for (mark, trigger) in &marks {
                if here(mark.len()) == mark.as_bytes() {
                    all.push((*trigger, at));
                }
            }
        }
        all.sort_unstable_by_key(|(trigger, at)| (*at, *trigger));
        all
    }

    #[test]
    fn words_are_met_in_any_case_and_inside_others() {
        let text = b"my_PassWord=x API_KEY api\x7fkey ://-----BEGIN -----begin secretoken q~Q~ Secret =:==:";
        let expected = [
            (Trigger::Word(1), 3),
            (Trigger::Word(2), 3),
            (Trigger::Word(4), 14),
            (Trigger::Url, 30),
            (Trigger::Dashes, 33),
            (Trigger::Word(3), 55),
            (Trigger::Word(5), 60),
            (Trigger::Mark(0), 68),
            (Trigger::Word(3), 71),
            (Trigger::Mark(2), 71),
            (Trigger::Mark(3), 80),
        ];
        assert_eq!(slowly(text), expected);
        for search in SEARCHES.iter() {
            assert_eq!(found(search, text), expected, "{:?}", search.level);
        }
    }

    #[test]
    fn a_word_across_two_stretches_is_met_once() {
        for at in STRETCH - 10..STRETCH + 2 {
            let mut text = vec![b'.'; 2 * STRETCH];
            text[at..at + 6].copy_from_slice(b"seCret");
            assert_eq!(found(&SEARCHES[0], &text), [(Trigger::Word(3), at)]);
        }
    }

    proptest! {
        #[test]
        fn every_way_to_search_finds_the_same(text in "([pP]wd|passw(ord)?|SECRET|Secret|[qQ]~|=|==:|azdo|AZDO|api[_\x7f]key|:|/|-----BEGIN|[a-z ]|tokentoken){0,200}") {
            let expected = slowly(text.as_bytes());
            for search in SEARCHES.iter() {
                prop_assert_eq!(&found(search, text.as_bytes()), &expected);
            }
        }
    }
}
