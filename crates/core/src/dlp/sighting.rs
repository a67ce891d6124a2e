//! What is put on record of a finding: a kind, a place and a masked hint. Never the value.

use serde::{Deserialize, Serialize};

use super::policy::Direction;
use crate::limits::{SIGHTING_PATH_BYTES, SIGHTINGS};

/// What became of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DlpOutcome))]
pub enum Outcome {
    /// Only put on record.
    Logged,
    /// Hidden, and the client gets its own value back.
    Covered,
    /// Hidden for good.
    Redacted,
    /// The call was stopped.
    Blocked,
}

/// One finding, or several of the same kind at the same place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sighting {
    /// `OPENAI_KEY`
    pub entity: String,
    /// Which way it went.
    pub direction: Direction,
    /// What became of it.
    pub outcome: Outcome,
    /// Where: a JSON path such as `messages[3].content[0].text`.
    pub path: String,
    /// Its place in that text, in bytes.
    pub start: usize,
    /// Its length in bytes.
    pub length: usize,
    /// Its first letters and stars.
    pub hint: String,
}

/// What was found in one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sightings {
    /// The first ones.
    pub list: Vec<Sighting>,
    /// How many there were in all.
    pub total: u64,
}

impl Sightings {
    /// Notes one.
    pub fn note(&mut self, mut sighting: Sighting) {
        self.total += 1;
        if self.list.len() < SIGHTINGS {
            let end = sighting.path.floor_char_boundary(SIGHTING_PATH_BYTES);
            sighting.path.truncate(end);
            self.list.push(sighting);
        }
    }
}

impl Sightings {
    /// Adds those of the same call's other half.
    pub fn absorb(&mut self, other: Sightings) {
        self.total += other.total;
        self.list.extend(other.list);
        self.list.truncate(SIGHTINGS);
    }
}

/// A hint at a value for people who know it: its first letters and stars. A quarter of it at most, and never more than
/// four characters.
#[must_use]
pub fn hint(value: &str) -> String {
    let shown = (value.chars().count() / 4).min(4);
    let mut hint: String = value.chars().take(shown).filter(|c| !c.is_control()).collect();
    hint.push_str("***");
    hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(path: String) -> Sighting {
        let (direction, outcome) = (Direction::Request, Outcome::Redacted);
        Sighting { entity: "EMAIL".to_owned(), direction, outcome, path, start: 0, length: 1, hint: hint("x") }
    }

    #[test]
    fn a_hint_shows_little() {
        for (value, expected) in
            [("", "***"), ("abc", "***"), ("hunter2", "h***"), ("sk-1234567890abcdef", "sk-1***"), ("ééééé", "é***")]
        {
            assert_eq!(hint(value), expected);
        }
    }

    #[test]
    fn the_first_are_listed_and_all_are_counted() {
        let mut sightings = Sightings::default();
        (0..=SIGHTINGS).for_each(|number| sightings.note(sighting(number.to_string())));
        assert_eq!((sightings.list.len(), sightings.total as usize), (SIGHTINGS, SIGHTINGS + 1));
        let mut sightings = Sightings::default();
        sightings.note(sighting("é".repeat(SIGHTING_PATH_BYTES)));
        sightings.note(sighting("x".repeat(SIGHTING_PATH_BYTES)));
        assert!(sightings.list.iter().all(|one| one.path.len() == SIGHTING_PATH_BYTES));
    }
}
