//! Admin tokens: made and taken back. A secret leaves this file once, to the one who asked for it.

use std::sync::Arc;

use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::policy::{AdminToken, Role, TOKEN_PREFIX};
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::catalog::TokenEntry;

use super::hash_of;
use crate::app::App;
use crate::config::Secret;

/// Letters after the prefix: 256 bits, and a little more.
const SECRET_LETTERS: usize = 43;
/// Letters of them that lists show.
const SHOWN_LETTERS: usize = 4;

/// A token that somebody asks for.
#[derive(Clone, Debug)]
pub struct TokenOrder {
    /// Whose it shall be.
    pub name: String,
    /// What it shall let them do.
    pub role: Role,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// Who asks.
    pub by: String,
}

/// A token with a secret that nobody can be shown again.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    /// The token.
    pub entry: Arc<TokenEntry>,
    /// The secret.
    pub secret: Secret,
}

impl App {
    /// Makes a token.
    ///
    /// # Errors
    /// When there are too many, when the name has one, or when it cannot be written; then there is none.
    pub async fn create_token(self: &Arc<Self>, order: TokenOrder) -> Result<IssuedToken, StoreError> {
        self.blocking(move |app| {
            let (secret, prefix) = new_secret();
            let TokenOrder { name, role, expires_at, by } = order;
            let (id, created_at) = (app.ids.token(), app.clock.now());
            let token = AdminToken { id, name, role, prefix, created_at, expires_at, revoked_at: None };
            let hash = hash_of(secret.reveal().as_bytes());
            let entry = app.catalog.add_token(TokenEntry { token, hash })?;
            app.record_token_act(&entry.token, ActKind::CreateToken, by);
            Ok(IssuedToken { entry, secret })
        })
        .await
    }

    /// Takes a token back: nothing opens with it from now on, nor with sessions that it began. Gives the token; none where
    /// there is no such token.
    ///
    /// # Errors
    /// When it cannot be written; then it holds until the process ends.
    pub async fn revoke_token(self: &Arc<Self>, id: String, by: String) -> Result<Option<Arc<TokenEntry>>, StoreError> {
        self.blocking(move |app| {
            let now = app.clock.now();
            let was_open = app.catalog.snapshot().token(&id).is_some_and(|entry| entry.token.revoked_at.is_none());
            let revoked = app.catalog.change_token(&id, |token| token.revoked(now));
            // What the disk refused holds too. One that was taken back before is not taken back again.
            let snapshot = app.catalog.snapshot();
            if let Some(entry) = snapshot.token(&id).filter(|entry| was_open && entry.token.revoked_at.is_some()) {
                app.record_token_act(&entry.token, ActKind::RevokeToken, by);
            }
            revoked
        })
        .await
    }

    fn record_token_act(&self, token: &AdminToken, what: ActKind, by: String) {
        let now = self.clock.now();
        let act = Act {
            what,
            by,
            target: format!("token:{}", token.id),
            reason: token.name.clone(),
            proof: None,
            expires_at: token.expires_at,
            detail: Some(json!({"name": token.name, "role": token.role})),
        };
        let agent = AgentName::default();
        self.record(&Event::of_act(self.ids.request(now), now, EventKind::Admin, agent, None, act));
    }
}

/// A secret and how it begins.
fn new_secret() -> (Secret, String) {
    // The thread's generator is a cryptographic one that the system seeds.
    let letters: String = rand::rng().sample_iter(Alphanumeric).take(SECRET_LETTERS).map(char::from).collect();
    let prefix = format!("{TOKEN_PREFIX}{}", &letters[..SHOWN_LETTERS]);
    (Secret::new(format!("{TOKEN_PREFIX}{letters}")), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_never_the_same_and_known_by_their_beginning() {
        let secrets: std::collections::BTreeSet<String> = (0..1000)
            .map(|_| {
                let (secret, prefix) = new_secret();
                assert!(secret.reveal().starts_with(&prefix) && prefix.len() == 14, "{prefix}");
                secret.reveal().to_owned()
            })
            .collect();
        assert_eq!(secrets.len(), 1000);
        for secret in &secrets {
            let letters = secret.strip_prefix("sprag-tok-").unwrap();
            assert!(letters.len() == 43 && letters.bytes().all(|b| b.is_ascii_alphanumeric()), "{letters}");
        }
    }
}
