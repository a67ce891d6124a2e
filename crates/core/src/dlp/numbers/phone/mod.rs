//! Telephone numbers.
//!
//! International ones (`+44 20 …`) tell themselves by country code and length, North American ones by their punctuation.
//! Other national forms need a word beside them, since most numbers with spaces are something else.

mod countries;
mod words;

use super::edge::{self, Edge};
use super::groups::{Between, Number};
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;
use words::Said;

const PHONE: Entity = entity("PHONE");

/// Shorter international numbers need a word beside them.
const LEAST_SURE: usize = 9;
/// National numbers have so many digits.
const NATIONAL: std::ops::RangeInclusive<usize> = 7..=13;
/// Most digits of an extension.
const MOST_EXTENSION: usize = 6;

/// A number that may be a telephone's.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: usize,
    end: usize,
    tier: Tier,
}

/// Looks at the number for a telephone's. Says nothing when it is a part of a longer one.
pub(super) fn look(view: &View<'_>, number: &Number<'_>, hits: &mut Hits) {
    let start = start(view, number);
    let Some(candidate) = candidate(view, number, start) else { return };
    if view.may_go_on(candidate.end + words::PLACE_WITHIN) {
        return hits.unsure(start);
    }
    let end = with_extension(view, candidate.end);
    let is_whole = end > candidate.end || edge::right(view, end) == Edge::Ends || is_place_joined(view, end);
    if is_whole && (candidate.tier != Tier::Context || is_said(view, number, &candidate)) {
        hits.found(PHONE, candidate.tier, start, end);
    }
}

/// Where the number may begin, with `+` and bracket.
pub(super) fn first_start(view: &View<'_>, number: &Number<'_>) -> usize {
    let first = number.start();
    match &view.text[..first] {
        [.., b'+', b'('] => first - 2,
        [.., b'+' | b'('] => first - 1,
        _ => first,
    }
}

/// Where the number begins; a bracket belongs to it when it closes behind the first group.
fn start(view: &View<'_>, number: &Number<'_>) -> usize {
    let first = number.groups()[0];
    let start = first_start(view, number);
    let is_closed = view.text.get(first.end) == Some(&b')');
    if !is_closed && view.text[start..first.start].ends_with(b"(") { first.start } else { start }
}

fn candidate(view: &View<'_>, number: &Number<'_>, start: usize) -> Option<Candidate> {
    let before = edge::left(view, start);
    if before.is_some_and(|byte| edge::is_wordly(byte) || b".-/+$#&%^@\\".contains(&byte)) {
        return None;
    }
    if view.text[start] == b'+' {
        return international(number, start).filter(|_| !before.is_some_and(|byte| b")]*".contains(&byte)));
    }
    north_american(view, number, start).or_else(|| national(view, number, start))
}

fn international(number: &Number<'_>, start: usize) -> Option<Candidate> {
    let groups = number.groups();
    let country = countries::country(number.digits(groups.len()))?;
    let (mut digits, mut found) = (0, None);
    for (place, group) in groups.iter().enumerate() {
        // `+46 (0)8 …`: the zero is for callers inside the country.
        let is_trunk = place > 0 && group.between == Between::Bracket && number.bytes(group) == b"0";
        digits += if is_trunk { 0 } else { group.length() };
        let national = digits.saturating_sub(country.code_digits);
        if (country.least..=country.most).contains(&national) {
            let tier = if digits < LEAST_SURE { Tier::Context } else { Tier::Proof };
            found = Some(Candidate { start, end: group.end, tier });
        }
    }
    found
}

/// `(212) 555-0123`, `212-555-0123`, `212.555.0123`, each also behind a `1`.
fn north_american(view: &View<'_>, number: &Number<'_>, start: usize) -> Option<Candidate> {
    let groups = number.groups();
    let skip = usize::from(number.bytes(&groups[0]) == b"1" && groups.len() > 3);
    let [area, exchange, line, ..] = &groups[skip..] else { return None };
    let is_code = |code: &[u8]| code.len() == 3 && code[0] >= b'2';
    if !is_code(number.bytes(area)) || !is_code(number.bytes(exchange)) || line.length() != 4 {
        return None;
    }
    let is_bracketed = skip == 0 && view.text[start] == b'(' || skip == 1 && area.between == Between::Bracket;
    let is_punctuated = match (exchange.between, line.between) {
        (Between::Bracket, Between::Dash | Between::Dot | Between::Space) => is_bracketed,
        (Between::Dash, Between::Dash) | (Between::Dot, Between::Dot) => start == groups[0].start,
        (Between::Space, Between::Dash) => start == groups[0].start,
        _ => false,
    };
    is_punctuated.then_some(Candidate { start, end: line.end, tier: Tier::Format })
}

/// Any other way to write a number.
fn national(view: &View<'_>, number: &Number<'_>, start: usize) -> Option<Candidate> {
    let groups = number.groups();
    let is_behind_a_number = matches!(view.text[..start], [.., digit, b' '] if digit.is_ascii_digit());
    let last = groups.last()?;
    let digits = number.digits(groups.len()).count();
    let is_short = |group: &super::groups::Group| group.length() < 2;
    let is_lone = groups.len() > 1 && (groups[1..].iter().any(is_short) || groups.len() > 6);
    if is_behind_a_number || is_lone || !NATIONAL.contains(&digits) || is_date(number) || is_address(number) {
        return None;
    }
    Some(Candidate { start, end: last.end, tier: Tier::Context })
}

/// `2024-03-09`, `09.03.2024`, `2024-03-09 12`.
fn is_date(number: &Number<'_>) -> bool {
    let is_year = |group: &super::groups::Group| matches!(number.bytes(group), [b'1', b'9', _, _] | [b'2', b'0', _, _]);
    match number.groups() {
        [year, month, day, ..] if year.length() == 4 => is_year(year) && month.length() <= 2 && day.length() <= 2,
        [day, month, year, ..] if year.length() == 4 => is_year(year) && month.length() <= 2 && day.length() <= 2,
        [from, to] if from.length() == 4 && to.length() == 4 => is_year(from) && is_year(to),
        _ => false,
    }
}

/// Four groups with full stops between them, each of three digits at most.
fn is_address(number: &Number<'_>) -> bool {
    let groups = number.groups();
    groups.len() == 4 && groups[1..].iter().all(|group| group.between == Between::Dot && group.length() <= 3)
}

/// Whether words beside a number say what it is.
fn is_said(view: &View<'_>, number: &Number<'_>, candidate: &Candidate) -> bool {
    let is_grouped = number.groups().len() > 1 || view.text[candidate.start] == b'+';
    match words::before(view, candidate.start) {
        Said::Named => true,
        Said::Hinted if is_grouped => true,
        _ => is_grouped && words::is_place_behind(view, candidate.end),
    }
}

/// `082 490 1693-Office`.
fn is_place_joined(view: &View<'_>, end: usize) -> bool {
    view.text.get(end) == Some(&b'-') && words::is_place_behind(view, end)
}

/// Where the number ends with its extension: `x769`, ` ext. 12`.
fn with_extension(view: &View<'_>, end: usize) -> usize {
    let behind = &view.text[end..view.text.len().min(end + words::PLACE_WITHIN)];
    let space = usize::from(behind.first() == Some(&b' '));
    let word = match &behind[space..] {
        [a, b, c, b'.', ..] if [*a, *b, *c].eq_ignore_ascii_case(b"ext") => 4,
        [a, b, c, ..] if [*a, *b, *c].eq_ignore_ascii_case(b"ext") => 3,
        [b'x' | b'X', ..] => 1,
        _ => return end,
    };
    let gap = usize::from(behind.get(space + word) == Some(&b' '));
    let digits = &behind[space + word + gap..];
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_ended = !digits.get(length).is_some_and(|byte| edge::is_wordly(*byte));
    if (1..=MOST_EXTENSION).contains(&length) && is_ended { end + space + word + gap + length } else { end }
}
