//! Whole JSON bodies: what is in them is found and hidden in place, and the rest stays byte for byte.
//!
//! ```text
//! raw bytes → texts (walk.rs, rules.rs) → findings by raw places (text.rs, seams.rs) → edits (treat.rs)
//!             └ items known by their bytes (items.rs) ────────────┘
//! ```
//!
//! Bodies are not parsed here and need not be valid: on other bytes less is found. Streams are not read here.

mod escape;
mod found;
mod frame;
mod items;
mod rules;
mod seams;
mod text;
mod treat;
mod walk;

use std::ops::Range;

use self::items::Items;
use self::rules::{Rule, State};
use self::text::Walker;
use self::treat::treat_all;
use super::inspector::Inspector;
use super::policy::Direction;
use super::restore::Placeholders;
use super::seen::Seen;
use super::sighting::Sightings;
use crate::wire::Dialect;

pub(super) use self::found::Found;
pub use self::items::ranges_of;
pub use self::treat::{Inspected, apply_edits};

/// Looks at a request or an answer that is one JSON document.
///
/// `items` are the ranges of values that come again at every step (see [`ranges_of`]), in order; with `seen` each is
/// looked at once. What stands between them is looked at each time. In an answer, placeholders of the vault become the
/// client's values again.
#[must_use]
pub fn inspect_json(
    inspector: &Inspector,
    direction: Direction,
    dialect: Dialect,
    body: &[u8],
    items: &[Range<usize>],
    seen: Option<&Seen>,
    sightings: &mut Sightings,
) -> Inspected {
    let (known, seen) = match direction {
        Direction::Request => (None, seen),
        // What stands for a value changes from run to run.
        Direction::Answer => (Placeholders::of(inspector), None),
    };
    let mut walker = Walker::new(&inspector.scanner, known.as_ref(), dialect);
    let root = (State::of_body(dialect), Rule::Look);
    walker.walk(body, 0..body.len(), root, &mut Items::new(items, seen));
    let Walker { found, logprobs, .. } = walker;
    let logprobs = if direction == Direction::Answer { logprobs } else { Vec::new() };
    treat_all(inspector, direction, body, &found, logprobs, sightings)
}

/// Whether a text that the provider wrote under `key` is an id, a word of the protocol or a signature, and looks like one.
pub(super) fn is_protocol(key: &[u8], text: &[u8]) -> bool {
    let rule = rules::rule(Dialect::Opaque, State::Protocol, b"", key);
    matches!(rule, Rule::Id | Rule::Word | Rule::Never) && rules::is_exempt(rule, text)
}

#[cfg(test)]
pub(super) fn some_found() -> Found {
    use self::found::{Form, What};
    use super::kind::{Entity, Tier};
    let what = What::Finding(Entity(0), Tier::Proof);
    Found { what, form: Form::Text, first: 0..1, others: Vec::new(), level: 0, path: String::new(), start: 0 }
}

#[cfg(test)]
mod tests;
