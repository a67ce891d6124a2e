//! Numbers of payment cards: issuer, length, check digit.
//!
//! Ranges that are wide or rarely seen need a word such as `card` before them. A number behind a name that ends in `id`
//! is taken for an id unless such a word stands there.

use super::edge::{self, Edge};
use super::groups::{Between, Number};
use super::near;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

const CREDIT_CARD: Entity = entity("CREDIT_CARD");

/// How the digits are grouped on cards.
const SHAPES: &[&[usize]] = &[&[4, 4, 4, 4, 3], &[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 3], &[4, 4, 4, 2]];

const WORDS: &[&str] = &[
    "card",
    "cards",
    "cc",
    "ccn",
    "ccnum",
    "cardnumber",
    "cardno",
    "creditcard",
    "credit",
    "debit",
    "visa",
    "mastercard",
    "amex",
    "maestro",
    "discover",
    "diners",
    "unionpay",
    "jcb",
    "pan",
    "cvv",
    "cvc",
    "carte",
    "karte",
    "tarjeta",
    "kreditkarte",
    "kort",
    "carta",
    "cartao",
];

/// Names of values that are no cards.
const OTHER: &[&str] = &[
    "id",
    "ids",
    "uuid",
    "order",
    "tracking",
    "sku",
    "timestamp",
    "ts",
    "time",
    "serial",
    "seed",
    "hash",
    "offset",
    "size",
    "isbn",
    "ean",
    "gtin",
    "upc",
    "barcode",
    "invoice",
    "reference",
    "ref",
    "sequence",
    "seq",
    "version",
    "revision",
    "snowflake",
    "epoch",
    "nonce",
];

/// How far before a card the word for it may stand.
const WORD_WITHIN: usize = 64;

/// Looks at the number for a card at its beginning, and says whether there is one.
pub(super) fn look(view: &View<'_>, number: &Number<'_>, hits: &mut Hits) -> bool {
    let Some(count) = groups_of_card(number) else { return false };
    let (start, end) = (number.start(), number.groups()[count - 1].end);
    let mut digits = [0; 19];
    let mut length = 0;
    for digit in number.digits(count) {
        digits[length] = digit;
        length += 1;
    }
    let digits = &digits[..length];
    let Some(issuer) = issuer(digits) else { return false };
    if !is_luhn(digits) || digits.iter().all(|digit| *digit == digits[0]) {
        return false;
    }
    let before = edge::left(view, start);
    if before.is_some_and(|byte| edge::is_wordly(byte) || b".+$".contains(&byte)) {
        return false;
    }
    match edge::right(view, end) {
        Edge::Open => {
            hits.unsure(start);
            return false;
        }
        Edge::GoesOn => return false,
        Edge::Ends => {}
    }
    let is_named = near::is_before(view, start, WORD_WITHIN, WORDS);
    let needs_name = issuer == Issuer::Wide
        || before.is_some_and(|byte| b"-/".contains(&byte))
        || near::any(near::key_before(view, start), OTHER)
        || count > 1 && stands_in_a_row(number, count);
    let is_found = is_named || !needs_name;
    if is_found {
        hits.found(CREDIT_CARD, Tier::Proof, start, end);
    }
    is_found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Issuer {
    /// The range and the length tell.
    Narrow,
    /// Many other numbers begin so.
    Wide,
}

/// How many of the groups are a card's.
fn groups_of_card(number: &Number<'_>) -> Option<usize> {
    let groups = number.groups();
    if (12..=19).contains(&groups[0].length()) {
        return Some(1);
    }
    let shape = SHAPES.iter().find(|shape| {
        number.has_shape(shape)
            && number.is_even(shape.len())
            && matches!(groups[1].between, Between::Space | Between::Dash)
    })?;
    Some(shape.len())
}

/// Whether one more group of four stands behind: a row of numbers, then. Before a card none does.
fn stands_in_a_row(number: &Number<'_>, count: usize) -> bool {
    let groups = number.groups();
    groups.get(count).is_some_and(|group| group.length() == 4 && group.between == groups[1].between)
}

/// Who issues cards with such a number.
fn issuer(digits: &[u8]) -> Option<Issuer> {
    let first = |count: usize| digits[..count].iter().fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    let (two, three, four, six) = (first(2), first(3), first(4), first(6));
    let length = digits.len();
    let is_narrow = match length {
        16 => {
            digits[0] == 4
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || (3528..=3589).contains(&four)
                || four == 6011
                || two == 65
                || (644..=649).contains(&three)
                || two == 62
                || (2200..=2204).contains(&four)
                || matches!(four, 5019 | 6759)
        }
        15 => matches!(two, 34 | 37),
        14 => (300..=305).contains(&three) || matches!(two, 36 | 38 | 39),
        17..=19 => (622_126..=622_925).contains(&six) || length == 19 && digits[0] == 4,
        _ => false,
    };
    // The first digit says what an issuer does: 3 to 6 are travel and banking, 1 airlines, 2 banks as well.
    let is_wide = match length {
        12 => two == 50 || (56..=58).contains(&two) || digits[0] == 6,
        13..=19 => (3..=6).contains(&digits[0]) || length == 15 && (digits[0] == 1 || four == 2131),
        _ => false,
    };
    if is_narrow { Some(Issuer::Narrow) } else { is_wide.then_some(Issuer::Wide) }
}

/// Whether the last digit is the one that the others demand (ISO/IEC 7812).
pub(super) fn is_luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let weigh = |(place, digit): (usize, &u8)| u32::from(if place % 2 == 1 { doubled(*digit) } else { *digit });
    digits.iter().rev().enumerate().map(weigh).sum::<u32>().is_multiple_of(10)
}
