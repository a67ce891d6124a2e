mod captures;
mod dialects;
mod items;
mod places;
mod properties;
mod restoring;

use std::sync::{Arc, Mutex};

use super::*;
use crate::dlp::catalogue::entity;
use crate::dlp::{Action, DlpPolicy, Entity, Hiding, Scanner, Vault};

pub(super) const EMAIL: Entity = entity("EMAIL");
pub(super) const OPENAI_KEY: Entity = entity("OPENAI_KEY");
pub(super) const SECRET: &str = "sk-1234567890abcdef";
pub(super) const HIDDEN: &str = "[REDACTED:OPENAI_KEY]";

/// Hides keys for good and addresses reversibly.
pub(super) fn inspector() -> Inspector {
    let mut policy = DlpPolicy::default();
    policy.set(EMAIL, Direction::Request, Action::Hide(Hiding::Reversible));
    let vault = Some(Arc::new(Mutex::new(Vault::default())));
    Inspector { scanner: Arc::new(Scanner::default()), policy: Arc::new(policy), vault }
}

pub(super) fn inspected(inspector: &Inspector, way: Direction, dialect: Dialect, body: &str) -> (String, Sightings) {
    let mut sightings = Sightings::default();
    let inspected = inspect_json(inspector, way, dialect, body.as_bytes(), &[], None, &mut sightings);
    assert!(!inspected.is_stopped);
    let out = String::from_utf8(apply_edits(body.as_bytes(), &inspected.edits)).unwrap();
    if serde_json::from_str::<serde_json::Value>(body).is_ok() {
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    }
    (out, sightings)
}

pub(super) fn request(dialect: Dialect, body: &str) -> String {
    inspected(&inspector(), Direction::Request, dialect, body).0
}
