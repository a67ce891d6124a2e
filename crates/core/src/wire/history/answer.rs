//! What an answer amounts to, the same whether the provider gave it or the client sends it back.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::canonical::{canonical_arguments, mix};
use crate::blocks::{BLOCK, ROW, Spaces, row};
use crate::limits::ANSWER_KEY_BYTES;
use crate::wire::Dialect;

/// Shorter ids (`call_1`) are not unique enough to be evidence.
const UNIQUE_ID_BYTES: usize = 16;
/// An answer without calls and with less text than this is given to many questions.
const TELLING_TEXT_BYTES: usize = 48;

/// Bytes of text that are taken together.
const PIECE: usize = 2 * BLOCK * ROW;
/// Most words fit in: as many bytes are copied at once as registers hold.
const WORD: usize = 16;

/// The calls of an answer, or its text where it called nothing.
#[derive(Clone)]
pub(super) struct Answer {
    dialect: Dialect,
    /// Hashes of the ids of all calls, as long as all of them are unique.
    ids: Option<Vec<u64>>,
    /// Hashes of the unique ones.
    unique_ids: Vec<u64>,
    /// Hashes of name and arguments.
    calls: Vec<u64>,
    /// Text without white space: clients trim and join.
    text: Xxh3,
    text_bytes: usize,
    most_text_bytes: usize,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl Answer {
    pub(super) fn new(dialect: Dialect) -> Answer {
        Answer {
            dialect,
            ids: Some(Vec::new()),
            unique_ids: Vec::new(),
            calls: Vec::new(),
            text: Xxh3::new(),
            text_bytes: 0,
            most_text_bytes: ANSWER_KEY_BYTES,
        }
    }

    /// The key of an answer that is nothing but a short text, and whether it is telling: without the state that longer
    /// ones need. None for others.
    pub(super) fn of_short_text(text: &str) -> Option<(u64, bool)> {
        let mut dense = [0; PIECE + WORD];
        let length = (text.len() <= PIECE).then(|| without_space(text.as_bytes(), &mut dense))?;
        Some((xxh3_64(&dense[..length]), length >= TELLING_TEXT_BYTES))
    }

    /// A transcript rather than an answer: all of its text counts.
    pub(super) fn endless(dialect: Dialect) -> Answer {
        Answer { most_text_bytes: usize::MAX, ..Answer::new(dialect) }
    }

    pub(super) fn text(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(PIECE) {
            let mut dense = [0; PIECE + WORD];
            let length = without_space(piece, &mut dense).min(self.most_text_bytes - self.text_bytes);
            self.text.update(&dense[..length]);
            self.text_bytes += length;
            if self.text_bytes == self.most_text_bytes {
                return;
            }
        }
    }

    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        match (call_id_hash(id), &mut self.ids) {
            (Some(id), ids) => {
                self.unique_ids.push(id);
                ids.iter_mut().for_each(|ids| ids.push(id));
            }
            (None, ids) => *ids = None,
        }
        self.calls.push(mix(xxh3_64(name.as_bytes()), canonical_arguments(arguments)));
    }

    /// The answer as one number.
    pub(super) fn key(&self) -> u64 {
        if self.calls.is_empty() {
            return self.text.digest();
        }
        // Gemini's clients make up ids for the calls that came without.
        let ids = self.ids.as_ref().filter(|_| self.dialect != Dialect::Gemini);
        ids.unwrap_or(&self.calls).iter().fold(1, |key, call| mix(key, *call))
    }

    /// Whether the answer says enough to be recognised outside its conversation.
    pub(super) fn is_telling(&self) -> bool {
        !self.calls.is_empty() || self.text_bytes >= TELLING_TEXT_BYTES
    }

    pub(super) fn unique_ids(&self) -> impl Iterator<Item = u64> {
        self.unique_ids.iter().copied()
    }
}

/// Copies all but white space. Gives how many bytes those are.
fn without_space(piece: &[u8], dense: &mut [u8; PIECE + WORD]) -> usize {
    let (mut spaces, mut length) = ([Spaces::default(); ROW], 0);
    for from in (0..piece.len()).step_by(BLOCK * ROW) {
        let blocks = row(piece, from, &mut spaces);
        for (nth, spaces) in spaces[..blocks].iter().enumerate() {
            length += copy_words(&piece[from + nth * BLOCK..], spaces.any, &mut dense[length..]);
        }
    }
    length
}

/// The same of one block, of whose bytes `spaces` says which are white space.
#[inline]
fn copy_words(block: &[u8], spaces: u64, dense: &mut [u8]) -> usize {
    let mut words = !spaces & (u64::MAX >> (BLOCK - block.len().min(BLOCK)));
    let (mut at, mut length) = (0, 0);
    while words != 0 {
        let before = words.trailing_zeros();
        words >>= before;
        at += before as usize;
        let bytes = words.trailing_ones() as usize;
        match (block[at..].first_chunk::<WORD>(), dense[length..].first_chunk_mut::<WORD>()) {
            // What is copied beyond the word, the next one overwrites.
            (Some(word), Some(room)) if bytes <= WORD => *room = *word,
            _ => dense[length..length + bytes].copy_from_slice(&block[at..at + bytes]),
        }
        words = words.checked_shr(bytes as u32).unwrap_or(0);
        at += bytes;
        length += bytes;
    }
    length
}

/// The hash of a call id as evidence; None where the id is not unique.
#[must_use]
pub fn call_id_hash(id: &str) -> Option<u64> {
    (id.len() >= UNIQUE_ID_BYTES && looks_unique(id)).then(|| xxh3_64(id.as_bytes()))
}

/// Whether a name looks made up by a machine, once and for one thing: `toolu_01S0ZYhDvSH9…`, a UUID, a time in
/// milliseconds. `get_weather_0` and `my-app-prod` do not.
#[must_use]
pub fn looks_unique(name: &str) -> bool {
    let is_random = |part: &str| {
        let count = |is: fn(&u8) -> bool| part.bytes().filter(is).count();
        let (digits, upper) = (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase));
        let lower = part.len() - digits - upper;
        let bytes = part.as_bytes();
        let changes = bytes.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count();
        let is_mixed = changes >= 2 && (digits >= 2 || (part.len() >= 12 && upper >= 2 && lower >= 2));
        part.len() >= 8 && (is_mixed || digits == part.len() && digits >= 9)
    };
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_of_machines_are_told_from_names() {
        let unique = [
            "toolu_01S0ZYhDvSH9trBOZCaxHash",
            "call_UaRmXddYCKK3rYmcIPETfyYV",
            "ff667cca-b06c-4c6a-b824-3e6680aed9b1",
            "read_file_1794729773592_0",
            "01a1de3abe8f7bd1983704f2e6ead61f",
        ];
        for id in unique {
            assert!(looks_unique(id) && call_id_hash(id).is_some(), "{id}");
        }
        for name in [
            "",
            "call_1",
            "get_current_weather_0",
            "my-app-production-cache",
            "customer-support-v2",
            "assistant2024",
            "MyCompanyChatBot",
            "k",
        ] {
            assert!(!looks_unique(name), "{name}");
            assert_eq!(call_id_hash(name), None);
        }
        assert!(looks_unique("a1b2c3d4"));
        assert_eq!(call_id_hash("a1b2c3d4"), None, "too short for a call id");
    }

    proptest! {
        #[test]
        fn words_stand_close_together(text in "([ \\n\\t]{1,3}|[a-z]{1,9}|[a-zé]{10,90}|世|\u{b}){0,60}") {
            for piece in text.as_bytes().chunks(PIECE) {
                let mut dense = [0; PIECE + WORD];
                let length = without_space(piece, &mut dense);
                let expected: Vec<u8> = piece.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
                prop_assert_eq!(&dense[..length], &expected[..]);
            }
            let mut answer = Answer::new(Dialect::OpenaiChat);
            answer.text(&text);
            let short = (text.len() <= PIECE).then(|| (answer.key(), answer.is_telling()));
            prop_assert_eq!(Answer::of_short_text(&text), short);
        }
    }

    #[test]
    fn text_counts_up_to_its_bound() {
        let key = |text: &str| {
            let mut answer = Answer::new(Dialect::OpenaiChat);
            answer.text(text);
            answer.key()
        };
        let bound = "x".repeat(ANSWER_KEY_BYTES);
        assert_eq!(key(&bound), key(&format!("{bound} and more")));
        assert_ne!(key(&bound), key(&bound[1..]));
        let spaced = format!("{}\t\n {}\u{c} y", "x".repeat(PIECE - 1), "ü".repeat(PIECE));
        assert_eq!(key(&spaced), xxh3_64(spaced.split_ascii_whitespace().collect::<String>().as_bytes()));
    }

    #[test]
    fn short_ids_leave_name_and_arguments_to_count() {
        let key = |dialect, id: &str, arguments: &str| {
            let mut answer = Answer::new(dialect);
            answer.text("words do not count then");
            answer.call(id, "read", arguments);
            answer.key()
        };
        let chat = |id, arguments| key(Dialect::OpenaiChat, id, arguments);
        assert_eq!(chat("call_0", r#"{"a":1,"b":2}"#), chat("call_1", r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(chat("call_0", r#"{"a":1}"#), chat("call_0", r#"{"a":2}"#));
        assert_eq!(chat("call_8J3kd9s0aLqpZ7", r#"{"a":1}"#), chat("call_8J3kd9s0aLqpZ7", "{}"), "an id says it all");
        let gemini = |id| key(Dialect::Gemini, id, "{}");
        assert_eq!(gemini("read_file_1794729773592_0"), gemini(""), "made up by the client");
    }
}
