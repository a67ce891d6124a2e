//! Social security numbers of the United States.

use super::edge::{self, Edge};
use super::groups::{Between, Number};
use super::near;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

const SSN: Entity = entity("SSN");

const WORDS: &[&str] = &["ssn", "ssns", "social", "itin", "tin", "taxpayer"];
/// How far before a number without dashes the word for it must stand.
const WORD_WITHIN: usize = 40;

/// So far apart the cells of a row stand at most.
const GAP: usize = 8;

/// Looks at the number for one at its beginning, and says whether there is one.
pub(super) fn look(view: &View<'_>, number: &Number<'_>, hits: &mut Hits) -> bool {
    let groups = number.groups();
    let count = if groups[0].length() == 9 {
        1
    } else if number.has_shape(&[3, 2, 4]) && number.is_even(3) {
        3
    } else {
        return false;
    };
    let (start, end) = (number.start(), groups[count - 1].end);
    let before = edge::left(view, start);
    if before.is_some_and(|byte| edge::is_wordly(byte) || b".-+/$".contains(&byte)) || !is_issued(number.digits(count))
    {
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
    let is_named = || near::is_before(view, start, WORD_WITHIN, WORDS);
    let is_found = match (count, groups[count - 1].between) {
        (3, Between::Dash) => true,
        (3, Between::Space) => is_named() || stands_alone(view, number),
        (1, _) => is_named(),
        _ => false,
    };
    if is_found {
        hits.found(SSN, if count == 3 { Tier::Format } else { Tier::Context }, start, end);
    }
    is_found
}

/// Whether no other number stands beside it: not a row of a table.
fn stands_alone(view: &View<'_>, number: &Number<'_>) -> bool {
    let before = view.text[..number.start()].iter().rev().take(GAP).find(|byte| !b" \t".contains(byte));
    number.groups().len() == 3 && !before.is_some_and(|byte| byte.is_ascii_digit() || b"():+".contains(byte))
}

/// Whether the number can have been given to somebody; those that were printed in advertisements are nobody's.
fn is_issued(mut digits: impl Iterator<Item = u8>) -> bool {
    let mut take = |count: usize| digits.by_ref().take(count).fold(0_u32, |sum, digit| sum * 10 + u32::from(digit));
    let (area, group, serial) = (take(3), take(2), take(4));
    let is_printed = (area, group, serial) == (78, 5, 1120) || (area, group, serial) == (219, 9, 9999);
    !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0 && !is_printed
}
