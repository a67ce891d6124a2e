//! Virtual keys: credentials of Sprag's own, each bound to an agent.
//!
//! Pure facts and rules. Where the secret's hash is kept, and how a key is found by it, is the catalog's business.

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::id::AgentName;
use crate::limits::ENDED_KEY_DAYS;
use crate::time::Timestamp;
use crate::wire::{Reason, Refusal};

/// How every virtual key begins.
pub const KEY_PREFIX: &str = "sk-sprag-";

/// A virtual key. The secret itself is nowhere: only its hash, which the catalog keeps beside this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VirtualKey {
    /// `key-` and eight letters; what lists, kills and events call it.
    pub id: String,
    /// Whom it speaks for.
    pub agent: AgentName,
    /// What people call it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The last four letters of the secret.
    pub hint: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The secret before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousSecret>,
    /// What may be spent with it.
    #[serde(default)]
    pub budget: Budget,
}

/// The secret that a rotation replaced. There is never more than one: the one before it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    /// Its last four letters.
    pub hint: String,
    /// Until when it still holds.
    pub ends_at: Timestamp,
}

/// Which of a key's secrets a caller came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// The one that holds.
    Current,
    /// The one before the last rotation.
    Previous,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum KeyState {
    /// It opens.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

/// Why a key that is known does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    /// It was taken back.
    Revoked(Timestamp),
    /// Its time is over.
    Expired(Timestamp),
    /// The secret was replaced, and its grace is over.
    Replaced(Timestamp),
}

/// Whether a key opens with one of its secrets.
///
/// # Errors
/// When it does not: says which key, since when, and what to do.
pub fn check(key: &VirtualKey, place: SecretPlace, now: Timestamp) -> Result<(), Refusal> {
    let Some(problem) = key.problem(place, now) else { return Ok(()) };
    let id = &key.id;
    let message = match problem {
        KeyProblem::Revoked(at) => {
            format!("virtual key `{id}` was revoked at {}; use another key, or ask for a new one", at.to_rfc3339())
        }
        KeyProblem::Expired(at) => {
            format!("virtual key `{id}` expired at {}; use another key, or ask for a new one", at.to_rfc3339())
        }
        KeyProblem::Replaced(at) => format!(
            "this secret of virtual key `{id}` was replaced and ended at {}; use the key's new secret",
            at.to_rfc3339()
        ),
    };
    Err(Refusal::new(Reason::AuthenticationError, message).with("key", id.as_str()))
}

impl VirtualKey {
    /// Where it stands.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> KeyState {
        match self.problem(SecretPlace::Current, now) {
            None | Some(KeyProblem::Replaced(_)) => KeyState::Active,
            Some(KeyProblem::Expired(_)) => KeyState::Expired,
            Some(KeyProblem::Revoked(_)) => KeyState::Revoked,
        }
    }

    /// Why it does not open with one of its secrets.
    #[must_use]
    pub fn problem(&self, place: SecretPlace, now: Timestamp) -> Option<KeyProblem> {
        if let Some(at) = self.revoked_at {
            return Some(KeyProblem::Revoked(at));
        }
        if let Some(at) = self.expires_at.filter(|at| *at <= now) {
            return Some(KeyProblem::Expired(at));
        }
        let ends_at = self.previous.as_ref().map_or(self.created_at, |previous| previous.ends_at);
        (place == SecretPlace::Previous && ends_at <= now).then_some(KeyProblem::Replaced(ends_at))
    }

    /// Whether it ended so long ago that it may make room for another.
    #[must_use]
    pub fn is_long_over(&self, now: Timestamp) -> bool {
        let ends = [self.revoked_at, self.expires_at].into_iter().flatten();
        let long_ms = u64::from(ENDED_KEY_DAYS) * 24 * 60 * 60 * 1000;
        ends.min().is_some_and(|end| end <= now && now.since_ms(end) > long_ms)
    }

    /// The same, taken back. One that was taken back before stays so since then.
    #[must_use]
    pub fn revoked(&self, now: Timestamp) -> VirtualKey {
        VirtualKey { revoked_at: self.revoked_at.or(Some(now)), ..self.clone() }
    }

    /// The same with a new secret; the old one holds until `old_ends_at`.
    #[must_use]
    pub fn rotated(&self, hint: String, old_ends_at: Timestamp) -> VirtualKey {
        let previous = Some(PreviousSecret { hint: self.hint.clone(), ends_at: old_ends_at });
        VirtualKey { hint, previous, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn key() -> VirtualKey {
        VirtualKey {
            id: "key-4k2m9x0a".into(),
            agent: AgentName::parse("bot").unwrap(),
            name: String::new(),
            hint: "wxyz".into(),
            created_at: Timestamp(0),
            expires_at: None,
            revoked_at: None,
            previous: None,
            budget: Budget::default(),
        }
    }

    #[test]
    fn a_key_opens_until_its_end() {
        let key = VirtualKey { expires_at: Some(Timestamp(1000)), ..key() };
        assert_eq!(check(&key, SecretPlace::Current, Timestamp(999)), Ok(()));
        let refusal = check(&key, SecretPlace::Current, Timestamp(1000)).unwrap_err();
        assert_eq!((refusal.reason, refusal.status), (Reason::AuthenticationError, 401));
        let expected = "virtual key `key-4k2m9x0a` expired at 1970-01-01T00:00:01.000Z";
        assert!(refusal.message.starts_with(expected), "{}", refusal.message);
        assert_eq!(refusal.fields["key"], "key-4k2m9x0a");
        assert_eq!((key.state(Timestamp(999)), key.state(Timestamp(1000))), (KeyState::Active, KeyState::Expired));
    }

    #[test]
    fn a_revoked_key_stays_revoked() {
        let revoked = key().revoked(Timestamp(5)).revoked(Timestamp(9));
        assert_eq!(revoked.revoked_at, Some(Timestamp(5)));
        for place in [SecretPlace::Current, SecretPlace::Previous] {
            let refusal = check(&revoked, place, Timestamp(5)).unwrap_err();
            assert!(refusal.message.contains("was revoked at 1970-01-01T00:00:00.005Z"), "{}", refusal.message);
        }
        assert_eq!(revoked.state(Timestamp(9)), KeyState::Revoked);
    }

    #[test]
    fn the_old_secret_holds_for_its_grace() {
        let rotated = key().rotated("abcd".into(), Timestamp(100));
        assert_eq!((rotated.hint.as_str(), rotated.previous.as_ref().unwrap().hint.as_str()), ("abcd", "wxyz"));
        assert_eq!(check(&rotated, SecretPlace::Previous, Timestamp(99)), Ok(()));
        let refusal = check(&rotated, SecretPlace::Previous, Timestamp(100)).unwrap_err();
        assert!(refusal.message.contains("use the key's new secret"), "{}", refusal.message);
        assert_eq!(check(&rotated, SecretPlace::Current, Timestamp(100)), Ok(()));
        let ended = VirtualKey { expires_at: Some(Timestamp(50)), ..rotated };
        assert!(check(&ended, SecretPlace::Previous, Timestamp(50)).is_err(), "no longer than the key");
    }

    #[test]
    fn a_key_makes_room_ninety_days_after_its_end() {
        let end = Timestamp(1000);
        let last = Timestamp(1000 + 90 * DAY);
        for key in [VirtualKey { expires_at: Some(end), ..key() }, key().revoked(end)] {
            assert!(!key.is_long_over(last));
            assert!(key.is_long_over(Timestamp(last.0 + 1)));
        }
        let later = VirtualKey { expires_at: Some(last), ..key().revoked(end) };
        assert!(later.is_long_over(Timestamp(last.0 + 1)), "its first end counts");
        assert!(!key().is_long_over(Timestamp(i64::MAX)));
    }
}
