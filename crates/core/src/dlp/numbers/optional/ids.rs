//! Numbers of banks and of persons in some countries, each with its check digit.

use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::numbers::card::is_luhn;
use crate::dlp::numbers::edge::{self, Edge};
use crate::dlp::numbers::groups::{Between, Number};
use crate::dlp::numbers::near;
use crate::dlp::view::View;

const ABA_ROUTING: Entity = entity("ABA_ROUTING");
const BR_CPF: Entity = entity("BR_CPF");
const CA_SIN: Entity = entity("CA_SIN");
const ES_DNI: Entity = entity("ES_DNI");
const IN_AADHAAR: Entity = entity("IN_AADHAAR");

/// How far before a number the word for it may stand.
const WORD_WITHIN: usize = 48;

/// What one kind of number looks like.
struct Form {
    entity: Entity,
    /// Lengths of the groups, when it is written in groups.
    shape: &'static [usize],
    /// What stands between the groups.
    between: &'static [&'static [Between]],
    /// The groups alone tell; else a word must stand before them, as before bare digits.
    is_telling: bool,
    words: &'static [&'static str],
    is_valid: fn(&[u8]) -> bool,
}

const FORMS: &[Form] = &[
    Form {
        entity: ABA_ROUTING,
        shape: &[9],
        between: &[&[]],
        is_telling: false,
        words: &["aba", "routing", "rtn"],
        is_valid: is_routing,
    },
    Form {
        entity: BR_CPF,
        shape: &[3, 3, 3, 2],
        between: &[&[Between::Dot, Between::Dot, Between::Dash]],
        is_telling: true,
        words: &["cpf"],
        is_valid: is_cpf,
    },
    Form {
        entity: CA_SIN,
        shape: &[3, 3, 3],
        between: &[&[Between::Space, Between::Space], &[Between::Dash, Between::Dash]],
        is_telling: false,
        words: &["sin", "insurance", "nas"],
        is_valid: is_sin,
    },
    Form {
        entity: IN_AADHAAR,
        shape: &[4, 4, 4],
        between: &[&[Between::Space, Between::Space], &[Between::Dash, Between::Dash]],
        is_telling: true,
        words: &["aadhaar", "aadhar", "uidai", "uid"],
        is_valid: is_aadhaar,
    },
];

/// Looks at the number for one of these at its beginning.
pub(super) fn look(view: &View<'_>, number: &Number<'_>, hits: &mut Hits) {
    for form in FORMS {
        if hits.wants(form.entity) {
            look_for(view, number, form, hits);
        }
    }
    if hits.wants(ES_DNI) {
        look_for_dni(view, number, hits);
    }
}

fn look_for(view: &View<'_>, number: &Number<'_>, form: &Form, hits: &mut Hits) {
    let groups = number.groups();
    let total = form.shape.iter().sum();
    let is_grouped = form.shape.len() > 1
        && number.has_shape(form.shape)
        && form.between.iter().any(|between| {
            let kinds = groups[1..form.shape.len()].iter().map(|group| group.between);
            kinds.eq(between.iter().copied())
        });
    let count = match (is_grouped, groups[0].length() == total) {
        (true, _) => form.shape.len(),
        (_, true) => 1,
        _ => return,
    };
    let mut digits = [0; 12];
    for (place, digit) in digits.iter_mut().zip(number.digits(count)) {
        *place = digit;
    }
    let (start, end) = (number.start(), groups[count - 1].end);
    let before = edge::left(view, start);
    if before.is_some_and(|byte| edge::is_wordly(byte) || b".-+/$".contains(&byte))
        || !(form.is_valid)(&digits[..total])
    {
        return;
    }
    match edge::right(view, end) {
        Edge::Open => return hits.unsure(start),
        Edge::GoesOn => return,
        Edge::Ends => {}
    }
    let is_row = is_grouped && groups.len() > count;
    if is_grouped && form.is_telling && !is_row || near::is_before(view, start, WORD_WITHIN, form.words) {
        hits.found(form.entity, Tier::Format, start, end);
    }
}

/// `12345678Z`, `X1234567L`: the letter is the remainder of 23.
fn look_for_dni(view: &View<'_>, number: &Number<'_>, hits: &mut Hits) {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let group = number.groups()[0];
    let foreigner = group.start.checked_sub(1).and_then(|at| b"XYZ".iter().position(|letter| *letter == view.text[at]));
    let (start, first) = match (group.length(), foreigner) {
        (8, _) => (group.start, 0),
        (7, Some(first)) => (group.start - 1, first),
        _ => return,
    };
    if edge::left(view, start).is_some_and(edge::is_wordly) {
        return;
    }
    let dash = usize::from(view.text.get(group.end) == Some(&b'-'));
    let end = group.end + dash + 1;
    if view.may_go_on(end) {
        return hits.unsure(start);
    }
    let value = number.digits(1).fold(first, |sum, digit| sum * 10 + usize::from(digit));
    let is_longer = view.text.get(end).is_some_and(|byte| edge::is_wordly(*byte));
    if view.text.get(end - 1) == Some(&LETTERS[value % 23]) && !is_longer {
        hits.found(ES_DNI, Tier::Format, start, end);
    }
}

/// Weights 3, 7, 1; the first two digits name a district of the Federal Reserve.
fn is_routing(digits: &[u8]) -> bool {
    let sum: u32 =
        digits.iter().zip([3, 7, 1].into_iter().cycle()).map(|(digit, weight)| u32::from(*digit) * weight).sum();
    let district = digits[0] * 10 + digits[1];
    sum.is_multiple_of(10) && matches!(district, 1..=12 | 21..=32 | 61..=72 | 80)
}

/// Two check digits, each the remainder of 11.
fn is_cpf(digits: &[u8]) -> bool {
    let check = |count: usize| {
        let sum: usize =
            digits[..count].iter().enumerate().map(|(at, digit)| usize::from(*digit) * (count + 1 - at)).sum();
        (sum * 10 % 11 % 10) as u8
    };
    digits.iter().any(|digit| *digit != digits[0]) && check(9) == digits[9] && check(10) == digits[10]
}

fn is_sin(digits: &[u8]) -> bool {
    !matches!(digits[0], 0 | 8) && is_luhn(digits)
}

/// Verhoeff's scheme: turns and mirrorings of a pentagon.
fn is_aadhaar(digits: &[u8]) -> bool {
    const TURNED: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let permuted = |digit: u8, times: usize| (0..times).fold(digit, |digit, _| TURNED[usize::from(digit)]);
    let multiplied = |a: u8, b: u8| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b - 5) % 5,
        (false, true) => 5 + (a - 5 + 5 - b) % 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let sum =
        digits.iter().rev().enumerate().fold(0, |sum, (place, digit)| multiplied(sum, permuted(*digit, place % 8)));
    digits[0] >= 2 && sum == 0
}
