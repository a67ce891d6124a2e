//! People and programs that look after Sprag: what they may do, and the tokens that they come with.
//!
//! Pure facts and rules. Where a token's hash is kept, and how it is found by it, is the catalog's business.

use serde::{Deserialize, Serialize};

use super::key::KeyState;
use crate::limits::{ENDED_KEY_DAYS, OPERATOR_NAME_CHARS};
use crate::time::Timestamp;

/// How every admin token that Sprag hands out begins.
pub const TOKEN_PREFIX: &str = "sprag-tok-";

/// Names that nobody can be given: the two tokens of the configuration, and Sprag itself.
const TAKEN: [&str; 3] = ["admin", "viewer", "sprag"];

/// What somebody may do on the admin side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Role {
    /// Sees everything and changes nothing.
    Viewer,
    /// Sees and changes everything.
    Admin,
}

/// A token for the admin side, made at run time. The secret itself is nowhere: only its hash, which the catalog keeps
/// beside this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminToken {
    /// `tok-` and eight letters; what lists and events call it.
    pub id: String,
    /// Whose it is. Events name them.
    pub name: String,
    /// What it lets them do.
    pub role: Role,
    /// How the secret begins.
    pub prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// A name that no operator can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOperatorName {
    /// It has no letters, too many, or some that look like others.
    #[error("it has 1 to {OPERATOR_NAME_CHARS} letters of the English alphabet, digits, `.`, `-`, `_`, `@` or `+`")]
    Form,
    /// It belongs to somebody else.
    #[error("`admin`, `viewer` and `sprag` are taken")]
    Taken,
}

/// Whether somebody can be called so.
///
/// # Errors
/// When not. Letters that look like others are refused: nobody shall be able to sign as somebody else.
pub fn check_operator_name(name: &str) -> Result<(), BadOperatorName> {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b".-_@+".contains(&b);
    if name.is_empty() || name.len() > OPERATOR_NAME_CHARS || !name.bytes().all(is_letter) {
        return Err(BadOperatorName::Form);
    }
    if TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        return Err(BadOperatorName::Taken);
    }
    Ok(())
}

impl Role {
    /// Whether it lets one change anything.
    #[must_use]
    pub fn may_change(self) -> bool {
        self == Role::Admin
    }

    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Admin => "admin",
        }
    }
}

impl AdminToken {
    /// Where it stands.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// The same, taken back. One that was taken back before stays so since then.
    #[must_use]
    pub fn revoked(&self, now: Timestamp) -> AdminToken {
        AdminToken { revoked_at: self.revoked_at.or(Some(now)), ..self.clone() }
    }

    /// Whether it ended so long ago that it may make room for another.
    #[must_use]
    pub fn is_long_over(&self, now: Timestamp) -> bool {
        let ends = [self.revoked_at, self.expires_at].into_iter().flatten();
        let long_ms = u64::from(ENDED_KEY_DAYS) * 24 * 60 * 60 * 1000;
        ends.min().is_some_and(|end| end <= now && now.since_ms(end) > long_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> AdminToken {
        AdminToken {
            id: "tok-00000001".into(),
            name: "anna".into(),
            role: Role::Viewer,
            prefix: "sprag-tok-abcd".into(),
            created_at: Timestamp(0),
            expires_at: Some(Timestamp(100)),
            revoked_at: None,
        }
    }

    #[test]
    fn names_are_plain_and_nobody_elses() {
        for good in ["anna", "a", "ci-bot_2", "anna@example.com", "a+b.c", &"x".repeat(OPERATOR_NAME_CHARS)] {
            assert_eq!(check_operator_name(good), Ok(()), "{good}");
        }
        for bad in ["", "an na", "anna (ben)", "аnna", "a\nb", "a/b", &"x".repeat(OPERATOR_NAME_CHARS + 1)] {
            assert_eq!(check_operator_name(bad), Err(BadOperatorName::Form), "{bad}");
        }
        for taken in ["admin", "Viewer", "SPRAG"] {
            assert_eq!(check_operator_name(taken), Err(BadOperatorName::Taken), "{taken}");
        }
    }

    #[test]
    fn a_token_opens_until_its_end_or_until_it_is_taken_back() {
        assert_eq!(token().state(Timestamp(99)), KeyState::Active);
        assert_eq!(token().state(Timestamp(100)), KeyState::Expired);
        let revoked = token().revoked(Timestamp(5));
        assert_eq!(revoked.state(Timestamp(5)), KeyState::Revoked);
        assert_eq!(revoked.revoked(Timestamp(9)).revoked_at, Some(Timestamp(5)), "twice is once");
        assert_eq!(AdminToken { expires_at: None, ..token() }.state(Timestamp(i64::MAX)), KeyState::Active);
    }

    #[test]
    fn one_that_ended_long_ago_makes_room() {
        let long_ms = i64::from(ENDED_KEY_DAYS) * 24 * 60 * 60 * 1000;
        assert!(!token().is_long_over(Timestamp(100 + long_ms)));
        assert!(token().is_long_over(Timestamp(101 + long_ms)));
        assert!(!AdminToken { expires_at: None, ..token() }.is_long_over(Timestamp(i64::MAX)));
    }

    #[test]
    fn only_an_admin_changes_anything() {
        assert!(Role::Admin.may_change() && !Role::Viewer.may_change());
        for role in [Role::Admin, Role::Viewer] {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
    }
}
