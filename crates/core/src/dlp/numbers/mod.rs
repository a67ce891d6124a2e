//! Cards, accounts, telephone numbers, addresses of machines: what digits are.
//!
//! A number is read once, as groups of digits with little between them; each kind then says whether it is one of its
//! own. A number that touches the end of the text is left open: at most 23 digits are held back.

mod address;
mod card;
mod edge;
mod groups;
mod iban;
mod near;
mod optional;
mod phone;
mod ssn;
#[cfg(test)]
mod tests;

pub(super) use address::{Net, read as read_address};
pub(super) use edge::left;
pub(super) use iban::at_country;
pub(super) use optional::look_for_optional;

use super::hits::Hits;
use super::view::View;
use groups::Number;

/// A number has at least so many digits …
pub(super) const LEAST_DIGITS: usize = 7;
/// … the first of them within so many bytes.
pub(super) const DIGITS_WITHIN: usize = 24;

/// Whether [`at_digits`] can find anything at `at`, where enough digits for a number or an address begin, and more than
/// [`DIGITS_WITHIN`] bytes of text. Each bit of `digits` says whether one of those is a digit. Not asked when [`wants_more`]. No branch
/// depends on the text, for there is no guessing it.
#[inline]
pub(super) fn may_begin(view: &View<'_>, at: usize, digits: u64) -> bool {
    let rest = &view.text[at..];
    let before = at.checked_sub(1).map_or(0, |before| view.text[before]);
    let group = digits.trailing_ones() as usize;
    let is_grouped = (group >= LEAST_DIGITS) | rest.get(group).is_none_or(|byte| groups::may_part(*byte));
    let is_many = digits.count_ones() as usize >= LEAST_DIGITS;
    let is_date = is_date(rest, digits) & !matches!(before, b'+' | b'(' | b'u');
    (is_grouped | (before == b'u')) & ((is_many & !is_date) | address::may_be_private(rest))
}

/// `2024-03-09`: no card and no person's number, and no telephone's unless a `+` stands before it.
#[inline]
fn is_date(rest: &[u8], digits: u64) -> bool {
    const SHAPE: u64 = 0b011_0110_1111;
    let is_year = rest.first_chunk().is_some_and(|two| (two == b"19") | (two == b"20"));
    is_year & (digits & 0b111_1111_1111 == SHAPE)
}

/// Whether a kind is looked for that is off by default and may begin with any digit.
pub(super) fn wants_more(hits: &Hits) -> bool {
    address::wants_public(hits)
}

/// Looks at a place where a group of digits begins.
pub(super) fn at_digits(view: &View<'_>, at: usize, hits: &mut Hits) {
    address::look(view, at, hits);
    let begin = behind_escape(view, at);
    if !can_begin(view, begin) || !may_be_number(view, at) {
        return;
    }
    let number = Number::read(view, begin);
    if number.is_open {
        return hits.unsure(phone::first_start(view, &number));
    }
    if number.digits(number.groups().len()).take(LEAST_DIGITS).count() < LEAST_DIGITS {
        return;
    }
    if !card::look(view, &number, hits) && !ssn::look(view, &number, hits) {
        phone::look(view, &number, hits);
    }
}

/// Whether a card, a telephone or a person's number can begin at `at`. Nothing else but addresses, and kinds that are
/// off by default, can begin where this says no.
pub(super) fn may_be_number(view: &View<'_>, at: usize) -> bool {
    let end = at + DIGITS_WITHIN;
    let near = &view.text[at..view.text.len().min(end)];
    view.may_go_on(end) || near.iter().filter(|byte| byte.is_ascii_digit()).count() >= LEAST_DIGITS
}

/// Whether a number can begin here, or only go on: most groups stand in the middle of one, and cost nothing more.
fn can_begin(view: &View<'_>, at: usize) -> bool {
    let group = &view.text[at..view.text.len().min(at + DIGITS_WITHIN)];
    let length = group.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_open = view.may_go_on(at + length);
    let (is_digit, is_digits) = (|byte: &u8| byte.is_ascii_digit(), |some: &[u8]| some.iter().all(u8::is_ascii_digit));
    match (left(view, at), &view.text[..at]) {
        (Some(byte), _) if edge::is_wordly(byte) || byte == b'.' => false,
        (Some(b'-' | b'/'), [.., before, _]) if is_digit(before) => false,
        // A card needs its name here, nothing else can begin.
        (Some(b'-' | b'/'), _) => is_open || length == 4 || length >= 12,
        (_, [.., b' ', a, b, c, d, b' ']) if length == 4 && is_digits(&[*a, *b, *c, *d]) => false,
        (_, [.., before, b' ']) if is_digit(before) => match (length, &group[length..]) {
            _ if is_open => true,
            // `1 (800) 555-0199`.
            (1, [_, a, b, c, ..]) => group[0] == b'1' && (is_digits(&[*a, *b, *c]) || *a == b'('),
            (1, _) => true,
            (3 | 4 | 9 | 12.., _) => true,
            _ => false,
        },
        _ => true,
    }
}

/// The same place, or the end of the escape whose digits these are: `\u00394111`.
fn behind_escape(view: &View<'_>, at: usize) -> usize {
    let is_escape = |back: &usize| at >= *back && view.text[at - back..].starts_with(b"\\u");
    let end = (2..6).find(is_escape).map_or(at, |back| at - back + 6);
    if view.text.get(end).is_some_and(u8::is_ascii_digit) { end } else { at }
}
