//! Literals that are met in any case: words that announce a secret, `://`, `-----BEGIN`.
//!
//! The text is folded to small letters stretch by stretch, so that each literal is searched for once and not in every
//! case; what is found is checked in the text itself. Folding by one bit also changes signs, and literals alike.

use aho_corasick::packed;

use super::{STRETCH, Trigger};

/// Literals as long as this fit; there is no need for longer ones.
pub(super) const LONGEST_WORD: usize = 32;
/// Shorter ones are too frequent for the common search...
const SHORTEST_WORD: usize = 3;
/// ...and shorter marks as well: they have a search of their own, and so must be rare.
const SHORTEST_MARK: usize = 4;
/// So many short literals are searched for without being confused with each other. The others are longer, and so a search
/// of their own confuses few of them, however many they are.
const TOGETHER: usize = 8;
/// Vectorised search needs some bytes to begin with.
const LEAST: usize = 64;
const URL: &str = "://";
const DASHES: &str = "-----BEGIN";
/// Lines of dashes are frequent: they are told by what follows them.
const DASHES_SKIPPED: usize = 4;

/// The text of a stretch, folded, and the beginning of the next.
pub(super) type Folded = [u8; STRETCH + LONGEST_WORD];

/// Finds words, wherever they begin.
#[derive(Debug)]
pub(in crate::dlp) struct WordSearch {
    searches: Vec<Literals>,
    longest: usize,
}

/// Words that are searched for together.
#[derive(Debug)]
struct Literals {
    words: Vec<Word>,
    search: Search,
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    /// So many of its bytes stand before what is searched for.
    skipped: usize,
    trigger: Trigger,
    /// Others that may begin at the same place.
    others: Vec<usize>,
}

#[derive(Debug)]
enum Search {
    /// Where the processor can.
    Vectors(packed::Searcher),
    /// Else byte by byte: which of them begin a word.
    Bytes([bool; 256]),
}

impl WordSearch {
    /// For these words in any case, these marks in their own, and the literals that everybody needs.
    pub(in crate::dlp) fn new(words: &[&str], marks: &[&str]) -> WordSearch {
        WordSearch::with(words, marks, |words| by_vectors(words).unwrap_or_else(|| by_bytes(words)))
    }

    fn with(words: &[&str], marks: &[&str], search: impl Fn(&[Word]) -> Search) -> WordSearch {
        let (all, short) = (collect(words, marks), short(marks));
        let longest = all.iter().chain(&short).map(|(text, ..)| text.len()).max().unwrap_or(1);
        let literals = |some| {
            let words = with_others(some);
            Literals { search: search(&words), words }
        };
        let (first, rest) = all.split_at(all.len().min(TOGETHER));
        let searches = [first, rest, &short].into_iter().filter(|some| !some.is_empty()).map(literals).collect();
        WordSearch { searches, longest }
    }

    /// Room for folded text.
    #[expect(clippy::unused_self, reason = "its size belongs to this search")]
    pub(super) fn buffer(&self) -> Folded {
        [0; STRETCH + LONGEST_WORD]
    }

    /// Calls `look` for each word that begins in `start..end`, search by search.
    #[inline]
    pub(super) fn each(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        folded: &mut Folded,
        mut look: impl FnMut(Trigger, usize),
    ) {
        let raw = &text[start..text.len().min(end + self.longest - 1)];
        for (to, from) in folded.iter_mut().zip(raw) {
            *to = from | FOLD;
        }
        let length = raw.len().max(LEAST);
        if raw.len() < LEAST {
            folded[raw.len()..LEAST].fill(0);
        }
        let folded = &folded[..length];
        for literals in &self.searches {
            literals.each(text, start, end, folded, &mut look);
        }
    }
}

impl Literals {
    #[inline]
    fn each(&self, text: &[u8], start: usize, end: usize, folded: &[u8], look: &mut impl FnMut(Trigger, usize)) {
        let mut from = 0;
        while let Some((word, at)) = self.find(folded, from) {
            if start + at >= end {
                break;
            }
            let word = &self.words[word];
            word.look(text, start + at, look);
            for other in &word.others {
                self.words[*other].look(text, start + at, look);
            }
            from = at + 1;
        }
    }

    /// The first word that is met at `from` or later, and where.
    #[inline]
    fn find(&self, folded: &[u8], from: usize) -> Option<(usize, usize)> {
        match &self.search {
            Search::Vectors(search) => {
                let found = search.find_in(folded, (from..folded.len()).into())?;
                Some((found.pattern().as_usize(), found.start()))
            }
            Search::Bytes(first) => (from..folded.len()).filter(|at| first[usize::from(folded[*at])]).find_map(|at| {
                let is_here = |word: &Word| is_folded_prefix(word.literal(), &folded[at..]);
                Some((self.words.iter().position(is_here)?, at))
            }),
        }
    }
}

impl Word {
    fn literal(&self) -> &[u8] {
        &self.text[self.skipped..]
    }

    #[inline]
    fn look(&self, text: &[u8], literal: usize, look: &mut impl FnMut(Trigger, usize)) {
        let Some(at) = literal.checked_sub(self.skipped) else { return };
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

/// What makes small letters of capitals.
const FOLD: u8 = 0x20;

fn fold(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| byte | FOLD).collect()
}

/// What is met most often first.
fn collect<'w>(words: &[&'w str], marks: &[&'w str]) -> Vec<(&'w str, Trigger, usize)> {
    let asked = words.iter().enumerate().map(|(place, word)| (*word, Trigger::Word(place), 0));
    let asked = asked.filter(|(word, ..)| (SHORTEST_WORD..=LONGEST_WORD).contains(&word.len()));
    let marks = marks.iter().enumerate().map(|(place, mark)| (*mark, Trigger::Mark(place), 0));
    let marks = marks.filter(|(mark, ..)| (SHORTEST_MARK..=LONGEST_WORD).contains(&mark.len()));
    let url = (URL, Trigger::Url, 0);
    let dashes = (DASHES, Trigger::Dashes, DASHES_SKIPPED);
    [url].into_iter().chain(asked).chain([dashes]).chain(marks).collect()
}

fn with_others(all: &[(&str, Trigger, usize)]) -> Vec<Word> {
    let folded: Vec<Vec<u8>> = all.iter().map(|(word, _, skipped)| fold(&word.as_bytes()[*skipped..])).collect();
    let others = |place: usize| {
        let shares = |other: &usize| {
            *other != place
                && (folded[*other].starts_with(&folded[place]) || folded[place].starts_with(&folded[*other]))
        };
        (0..all.len()).filter(shares).collect()
    };
    let word = |(place, (text, trigger, skipped)): (usize, &(&str, Trigger, usize))| Word {
        text: text.as_bytes().to_vec(),
        skipped: *skipped,
        trigger: *trigger,
        others: others(place),
    };
    all.iter().enumerate().map(word).collect()
}

/// A doubled sign is frequent: such marks are told by what follows it.
fn short<'w>(marks: &[&'w str]) -> Vec<(&'w str, Trigger, usize)> {
    let all = marks.iter().enumerate().filter(|(_, mark)| (2..SHORTEST_MARK).contains(&mark.len()));
    let is_doubled = |mark: &str| matches!(mark.as_bytes(), [first, second, _, ..] if first == second);
    all.map(|(place, mark)| (*mark, Trigger::Mark(place), usize::from(is_doubled(mark)))).collect()
}

/// Without more buckets than a lane has bits: that is faster.
fn by_vectors(words: &[Word]) -> Option<Search> {
    let mut builder = packed::Config::new().only_teddy(true).only_teddy_fat(Some(false)).builder();
    builder.extend(words.iter().map(|word| fold(word.literal()))).build().map(Search::Vectors)
}

fn by_bytes(words: &[Word]) -> Search {
    let mut first = [false; 256];
    for word in words {
        first[usize::from(word.literal()[0] | FOLD)] = true;
    }
    Search::Bytes(first)
}

fn is_folded_prefix(word: &[u8], folded: &[u8]) -> bool {
    folded.len() >= word.len() && word.iter().zip(folded).all(|(a, b)| a | FOLD == *b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: &[&str] = &["pwd", "passw", "password", "secret", "api_key", "token"];
    const MARKS: &[&str] = &["Q~", "AZDO", "Secret", "==:"];

    fn found(search: &WordSearch, text: &[u8]) -> Vec<(Trigger, usize)> {
        let mut all = Vec::new();
        let mut folded = search.buffer();
        for start in (0..text.len()).step_by(STRETCH) {
            let end = text.len().min(start + STRETCH);
            search.each(text, start, end, &mut folded, |trigger, at| all.push((trigger, at)));
        }
        all.sort_unstable_by_key(|(trigger, at)| (*at, *trigger));
        all
    }

    fn without_vectors() -> WordSearch {
        WordSearch::with(WORDS, MARKS, by_bytes)
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
        assert_eq!(found(&WordSearch::new(WORDS, MARKS), text), expected);
        assert_eq!(found(&without_vectors(), text), expected);
    }

    #[test]
    fn a_word_across_two_stretches_is_met_once() {
        for at in STRETCH - 10..STRETCH + 2 {
            let mut text = vec![b'.'; 2 * STRETCH];
            text[at..at + 6].copy_from_slice(b"seCret");
            assert_eq!(found(&WordSearch::new(WORDS, MARKS), &text), [(Trigger::Word(3), at)]);
        }
    }

    proptest! {
        #[test]
        fn with_and_without_vectors_alike(text in "([pP]wd|passw(ord)?|SECRET|Secret|[qQ]~|=|==:|azdo|AZDO|api[_\x7f]key|:|/|-----BEGIN|[a-z ]|tokentoken){0,200}") {
            prop_assert_eq!(found(&WordSearch::new(WORDS, MARKS), text.as_bytes()), found(&without_vectors(), text.as_bytes()));
        }
    }
}
