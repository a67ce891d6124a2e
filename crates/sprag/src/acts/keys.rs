//! Virtual keys: made, taken back, given a new secret. A secret leaves this file once, to the one who asked for it.

use std::sync::Arc;

use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::policy::{Budget, KEY_PREFIX, KeyState, KillScope, VirtualKey};
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::catalog::{KeyEntry, SecretHash};

use crate::app::App;
use crate::config::Secret;

/// Letters after the prefix: 256 bits, and a little more.
const SECRET_LETTERS: usize = 43;
const HINT_LETTERS: usize = 4;

/// A key that somebody asks for.
#[derive(Clone, Debug)]
pub struct KeyOrder {
    /// Whom it shall speak for.
    pub agent: AgentName,
    /// What people call it; may be empty.
    pub name: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// What may be spent with it.
    pub budget: Budget,
    /// Who asks.
    pub by: String,
}

/// A key with a secret that nobody can be shown again.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The key.
    pub entry: Arc<KeyEntry>,
    /// The secret.
    pub secret: Secret,
}

/// What a secret is known by.
pub(crate) fn hash_of(secret: &[u8]) -> SecretHash {
    Sha256::digest(secret).into()
}

impl App {
    /// Makes a key.
    ///
    /// # Errors
    /// When there are too many, or when it cannot be written; then there is none.
    pub async fn create_key(self: &Arc<Self>, order: KeyOrder) -> Result<IssuedKey, StoreError> {
        self.blocking(move |app| {
            let (secret, hint) = new_secret();
            let KeyOrder { agent, name, expires_at, budget, by } = order;
            let key = VirtualKey {
                id: app.ids.key(),
                agent,
                name,
                hint,
                created_at: app.clock.now(),
                expires_at,
                revoked_at: None,
                previous: None,
                budget,
            };
            let hash = hash_of(secret.reveal().as_bytes());
            let entry = app.catalog.add_key(KeyEntry { key, hash, previous_hash: None })?;
            app.record_key_act(&entry.key, ActKind::CreateKey, by);
            Ok(IssuedKey { entry, secret })
        })
        .await
    }

    /// Takes a key back: no later request opens with it. Gives the key; none where there is no such key.
    ///
    /// # Errors
    /// When it cannot be written; then it holds until the process ends.
    pub async fn revoke_key(self: &Arc<Self>, id: String, by: String) -> Result<Option<Arc<KeyEntry>>, StoreError> {
        self.blocking(move |app| {
            let now = app.clock.now();
            let was_open = app.catalog.snapshot().key(&id).is_some_and(|entry| entry.key.revoked_at.is_none());
            let revoke = |old: &KeyEntry| Some(KeyEntry { key: old.key.revoked(now), ..old.clone() });
            let revoked = app.catalog.change_key(&id, revoke);
            // What the disk refused holds too. One that was taken back before is not taken back again.
            let snapshot = app.catalog.snapshot();
            if let Some(entry) = snapshot.key(&id).filter(|entry| was_open && entry.key.revoked_at.is_some()) {
                app.record_key_act(&entry.key, ActKind::RevokeKey, by);
            }
            revoked
        })
        .await
    }

    /// Gives a key a new secret; the old one holds for so many seconds more. None where no such key opens.
    ///
    /// # Errors
    /// When it cannot be written; then the old secret stays.
    pub async fn rotate_key(
        self: &Arc<Self>,
        id: String,
        grace_seconds: u32,
        by: String,
    ) -> Result<Option<IssuedKey>, StoreError> {
        self.blocking(move |app| {
            let now = app.clock.now();
            let (secret, hint) = new_secret();
            let hash = hash_of(secret.reveal().as_bytes());
            let old_ends_at = Timestamp(now.0.saturating_add(i64::from(grace_seconds) * 1000));
            let rotated = app.catalog.change_key(&id, |old| {
                let is_open = old.key.state(now) == KeyState::Active;
                let key = old.key.rotated(hint, old_ends_at);
                is_open.then_some(KeyEntry { key, hash, previous_hash: Some(old.hash) })
            })?;
            Ok(rotated.map(|entry| {
                app.record_key_act(&entry.key, ActKind::RotateKey, by);
                IssuedKey { entry, secret }
            }))
        })
        .await
    }

    fn record_key_act(&self, key: &VirtualKey, what: ActKind, by: String) {
        let now = self.clock.now();
        let act = Act {
            what,
            by,
            target: KillScope::Key(key.id.clone()).to_string(),
            reason: key.name.clone(),
            proof: None,
            expires_at: match what {
                // When the old secret ends.
                ActKind::RotateKey => key.previous.as_ref().map(|previous| previous.ends_at),
                _ => key.expires_at,
            },
            detail: (what == ActKind::CreateKey).then(|| detail(key)),
        };
        let mut event = Event::of_act(self.ids.request(now), now, EventKind::Admin, key.agent.clone(), None, act);
        event.key = Some(key.id.clone());
        self.record(&event);
    }
}

/// What a new key may do.
fn detail(key: &VirtualKey) -> Value {
    let mut detail = Map::new();
    detail.insert("agent".into(), key.agent.as_str().into());
    if key.budget.is_set() {
        detail.insert("budget".into(), serde_json::to_value(&key.budget).unwrap_or_default());
    }
    Value::Object(detail)
}

/// A secret and its last letters.
fn new_secret() -> (Secret, String) {
    // The thread's generator is a cryptographic one that the system seeds.
    let letters: String = rand::rng().sample_iter(Alphanumeric).take(SECRET_LETTERS).map(char::from).collect();
    let hint = letters[letters.len() - HINT_LETTERS..].to_owned();
    (Secret::new(format!("{KEY_PREFIX}{letters}")), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let secrets: std::collections::BTreeSet<String> =
            (0..1000).map(|_| new_secret().0.reveal().to_owned()).collect();
        assert_eq!(secrets.len(), 1000);
        for secret in &secrets {
            let letters = secret.strip_prefix("sk-sprag-").unwrap();
            assert!(letters.len() == 43 && letters.bytes().all(|b| b.is_ascii_alphanumeric()), "{letters}");
        }
        let used: std::collections::BTreeSet<u8> = secrets.iter().flat_map(|s| s[9..].bytes()).collect();
        assert_eq!(used.len(), 62, "every letter occurs");
    }
}
