//! Triggers that single bytes and their neighbours tell, as bit operations on masks.

use super::masks::{BLOCK, Masks};
use super::{ADDRESS_DIGITS, MayBe, NUMBER_DIGITS, NUMBER_WITHIN, TokenStart, Trigger};
use crate::dlp::view::View;

/// So many places are asked about at once.
const FEW: usize = 1;

/// Calls `look` for each trigger in `start..end`, in their order. Whether a word really begins at one of them remains to be asked: only
/// the bytes next to it were looked at.
#[inline]
pub(super) fn each(
    view: &View<'_>,
    start: usize,
    end: usize,
    may_be: &MayBe<impl Fn(TokenStart) -> bool, impl Fn(&View<'_>, usize, u64) -> bool>,
    mut look: impl FnMut(Trigger, usize),
) {
    let mut before = Before::of(view.text, start);
    let mut here = Masks::at(view.text, start);
    let mut at = start;
    while at < end {
        let next = Masks::at(view.text, at + BLOCK);
        // The last block of a stretch may be a part of one.
        let inside = if end - at < BLOCK { (1 << (end - at)) - 1 } else { u64::MAX };
        let word = here.letter | here.digit;
        // Behind an escape such as `\n` a word may begin as well.
        let begins = word & inside & (!(word << 1 | before.word) | here.backslash << 2 | before.backslash);
        let signs = here.sign & inside;
        let tokens = kept_of_few(begins & long_runs(here.run, next.run), |bit| {
            let first = view.text.get(at + bit..).and_then(|rest| rest.first_chunk());
            first.is_some_and(|first| (may_be.token)(*first))
        });
        let digits = kept(begins & here.digit, |bit| {
            let bits = digits_from(here.digit, next.digit, bit);
            // Most have too few digits for anything.
            (has_four(bits) && (may_be.number)(view, at + bit, bits) && is_number(view, at + bit, bits))
                || view.may_go_on(at + bit + NUMBER_WITHIN)
        });
        let letters = here.letter & ahead(here.letter, next.letter, 1);
        let countries = begins & letters & ahead(here.digit, next.digit, 2) & ahead(here.digit, next.digit, 3);
        let mut places = signs | tokens | countries | digits;
        while places != 0 {
            let bit = places.trailing_zeros() as usize;
            let is = |mask: u64| mask >> bit & 1 == 1;
            if is(signs) {
                look(Trigger::Sign, at + bit);
            }
            if is(tokens) {
                look(Trigger::Token, at + bit);
            }
            if is(countries) {
                look(Trigger::Country, at + bit);
            }
            if is(digits) {
                look(Trigger::Digits, at + bit);
            }
            places &= places - 1;
        }
        before = Before { word: word >> 63, backslash: here.backslash >> 62 };
        here = next;
        at += BLOCK;
    }
}

/// What the block before ends in, as the lowest bits of this one.
struct Before {
    word: u64,
    backslash: u64,
}

impl Before {
    fn of(text: &[u8], start: usize) -> Before {
        let byte = |back: usize| start.checked_sub(back).map(|at| text[at]);
        let is_backslash = |back| u64::from(byte(back) == Some(b'\\'));
        Before {
            word: u64::from(byte(1).is_some_and(|byte| byte.is_ascii_alphanumeric())),
            backslash: is_backslash(2) | is_backslash(1) << 1,
        }
    }
}

/// The mask as it is seen from `by` bytes further back.
#[inline]
fn ahead(here: u64, next: u64, by: u32) -> u64 {
    here >> by | next << (64 - by)
}

/// Where 14 set bits follow.
#[inline]
fn long_runs(here: u64, next: u64) -> u64 {
    const { assert!(super::TOKEN_RUN == 14, "the shifts below make 14") };
    let one = u128::from(here) | u128::from(next) << 64;
    let two = one & one >> 1;
    let four = two & two >> 2;
    let eight = four & four >> 4;
    (eight & eight >> 6) as u64
}

/// As [`kept`], for what most blocks have one of: that is asked about without a branch that guesses how many.
#[inline]
fn kept_of_few(mut places: u64, is_worth_it: impl Fn(usize) -> bool) -> u64 {
    let mut few = 0;
    for _ in 0..FEW {
        // The last place stands for none.
        let bit = (places | 1 << 63).trailing_zeros();
        few |= (places >> bit & u64::from(is_worth_it(bit as usize))) << bit;
        places &= places.wrapping_sub(1);
    }
    few | kept(places, is_worth_it)
}

/// Those of the places that are worth it: a loop of its own, for nearly none are.
#[inline]
fn kept(mut places: u64, is_worth_it: impl Fn(usize) -> bool) -> u64 {
    let mut kept = 0;
    while places != 0 {
        let bit = places.trailing_zeros();
        kept |= u64::from(is_worth_it(bit as usize)) << bit;
        places &= places - 1;
    }
    kept
}

/// Which of the bytes from `bit` on are digits.
#[inline]
fn digits_from(here: u64, next: u64, bit: usize) -> u64 {
    let both = u128::from(here) | u128::from(next) << 64;
    (both >> bit) as u64 & ((1 << NUMBER_WITHIN) - 1)
}

/// Whether at least four bits are set.
#[inline]
fn has_four(bits: u64) -> bool {
    const { assert!(ADDRESS_DIGITS == 4 && NUMBER_DIGITS > 4, "less is nothing") };
    let without_first = |bits: u64| bits & bits.wrapping_sub(1);
    without_first(without_first(without_first(bits))) != 0
}

#[inline]
fn is_number(view: &View<'_>, at: usize, digits: u64) -> bool {
    let count = digits.count_ones();
    let is_address = || view.text[at..].iter().take(4).any(|byte| *byte == b'.');
    count >= NUMBER_DIGITS || count >= ADDRESS_DIGITS && is_address()
}
