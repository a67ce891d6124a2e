//! Who asks: found by the token, or by the session that a token began, and passed to whoever acts in their name.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sprag_core::limits::OPERATOR_NAME_CHARS;
use sprag_core::policy::{KeyState, Role};
use sprag_core::time::Timestamp;
use subtle::ConstantTimeEq;

use super::Admin;
use super::problem::Problem;
use crate::acts::hash_of;

/// What opens the admin side, as sessions remember it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// The admin token of the configuration.
    Admin,
    /// The viewers' token of the configuration.
    Viewer,
    /// A token made at run time, by its id.
    Token(String),
}

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(super) name: String,
    pub(super) role: Role,
    /// The id of the token, where it was made at run time.
    pub(super) token: Option<String>,
    pub(super) expires_at: Option<Timestamp>,
}

/// Somebody in front of a browser.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) operator: Operator,
    /// What their forms must carry.
    pub(super) csrf: String,
    /// How much had happened when they asked.
    pub(super) seen: u64,
}

impl Operator {
    /// # Errors
    /// When they may only look.
    pub(super) fn may_change(&self) -> Result<(), Problem> {
        if self.role.may_change() {
            return Ok(());
        }
        Err(Problem::forbidden(format!("`{}` may look and change nothing; this takes an admin's token", self.name)))
    }

    /// The name that an act goes on record under. What the caller calls itself stands behind it, never in its place.
    ///
    /// # Errors
    /// When what the caller calls itself is no name.
    pub(super) fn acting(&self, by: Option<String>) -> Result<String, Problem> {
        let Some(by) = by.filter(|by| !by.is_empty() && *by != self.name) else { return Ok(self.name.clone()) };
        if by.chars().count() > OPERATOR_NAME_CHARS || by.chars().any(char::is_control) || by == "sprag" {
            return Err(Problem::bad_request("`by` is a name of at most 64 printable characters, other than sprag"));
        }
        Ok(format!("{} ({by})", self.name))
    }
}

impl Admin {
    /// What a secret opens with, if anything. Takes the same time for any that is wrong.
    pub(super) fn pass_of(&self, offered: &str) -> Option<Pass> {
        // None of them is left out when another has matched: the time says nothing.
        let is_admin = self.token.matches(offered);
        let is_viewer = self.viewer_token.as_ref().is_some_and(|token| token.matches(offered));
        let hash = hash_of(offered.as_bytes());
        let snapshot = self.app.catalog.snapshot();
        let named = snapshot.token_of_secret(&hash).filter(|entry| entry.hash.ct_eq(&hash).into());
        match (is_admin, is_viewer, named) {
            (true, _, _) => Some(Pass::Admin),
            (_, true, _) => Some(Pass::Viewer),
            (_, _, Some(entry)) => Some(Pass::Token(entry.token.id.clone())),
            _ => None,
        }
    }

    /// Whom a pass lets in now. A token that ended or was taken back lets in nobody.
    pub(super) fn operator_of(&self, pass: &Pass) -> Option<Operator> {
        let configured = |role: Role| Operator { name: role.as_str().to_owned(), role, token: None, expires_at: None };
        match pass {
            Pass::Admin => Some(configured(Role::Admin)),
            Pass::Viewer => Some(configured(Role::Viewer)),
            Pass::Token(id) => {
                let snapshot = self.app.catalog.snapshot();
                let token = &snapshot.token(id)?.token;
                (token.state(self.app.clock.now()) == KeyState::Active).then(|| Operator {
                    name: token.name.clone(),
                    role: token.role,
                    token: Some(token.id.clone()),
                    expires_at: token.expires_at,
                })
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Operator, Problem> {
        parts.extensions.get::<Operator>().cloned().ok_or_else(nobody)
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Visitor, Problem> {
        parts.extensions.get::<Visitor>().cloned().ok_or_else(nobody)
    }
}

/// A handler outside of what `access` guards asked who asks.
fn nobody() -> Problem {
    Problem::unauthorized("nobody is known to ask")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(role: Role) -> Operator {
        Operator { name: "anna".into(), role, token: None, expires_at: None }
    }

    #[test]
    fn nobody_signs_as_somebody_else() {
        let anna = operator(Role::Admin);
        for (by, expected) in [
            (None, "anna"),
            (Some(""), "anna"),
            (Some("anna"), "anna"),
            (Some("ben"), "anna (ben)"),
            (Some("admin"), "anna (admin)"),
            (Some("x) (y"), "anna (x) (y)"),
        ] {
            assert_eq!(anna.acting(by.map(str::to_owned)).unwrap(), expected);
        }
        for bad in ["sprag", "a\nb", &"x".repeat(OPERATOR_NAME_CHARS + 1)] {
            assert!(anna.acting(Some(bad.to_owned())).is_err(), "{bad}");
        }
        assert!(anna.acting(Some("x".repeat(OPERATOR_NAME_CHARS))).is_ok());
    }

    #[test]
    fn a_viewer_changes_nothing() {
        assert!(operator(Role::Admin).may_change().is_ok());
        assert!(operator(Role::Viewer).may_change().is_err_and(|problem| problem.status == 403));
    }
}
