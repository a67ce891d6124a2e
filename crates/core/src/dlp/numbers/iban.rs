//! International bank account numbers: country, length, check digits (ISO 13616).

use super::edge::{self, Edge};
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

const IBAN: Entity = entity("IBAN");

/// Lengths with country and check digits, by the registry.
const LENGTHS: &[(u8, &[u8])] = &[
    (15, b"NO"),
    (16, b"BE"),
    (18, b"DKFKFOFIGLNLSD"),
    (19, b"MKSI"),
    (20, b"ATBAEEKZXKLTLUMN"),
    (21, b"HRLVLICH"),
    (22, b"BHBGCRGEDEIEMERSGBVA"),
    (23, b"GIIQILOMSOTLAE"),
    (24, b"ADCZMDPKROSASKESSETNVG"),
    (25, b"LYPTST"),
    (26, b"ISTR"),
    (27, b"BIDJFRGRITMCMRSM"),
    (28, b"ALAZBYCYDOGTHUHNLBNIPLSV"),
    (29, b"BREGPSQAUA"),
    (30, b"JOKWMUYE"),
    (31, b"MTSC"),
    (32, b"LC"),
    (33, b"RU"),
];

/// Accounts are mostly digits; words are not.
const LEAST_DIGITS: usize = 9;
/// Most places in which a number is parted.
const MOST_PARTS: usize = 12;

/// Looks at two letters with two digits behind them where a word begins.
pub(in crate::dlp) fn at_country(view: &View<'_>, at: usize, hits: &mut Hits) {
    let Some(length) = length([view.text[at], view.text[at + 1]]) else { return };
    if edge::left(view, at).is_some_and(|byte| edge::is_wordly(byte) || b"+/".contains(&byte)) {
        return;
    }
    let Some(end) = read(view, at, length) else { return };
    let Some(end) = end else { return hits.unsure(at) };
    if !is_valid(&view.text[at..end]) {
        return;
    }
    if matches!(view.text.get(end), Some(b'+' | b'/' | b'=')) {
        return;
    }
    match edge::right(view, end) {
        Edge::Open => hits.unsure(at),
        Edge::GoesOn => {}
        Edge::Ends => hits.found(IBAN, Tier::Proof, at, end),
    }
}

/// Lengths by country, `AA` first; 0 where there are no such numbers.
static BY_COUNTRY: [u8; 26 * 26] = {
    let mut by_country = [0; 26 * 26];
    let mut row = 0;
    while row < LENGTHS.len() {
        let (length, countries) = LENGTHS[row];
        let mut at = 0;
        while at < countries.len() {
            by_country[(countries[at] - b'A') as usize * 26 + (countries[at + 1] - b'A') as usize] = length;
            at += 2;
        }
        row += 1;
    }
    by_country
};

/// How many characters an account's number has in this country, if it has such numbers.
pub(in crate::dlp) fn length(country: [u8; 2]) -> Option<usize> {
    let place = |letter: u8| letter.is_ascii_alphabetic().then(|| usize::from(letter.to_ascii_uppercase() - b'A'));
    let length = BY_COUNTRY[place(country[0])? * 26 + place(country[1])?];
    (length > 0).then_some(length.into())
}

/// Where `length` letters and digits from `at` on end, with one space or dash between them at most. None when something
/// else comes first, and nothing inside when the text ends.
fn read(view: &View<'_>, at: usize, length: usize) -> Option<Option<usize>> {
    let (mut taken, mut parts, mut place, mut digits) = (0, 0, at, 0);
    while taken < length {
        match view.text.get(place) {
            Some(byte) if byte.is_ascii_alphanumeric() => {
                (taken, digits) = (taken + 1, digits + usize::from(byte.is_ascii_digit()));
            }
            Some(b' ' | b'-') if taken >= 4 && parts < MOST_PARTS => {
                parts += 1;
                match view.text.get(place + 1) {
                    Some(next) if !next.is_ascii_alphanumeric() => return None,
                    _ => {}
                }
            }
            Some(_) => return None,
            None => return (!view.is_end).then_some(None),
        }
        // What is left cannot bring enough digits.
        if digits + (length - taken) < LEAST_DIGITS + 2 {
            return None;
        }
        place += 1;
    }
    (digits >= LEAST_DIGITS + 2).then_some(Some(place))
}

/// Whether the check digits are right: the remainder of 97 is one (ISO 7064).
fn is_valid(text: &[u8]) -> bool {
    let characters = text.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let turned = characters.clone().skip(4).chain(characters.take(4));
    let remainder = turned.fold(0_u32, |sum, byte| match byte {
        b'0'..=b'9' => (sum * 10 + u32::from(byte - b'0')) % 97,
        _ => (sum * 100 + u32::from(byte.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    remainder == 1
}
