//! The name of a value, and what it promises.

use super::words::{
    KEY_OF, NO_SECRET_ANYWHERE, NO_SECRET_LAST, STILL_PASSWORD, is_one_of, may_follow, may_not_precede,
};
use crate::dlp::byte_set::ByteSet;
use crate::dlp::random::makeup;
use crate::dlp::view::View;

/// Longest part of a name on either side of the beginning of the word in it.
const SIDE_BYTES: usize = 64;
/// Longest that follows the word for a secret without a break, and one more.
const REST_BYTES: usize = 17;
/// Words of one name that are looked at.
const WORDS: usize = 16;
/// Fewest bytes of a value that a dash glued to its name.
const GLUED_BYTES: usize = 20;
/// Most bytes of one.
const GLUED_BYTES_MOST: usize = 512;

/// What names are made of.
static PART: ByteSet = ByteSet::alphanumeric_and(b"_-.$");

/// How much a name promises a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// `db_password`: anything can be one.
    Password,
    /// `client_secret`, `api_key`: a value that does not look like words.
    Secret,
    /// `key`, `auth`: a long value that looks drawn by chance.
    Vague,
}

/// A name that holds a word for a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'t> {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where a value begins that a dash glued to the name: `apikey-4668d0d3…`.
    pub(super) glued: Option<usize>,
    /// Where the word for a secret ends: a value may be glued there.
    pub(super) word_end: usize,
    text: &'t [u8],
    word: &'static str,
    place: usize,
}

impl<'t> Name<'t> {
    /// The name around `word`, which begins at `at`, unless that is part of another word: `tokenizer`.
    pub(super) fn around(view: &View<'t>, at: usize, word: &'static str) -> Option<Name<'t>> {
        let text = view.text;
        let behind = at + word.len();
        let ahead = &text[behind..text.len().min(behind + SIDE_BYTES)];
        // One letter tells most: `keyboard`, `credit`.
        if let Some(next) = ahead.first().filter(|next| next.is_ascii_lowercase())
            && !may_follow(word).iter().any(|one| one.as_bytes().first() == Some(next))
        {
            return None;
        }
        let rest = word_end(&ahead[..ahead.len().min(REST_BYTES)], &text[at..behind]);
        if !is_one_of(&ahead[..rest], may_follow(word)) {
            return None;
        }
        let is_within = ahead.get(rest).is_some_and(|byte| is_part(*byte));
        if word == "api" && rest == 0 && is_within {
            // `api_key` is met again at `key`.
            return None;
        }
        let glued = glued(text, behind + rest);
        let mut end =
            behind + if glued.is_some() { rest } else { ahead.iter().take_while(|byte| is_part(**byte)).count() };
        if end - behind >= SIDE_BYTES {
            return None;
        }
        while end > behind && b".-$".contains(&text[end - 1]) {
            end -= 1;
        }
        let before = text[..at].iter().rev().take(SIDE_BYTES).take_while(|byte| is_part(**byte)).count();
        if before == SIDE_BYTES {
            return None;
        }
        // The first letter may belong to an escape: `\\npassword`.
        let start = at - before;
        let is_escape = start < at && view.before(start + 1).is_none();
        let start = start + usize::from(is_escape);
        Some(Name { start, end, glued, word_end: behind + rest, text: &text[start..end], word, place: at - start })
    }

    /// Whether all its letters are capitals: `DB_PASSWORD`.
    pub(super) fn is_upper(&self) -> bool {
        !self.text.iter().any(u8::is_ascii_lowercase)
    }

    /// Whether the word for a secret is its last: `set_password`, but not `password_encode`.
    pub(super) fn is_last(&self) -> bool {
        let behind = &self.text[self.place + self.word.len()..];
        word_end(behind, &self.text[self.place..self.place + self.word.len()]) == behind.len()
    }

    /// Whether the word is one for passwords, which need not look like chance.
    pub(super) fn is_password(&self) -> bool {
        matches!(self.word, "pass" | "pwd")
    }

    /// Whether the word is `pass` alone, which is more often what tests and renderers do.
    pub(super) fn is_pass(&self) -> bool {
        let rest = &self.text[self.place + self.word.len()..];
        self.word == "pass" && !rest.first().is_some_and(u8::is_ascii_alphabetic)
    }

    /// What it promises, if anything.
    pub(super) fn worth(&self) -> Option<Worth> {
        let (mut words, mut count) = ([&self.text[..0]; WORDS], 0);
        let (mut mine, mut at) = (None, 0);
        while let Some((start, end)) = next_word(self.text, at) {
            if start <= self.place && self.place < end {
                mine = Some((count, start));
            }
            *words.get_mut(count)? = &self.text[start..end];
            (count, at) = (count + 1, end);
        }
        let (words, (mine, start)) = (&words[..count], mine?);
        let head = &self.text[start..self.place];
        let is_taken_back = words.iter().any(|word| is_one_of(word, NO_SECRET_ANYWHERE))
            || (mine + 1 < count && is_one_of(words[count - 1], NO_SECRET_LAST))
            || may_not_precede(self.word).iter().any(|other| ends_with(head, other.as_bytes()));
        if is_taken_back {
            return None;
        }
        let is_plain = words[mine].len() == self.word.len() && !words[mine].iter().all(u8::is_ascii_uppercase);
        let is_key_of = |word: &[u8]| KEY_OF.iter().any(|of| ends_with(word, of.as_bytes()));
        Some(match self.word {
            "pass" | "pwd" if words[mine + 1..].iter().all(|word| is_one_of(word, STILL_PASSWORD)) => Worth::Password,
            "private" | "access" | "api" if count == 1 && is_plain => return None,
            "secret" | "token" | "cred" | "jwt" => Worth::Secret,
            "key" if is_key_of(head) || (head.is_empty() && mine > 0 && is_one_of(words[mine - 1], KEY_OF)) => {
                Worth::Secret
            }
            _ => Worth::Vague,
        })
    }
}

#[inline]
pub(super) fn is_part(byte: u8) -> bool {
    PART.has(byte)
}

/// Where the value begins if the name goes on, behind a dash, with what no name has in it.
fn glued(text: &[u8], dash: usize) -> Option<usize> {
    let value = text.get(dash + 1..).filter(|_| text[dash] == b'-')?;
    let value = &value[..value.iter().take(GLUED_BYTES_MOST).take_while(|byte| byte.is_ascii_alphanumeric()).count()];
    let made = makeup(value);
    (value.len() >= GLUED_BYTES && made.digits >= 2 && made.is_rarer_than(430)).then_some(dash + 1)
}

/// The next word from `from` on: parts between `_`, `-`, `.`, and of `camelCase` and `XMLCase`.
fn next_word(name: &[u8], from: usize) -> Option<(usize, usize)> {
    let start = from + name[from..].iter().position(u8::is_ascii_alphanumeric)?;
    Some((start, start + 1 + word_end(&name[start + 1..], &name[start..=start])))
}

/// How much of `rest` belongs to the word whose beginning is `before`.
fn word_end(rest: &[u8], before: &[u8]) -> usize {
    let mut last = before.last().copied().unwrap_or_default();
    for (at, &byte) in rest.iter().enumerate() {
        let is_turn = byte.is_ascii_uppercase()
            && (last.is_ascii_lowercase()
                || (last.is_ascii_uppercase() && rest.get(at + 1).is_some_and(u8::is_ascii_lowercase)));
        if is_turn || !byte.is_ascii_alphanumeric() {
            return at;
        }
        last = byte;
    }
    rest.len()
}

fn ends_with(word: &[u8], end: &[u8]) -> bool {
    word.len() >= end.len() && word[word.len() - end.len()..].eq_ignore_ascii_case(end)
}
