//! How a caller is told that something may not pass.

use serde_json::json;

use super::policy::Direction;
use super::sighting::{Outcome, Sightings};
use crate::wire::{Reason, Refusal};

/// Tells which kinds stopped a call, and where they stand. Never what stands there.
#[must_use]
pub fn dlp_refusal(sightings: &Sightings, direction: Direction) -> Refusal {
    let blocked =
        || sightings.list.iter().filter(|seen| seen.outcome == Outcome::Blocked && seen.direction == direction);
    let mut entities: Vec<&str> = blocked().map(|seen| seen.entity.as_str()).collect();
    entities.sort_unstable();
    entities.dedup();
    let (what, advice) = match direction {
        Direction::Request => ("the request holds", "take it out of the prompt"),
        Direction::Answer => ("the answer holds", "ask for something else"),
    };
    let places: Vec<String> = blocked().map(|seen| format!("{} in `{}`", seen.entity, seen.path)).take(3).collect();
    let message = format!(
        "{what} sensitive data that this agent may not pass on: {}; {advice}, or change the agent's `dlp` modes",
        places.join(", ")
    );
    let places = blocked().map(|seen| json!({"entity": seen.entity, "path": seen.path, "start": seen.start}));
    Refusal::new(Reason::DlpBlocked, message)
        .with("entities", json!(entities))
        .with("findings", json!(places.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::Sighting;

    #[test]
    fn kinds_and_places_are_told() {
        let seen = |outcome, entity: &str| Sighting {
            entity: entity.to_owned(),
            direction: Direction::Request,
            outcome,
            path: "messages[0].content".to_owned(),
            start: 14,
            length: 19,
            hint: "sk-1***".to_owned(),
        };
        let mut sightings = Sightings::default();
        sightings.note(seen(Outcome::Redacted, "EMAIL"));
        sightings.note(seen(Outcome::Blocked, "OPENAI_KEY"));
        let refusal = dlp_refusal(&sightings, Direction::Request);
        assert_eq!(refusal.fields["entities"], json!(["OPENAI_KEY"]));
        assert_eq!(refusal.fields["findings"][0]["path"], "messages[0].content");
        assert!(refusal.message.contains("OPENAI_KEY in `messages[0].content`"), "{}", refusal.message);
        assert!(!refusal.message.contains("EMAIL"));
    }
}
