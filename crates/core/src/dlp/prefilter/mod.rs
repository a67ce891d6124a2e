//! The one pass over every byte: where is a closer look worth its while?
//!
//! Blocks of 64 bytes become bit masks (`masks`), among them where a word that needs a context may stand (`windows`). Bit operations on
//! them list the places (`places`) of a stretch of text that stays in the processor's nearest cache, and words are told apart there
//! (`words`). Inside long base64, which is a picture or a file, nothing is worth a look.
//!
//! A trigger depends on the bytes around it and never on where the text was cut. Near an open end a trigger whose
//! bytes are not all there is either given all the same or lies in the last word, which is held back anyway.

mod base64;
mod masks;
mod places;
mod windows;
mod words;

pub(super) use words::WordSearch;

use std::cell::Cell;

use super::view::View;
use base64::Base64Run;
use places::Places;

/// A token has at least so many bytes from `+` on in the ASCII table without a gap: all of base64, no blanks, no
/// quotes, no brackets.
pub(super) const TOKEN_RUN: usize = 14;
/// A number has at least so many digits...
pub(super) const NUMBER_DIGITS: u32 = 7;
/// ...in so many bytes,
pub(super) const NUMBER_WITHIN: usize = 24;
/// or it is an address: so many digits in those bytes, and a dot in the first four of them.
pub(super) const ADDRESS_DIGITS: u32 = 4;
/// Behind so many bytes of base64 without a gap stands more of it.
pub(super) const BASE64_RUN: usize = super::view::LOOK_BACK;
/// How much text is looked at at a time.
const STRETCH: usize = 2048;

thread_local! {
    /// Room for the places of one text. Most texts are short, and clearing it takes longer than looking at one.
    static PLACES: Cell<Option<Box<Places>>> = const { Cell::new(None) };
}

/// Where to look, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trigger {
    /// A word that is long enough to be a token, and begins like one.
    Token,
    /// An `@`.
    Sign,
    /// The first digit of enough of them.
    Digits,
    /// Two letters and two digits where a word begins.
    Country,
    /// `://`
    Url,
    /// `-----BEGIN`
    Dashes,
    /// One of the words that were asked for, in any case.
    Word(usize),
    /// One of the marks that were asked for, as it is.
    Mark(usize),
}

impl Trigger {
    /// Whether what is found may begin further on. If not, a trigger in the context cannot matter any more.
    pub(super) fn may_lead_on(self) -> bool {
        !matches!(self, Trigger::Sign | Trigger::Digits | Trigger::Country | Trigger::Dashes)
    }
}

/// The first bytes of what may be a token. All of [`TOKEN_RUN`] are there.
pub(super) type TokenStart = [u8; 8];

/// What detectors know of the places where their values begin. Cheap to ask, and asked before anything else.
#[derive(Clone, Copy, Debug)]
pub(super) struct MayBe<T, N> {
    /// Whether a token may begin with these bytes.
    pub(super) token: T,
    /// Whether a number may begin at a place where enough digits stand; each bit says whether a byte from there on is one.
    pub(super) number: N,
}

/// Calls `look` for each trigger from `begin` on, stretch by stretch.
#[inline]
pub(super) fn each_trigger(
    view: &View<'_>,
    begin: usize,
    words: &WordSearch,
    may_be: &MayBe<impl Fn(TokenStart) -> bool, impl Fn(&View<'_>, usize, u64) -> bool>,
    mut look: impl FnMut(Trigger, usize),
) {
    // Taken out for as long as it is used: what is found may be looked into in the same way.
    let mut places = PLACES.take().unwrap_or_else(|| Box::new(Places::new()));
    let [mut of_tokens, mut of_numbers, mut of_others, mut of_words] = [(); 4].map(|()| Base64Run::new(begin));
    let mut start = begin;
    while start < view.text.len() {
        let mut end = view.text.len().min(start + STRETCH);
        if !base64::is_deep_inside(view.text, start, end) {
            end = places.find(view, start, end, words, may_be);
            for at in places.tokens.iter().map(|place| start + place) {
                if view.is_word_start(at) && !of_tokens.is_inside(view.text, at) {
                    look(Trigger::Token, at);
                }
            }
            for at in places.numbers.iter().map(|place| start + place) {
                if view.is_word_start(at) && !of_numbers.is_inside(view.text, at) {
                    look(Trigger::Digits, at);
                }
            }
            for at in places.others.iter().map(|place| start + place) {
                match view.text[at] {
                    b'@' => look(Trigger::Sign, at),
                    _ if !view.is_word_start(at) || of_others.is_inside(view.text, at) => {}
                    _ => look(Trigger::Country, at),
                }
            }
            for at in places.windows.iter().map(|place| start + place) {
                words.each_at(view.text, at, |trigger, at| {
                    if at >= begin && !of_words.is_inside(view.text, at) {
                        look(trigger, at);
                    }
                });
            }
        }
        start = end;
    }
    PLACES.set(Some(places));
}

#[cfg(test)]
mod tests;
