//! Plain text, such as files and logs, with what is in it hidden.

use std::collections::BTreeSet;
use std::ops::Range;

use super::inspector::{Inspector, Place, Treatment};
use super::kind::Entity;
use super::policy::Direction;
use super::restore::{Placeholders, keep_apart, pass_over_own, value};
use super::sighting::Sightings;

/// The text with everything hidden that the policy wants hidden. What would stop a call is hidden as well: a text cannot
/// be stopped. In an answer the client's own values are put back.
#[must_use]
pub fn redact_text(inspector: &Inspector, direction: Direction, text: &str, sightings: &mut Sightings) -> String {
    let mut findings = inspector.scanner.scan(text.as_bytes(), 0, true).findings;
    let known = if direction == Direction::Answer { Placeholders::of(inspector) } else { None };
    let mut known = known.map(|known| known.in_text(text.as_bytes(), 0)).unwrap_or_default();
    keep_apart(&mut findings, &mut known);
    if direction == Direction::Request && !findings.is_empty() {
        let kinds: BTreeSet<Entity> = findings.iter().map(|finding| finding.entity).collect();
        pass_over_own(inspector, &kinds, text.as_bytes());
    }
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for finding in findings {
        let (start, end) = (text.floor_char_boundary(finding.start), text.ceil_char_boundary(finding.end));
        let place = Place { path: "", start };
        let treatment = inspector.treat_in_text(direction, finding.entity, &text[start..end], place, sightings);
        if let Treatment::Replace(with) = treatment {
            edits.push((start..end, with));
        }
    }
    for own in known {
        edits.extend(value(inspector, own.entity, own.number).map(|value| (own.range, value.to_string())));
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, with) in edits {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(&with);
        at = at.max(range.end);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}
