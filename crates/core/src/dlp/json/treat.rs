//! What becomes of what was found: edits of the raw bytes that leave the rest as it is.

use std::collections::BTreeSet;
use std::ops::Range;

use zeroize::Zeroizing;

use super::escape::{escaped, unescaped};
use super::found::{Form, Found, What};
use crate::dlp::inspector::{Inspector, Place, Treatment};
use crate::dlp::kind::Entity;
use crate::dlp::policy::Direction;
use crate::dlp::restore;
use crate::dlp::sighting::Sightings;

/// What is to be done with a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// In order and apart from each other: raw bytes to put in the place of others. See [`apply_edits`].
    pub edits: Vec<(Range<usize>, String)>,
    /// Something was found for which the call is stopped. The body must not go on, edited or not.
    pub is_stopped: bool,
}

/// The body with the edits made.
#[must_use]
pub fn apply_edits(body: &[u8], edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let grown: usize = edits.iter().map(|(_, with)| with.len()).sum();
    let mut out = Vec::with_capacity(body.len() + grown);
    let mut at = 0;
    for (range, with) in edits {
        out.extend_from_slice(body.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(with.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(body.get(at..).unwrap_or_default());
    out
}

/// What stands for the rest of a value in a text that it filled alone: providers refuse empty ones.
const REST: &str = "[REDACTED]";

pub(super) fn treat_all(
    inspector: &Inspector,
    direction: Direction,
    body: &[u8],
    found: &[Found],
    logprobs: Vec<Range<usize>>,
    sightings: &mut Sightings,
) -> Inspected {
    let mut inspected = Inspected::default();
    let (mut is_hidden, mut is_passed_over) = (false, false);
    for one in found {
        match one.what {
            What::Placeholder(entity, number) => {
                if let Some(value) = restore::value(inspector, entity, number) {
                    inspected.edits.push((one.first.clone(), escaped(&value, one.level + 1)));
                }
            }
            What::Given(entity, _) => {
                let place = Place { path: one.path.trim_start_matches('.'), start: one.start };
                inspector.note(direction, entity, &value_of(body, one), place, sightings);
            }
            What::Finding(entity, tier) => {
                let value = value_of(body, one);
                if !is_passed_over && inspector.is_new(direction, entity, &value) {
                    is_passed_over = true;
                    restore::pass_over_own(inspector, &kinds_of(found), body);
                }
                let place = Place { path: one.path.trim_start_matches('.'), start: one.start };
                match inspector.treat(direction, entity, tier, &value, place, sightings) {
                    Treatment::Keep => {}
                    Treatment::Stop => inspected.is_stopped = true,
                    Treatment::Replace(with) => {
                        is_hidden = true;
                        replace(one, with, &mut inspected.edits);
                    }
                }
            }
        }
    }
    if is_hidden {
        // They would tell what was hidden, token by token.
        let empty = |range: &Range<usize>| if body.get(range.start) == Some(&b'[') { "[]" } else { "null" };
        inspected.edits.extend(logprobs.into_iter().map(|range| (range.clone(), empty(&range).to_owned())));
    }
    inspected.edits = apart(inspected.edits);
    inspected
}

fn kinds_of(found: &[Found]) -> BTreeSet<Entity> {
    let kind = |one: &Found| match one.what {
        What::Finding(entity, _) => Some(entity),
        What::Given(..) | What::Placeholder(..) => None,
    };
    found.iter().filter_map(kind).collect()
}

fn value_of(body: &[u8], found: &Found) -> Zeroizing<String> {
    let times = found.level + u8::from(found.form != Form::Number);
    let mut value = Zeroizing::new(Vec::new());
    for range in found.ranges() {
        value.append(&mut unescaped(body.get(range.clone()).unwrap_or_default(), times));
    }
    Zeroizing::new(String::from_utf8_lossy(&value).into_owned())
}

fn replace(found: &Found, mut with: String, edits: &mut Vec<(Range<usize>, String)>) {
    match found.form {
        Form::Text => {}
        Form::Number => with = escaped_quotes(&with, found.level),
        // Two keys of one object must not become one.
        Form::Key(before) if before > 0 && with.starts_with("[REDACTED:") => {
            with.push_str(&format!("_{}", before + 1));
        }
        Form::Key(_) => {}
    }
    edits.push((found.first.clone(), with));
    let rest = |is_all: bool| if is_all { REST.to_owned() } else { String::new() };
    edits.extend(found.others.iter().map(|other| (other.range.clone(), rest(other.is_all))));
}

/// A text with quotes around it, inside `level` strings.
fn escaped_quotes(text: &str, level: u8) -> String {
    escaped(&format!("\"{text}\""), level)
}

/// In order. Where two edits share bytes, which they should not, the first one takes the place of both: what is hidden
/// stays hidden.
fn apart(mut edits: Vec<(Range<usize>, String)>) -> Vec<(Range<usize>, String)> {
    edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    edits.dedup_by(|next, last| {
        let shares = next.0.start < last.0.end;
        if shares {
            last.0.end = last.0.end.max(next.0.end);
        }
        shares
    });
    edits
}
