//! What came back: tool results, or what the user said.

use std::sync::LazyLock;

use memchr::memmem;

use super::noise::denoise;
use super::runs::Runs;
use super::{Gathered, Sketch, ends, hash, short_hash};
use crate::blocks::is_digit;

/// Bytes at the front in which a failure shows.
const FAILURE_BYTES: usize = 400;
/// Bytes and words of a failure that tell one kind from another.
const KIND_BYTES: usize = 600;
const KIND_WORDS: usize = 14;
/// A result that tells of waiting is short.
const WAITING_BYTES: usize = 400;
/// A result that says anything has this many bytes: "ok" to two different edits is no repetition.
pub(crate) const TELLING_BYTES: usize = 60;
/// What is longer holds something that was asked for.
const SHORT_BYTES: usize = 240;
/// Words from the front that are compared: a text that begins alike and is long is alike enough.
const COMPARED_WORDS: usize = 256;
/// Numbers of a result that are followed from one poll to the next; a text with more of them is no count.
pub(crate) const NUMBERS: usize = 6;

const FAILURES: [&str; 13] = [
    "error",
    "traceback",
    "exception",
    "not found",
    "no such file",
    "cannot",
    "can't",
    "fail",
    "invalid",
    "denied",
    "usage:",
    "no matches",
    "unexpected",
];
/// What a report counts down.
const COUNTED: [&str; 7] = ["error", "fail", "warning", "problem", "issue", "violation", "remaining"];
/// Values of a key that say there is none of it.
const NOTHING: [&str; 8] = ["null", "none", "false", "0", "[]", "{}", "\"\"", "''"];
const NOTHING_FOUND: [&str; 5] = ["no matches", "no results", "no files found", "nothing found", "0 results"];
/// How to look for them, worked out once.
static FAILURE_FINDERS: LazyLock<Vec<memmem::Finder<'static>>> =
    LazyLock::new(|| FAILURES.iter().map(|word| memmem::Finder::new(*word)).collect());
static PASSED_FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("passed"));
const WAITING: [&str; 11] = [
    "still running",
    "still pending",
    "still waiting",
    "still building",
    "still processing",
    "in progress",
    "in_progress",
    "not yet",
    "not finished",
    "not ready",
    "not complete",
];
const STATES: [&str; 4] = ["status", "state", "phase", "progress"];
const WAITING_STATES: [&str; 8] =
    ["running", "pending", "queued", "waiting", "starting", "processing", "building", "active"];

/// The outcome of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Without noise.
    pub(crate) exact: u32,
    /// Without noise, and with all digits masked.
    pub(crate) masked: u16,
    /// The kind of failure, without what it quotes; 0 where nothing failed.
    pub(crate) failure: u16,
    /// Which words it has.
    pub(crate) words: Sketch,
    /// How much is left to do, where a report counts it: `3 failed`, `errors: 12`.
    pub(crate) left: Option<u32>,
    /// The numbers in it, and how many there are; not kept where there are too many.
    pub(crate) numbers: [u32; NUMBERS],
    pub(crate) number_count: u8,
    /// It says enough that saying it again is a repetition.
    pub(crate) is_telling: bool,
    /// A search has found nothing, which is no error.
    pub(crate) is_nothing: bool,
    /// It is no more than a sentence or two.
    pub(crate) is_short: bool,
    /// It says that something is under way.
    pub(crate) is_waiting: bool,
    /// There is a digit in it.
    pub(crate) has_digit: bool,
}

impl Outcome {
    /// Reads what came back, piece by piece.
    pub(crate) fn read<'a>(texts: impl Iterator<Item = &'a str>, is_error: bool) -> Outcome {
        let mut clean = String::new();
        for text in texts {
            ends(text).iter().for_each(|text| denoise(text, &mut clean));
        }
        let mut outcome = Outcome { exact: hash(clean.as_bytes()), ..Outcome::default() };
        outcome.read_words(&clean);
        let front = lower(&clean, FAILURE_BYTES);
        let has = |text: &[u8], words: &[&str]| words.iter().any(|word| memmem::find(text, word.as_bytes()).is_some());
        // A report of tests tells by its counts: "9 passed, 1 failed" is not "10 passed, 0 failed".
        let is_report = tells(&front, &PASSED_FINDER);
        outcome.is_nothing = !is_error && has(&front, &NOTHING_FOUND) && !has(&front, &FAILURES[..3]);
        let has_failed = || FAILURE_FINDERS.iter().any(|word| tells(&front, word));
        if is_error || outcome.is_nothing || !is_report && has_failed() {
            outcome.failure = failure_kind(&clean);
        }
        outcome.is_telling = clean.len() >= TELLING_BYTES || outcome.failure != 0;
        outcome.is_short = clean.len() < SHORT_BYTES;
        if clean.len() < WAITING_BYTES && outcome.failure == 0 {
            outcome.is_waiting = has(&front, &WAITING) || has_waiting_state(&front);
        }
        outcome
    }

    /// Whether a count has grown since `before` and none has fallen: a wait that gets somewhere.
    pub(crate) fn has_grown(&self, before: &Outcome) -> bool {
        let count = usize::from(self.number_count);
        if self.number_count != before.number_count || count > NUMBERS || self.masked != before.masked {
            return false;
        }
        let pairs = || self.numbers[..count].iter().zip(&before.numbers[..count]);
        pairs().all(|(now, then)| now >= then) && pairs().any(|(now, then)| now > then)
    }

    fn read_words(&mut self, clean: &str) {
        let lower = clean.to_ascii_lowercase();
        let bytes = lower.as_bytes();
        let mut masked = Vec::with_capacity(bytes.len());
        let (mut copied, mut words) = (0, 0);
        let mut gathered = Gathered::new();
        let mut left = Left::default();
        let mut runs = Runs::default();
        while let Some((start, end)) = runs.next(bytes) {
            if is_digit(bytes[start]) {
                masked.extend_from_slice(&bytes[copied..start]);
                masked.push(b'#');
                copied = end;
                self.add_number(&clean[start..end]);
                left.number(&clean[start..end], &bytes[..start]);
            } else {
                // What stands in quotes begins behind them. Short words are in every text.
                let quotes = bytes[start..end].iter().take_while(|byte| **byte == b'\'').count();
                let word = &bytes[start + quotes..end];
                left.word(word);
                if word.len() > 2 && words < COMPARED_WORDS {
                    gathered.add(word);
                    words += 1;
                }
            }
        }
        masked.extend_from_slice(&bytes[copied..]);
        self.masked = short_hash(&masked);
        self.words = gathered.sketch();
        self.left = left.count;
    }

    fn add_number(&mut self, digits: &str) {
        self.has_digit = true;
        if let Some(slot) = self.numbers.get_mut(usize::from(self.number_count)) {
            *slot = digits.parse().unwrap_or(u32::MAX);
        }
        self.number_count = self.number_count.saturating_add(1);
    }
}

/// Finds how much a report says is left: its last count of failures, warnings and the like.
#[derive(Default)]
struct Left {
    count: Option<u32>,
    /// The last number, and the words since.
    number: Option<u32>,
    words: u8,
    /// The last word was one that is counted.
    is_counted: bool,
}

impl Left {
    fn number(&mut self, digits: &str, before: &[u8]) {
        self.number = digits.parse().ok();
        self.words = 0;
        if self.is_counted && matches!(before.trim_ascii_end().last(), Some(b'=' | b':')) {
            self.count = self.number;
        }
        self.is_counted = false;
    }

    /// `4 previous errors`: one word may stand in between.
    fn word(&mut self, word: &[u8]) {
        let Some(first) = word.first() else { return };
        // Most words begin otherwise.
        self.is_counted = matches!(first, b'e' | b'f' | b'w' | b'p' | b'i' | b'v' | b'r')
            && COUNTED.iter().any(|counted| word.starts_with(counted.as_bytes()));
        if self.is_counted && self.words < 2 && self.number.is_some() {
            self.count = self.number;
        }
        self.words = self.words.saturating_add(1);
    }
}

/// Whether the word is there, and not none of it: `0 failed`, `no errors`, `"error": null`.
fn tells(text: &[u8], word: &memmem::Finder<'_>) -> bool {
    word.find_iter(text).any(|at| {
        let before = text[..at].trim_ascii_end();
        let is_none = before.len() < at
            && (before == b"0" || [&b" 0"[..], b"no", b"without"].iter().any(|none| before.ends_with(none)));
        !is_none && !is_key_of_nothing(&text[at + word.needle().len()..])
    })
}

/// Whether the rest of a key is followed by an empty value: `s": []`, `_count=0`.
fn is_key_of_nothing(rest: &[u8]) -> bool {
    let key = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let rest = rest[key..].strip_prefix(b"\"").unwrap_or(&rest[key..]).trim_ascii_start();
    let [b':' | b'=', value @ ..] = rest else { return false };
    let value = value.trim_ascii_start();
    NOTHING.iter().any(|none| {
        let after = value.strip_prefix(none.as_bytes()).map(|after| after.first());
        after.is_some_and(|next| next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.'))
    })
}

/// The first words of a failure, without paths, numbers and what stands in quotes: arguments come back in there.
fn failure_kind(clean: &str) -> u16 {
    let front = &clean[..clean.floor_char_boundary(KIND_BYTES)];
    let mut kind = Vec::new();
    let (mut rest, mut words) = (front, 0);
    while words < KIND_WORDS {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && !"`\"'/".contains(c));
        let Some(first) = rest.chars().next() else { break };
        match first {
            '`' | '"' | '\'' => rest = rest[1..].split_once(first).map_or(&rest[1..], |(_, after)| after),
            _ => {
                let end = rest[1..].find(|c: char| {
                    c.is_ascii_whitespace() || "`\"'".contains(c) || (first != '/' && !c.is_ascii_alphanumeric())
                });
                let (word, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
                if first != '/' && !word.bytes().any(|byte| byte.is_ascii_digit()) {
                    kind.extend(word.bytes().map(|byte| byte.to_ascii_lowercase()));
                    kind.push(b' ');
                    words += 1;
                }
                rest = after;
            }
        }
    }
    short_hash(&kind)
}

/// `"status": "running"`, `state=PENDING`.
fn has_waiting_state(text: &[u8]) -> bool {
    STATES.iter().any(|state| {
        memmem::find_iter(text, state.as_bytes()).any(|at| {
            let rest = &text[at + state.len()..];
            let gap = rest.iter().take_while(|byte| b"\"' :=".contains(byte)).count();
            gap > 0 && WAITING_STATES.iter().any(|word| rest[gap..].starts_with(word.as_bytes()))
        })
    })
}

fn lower(text: &str, bytes: usize) -> Vec<u8> {
    text.as_bytes()[..text.len().min(bytes)].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Outcome {
        Outcome::read(std::iter::once(text), false)
    }

    #[test]
    fn failures_are_told_apart_by_kind_and_not_by_what_they_quote() {
        let a = read("ERROR: No replacement was performed, old_str `x = 1` did not appear verbatim in /src/a.py.");
        let b = read(
            "ERROR: No replacement was performed, old_str `def f():\n  pass` did not appear verbatim in /src/b.py.",
        );
        assert_ne!(a.exact, b.exact);
        assert_eq!(a.failure, b.failure);
        assert_ne!(a.failure, read("ERROR: Parameter `old_str` is required for command: str_replace.").failure);
        for fine in ["The file has been edited.", "12 passed, 0 failed", "no errors", ""] {
            assert_eq!(read(fine).failure, 0, "{fine}");
        }
        for fine in [r#"{"ok":1,"error":null,"errors":[]}"#, "failures=0", r#""failed_checks": 0,"#, "without errors"] {
            assert_eq!(read(fine).failure, 0, "{fine}");
        }
        for bad in ["10 failed", r#"{"error": 0.5}"#, r#"{"error":"disk full"}"#, "errors: 01", "No results found."] {
            assert_ne!(read(bad).failure, 0, "{bad}");
        }
        assert!(read("No results found.").is_nothing && !read("Error: no results").is_nothing);
        assert_ne!(Outcome::read(std::iter::once("42"), true).failure, 0, "marked by the dialect");
    }

    #[test]
    fn what_is_left_is_counted() {
        let table = [
            ("could not compile due to 4 previous errors", Some(4)),
            ("Ran 60 tests\nFAILED (failures=29)", Some(29)),
            ("12 passing\n3 failing", Some(3)),
            ("errors: 7", Some(7)),
            ("line 12 of the file has an error", None),
            ("3 files changed", None),
        ];
        for (text, left) in table {
            assert_eq!(read(text).left, left, "{text}");
        }
    }

    #[test]
    fn waiting_is_seen() {
        for text in [
            r#"{"job": "job-1", "status": "running", "progress": 8}"#,
            "state=PENDING",
            "The build is still running",
            "not ready",
        ] {
            assert!(read(text).is_waiting, "{text}");
        }
        for text in ["Error: non-pending order cannot be modified", "Running script x", "status: done"] {
            assert!(!read(text).is_waiting, "{text}");
        }
    }

    #[test]
    fn a_count_that_grows_is_seen() {
        let (nine, twelve) = (read("step 9/100: 63 passed, 0 failed"), read("step 12/100: 84 passed, 0 failed"));
        assert!(twelve.has_grown(&nine));
        assert!(!nine.has_grown(&twelve) && !nine.has_grown(&nine));
        assert!(!read("9 passed, 2 failed").has_grown(&read("8 passed, 3 failed")), "one has fallen");
        assert!(!read("1 2 3 4 5 6 8").has_grown(&read("1 2 3 4 5 6 7")), "too many numbers");
        assert!(read("1 2 3 4 5 7").has_grown(&read("1 2 3 4 5 6")));
    }
}
