//! Admin tokens: found by the hash of a secret, or by their id.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use sprag_core::policy::{AdminToken, KeyState};

use super::keys::SecretHash;
use super::table::{from_json, to_json};
use super::{Catalog, Snapshot};
use crate::error::StoreError;
use crate::shared_catalog::row::{RowKind, RowName};

/// An admin token, and what its secret is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// The token.
    pub token: AdminToken,
    /// The hash of its secret.
    pub hash: SecretHash,
}

/// Every admin token by the hash of its secret. Few enough to be copied with each change.
pub(super) type Tokens = HashMap<SecretHash, Arc<TokenEntry>>;

pub(super) const OR_CHANGE: &str = "ON CONFLICT (id) DO UPDATE SET record = excluded.record";

impl Snapshot {
    /// The token that a secret belongs to.
    #[must_use]
    pub fn token_of_secret(&self, hash: &SecretHash) -> Option<&Arc<TokenEntry>> {
        self.tokens.get(hash)
    }

    /// A token by its id.
    #[must_use]
    pub fn token(&self, id: &str) -> Option<&Arc<TokenEntry>> {
        self.tokens().find(|entry| entry.token.id == id)
    }

    /// Every token, those that ended included, in no order.
    pub fn tokens(&self) -> impl Iterator<Item = &Arc<TokenEntry>> {
        self.tokens.values()
    }
}

impl Catalog {
    /// Adds a token. Where there is no room, tokens that ended long ago leave first.
    ///
    /// # Errors
    /// When there are too many, when somebody of this name has one that opens, or when it cannot be written; then there
    /// is no such token.
    pub fn add_token(&self, entry: TokenEntry) -> Result<Arc<TokenEntry>, StoreError> {
        let entry = Arc::new(entry);
        let now = entry.token.created_at;
        self.change(|writer, snapshot| {
            let is_same = |other: &&Arc<TokenEntry>| {
                other.token.state(now) == KeyState::Active && other.token.name.eq_ignore_ascii_case(&entry.token.name)
            };
            if let Some(other) = snapshot.tokens().find(is_same) {
                return (Err(StoreError::NameTaken(other.token.name.clone())), false);
            }
            let most = self.bounds.tokens;
            let is_over = |old: &&Arc<TokenEntry>| old.token.is_long_over(now) && snapshot.tokens.len() >= most;
            let over: Vec<Arc<TokenEntry>> = snapshot.tokens().filter(is_over).cloned().collect();
            if snapshot.tokens.len() - over.len() >= most {
                return (Err(StoreError::Full { what: "admin tokens", most }), false);
            }
            let written = writer.in_transaction(|transaction, stamper| {
                over.iter().try_for_each(|old| delete(transaction, &old.token.id))?;
                insert(transaction, &entry, "")?;
                stamper.renew(transaction, row_of(&entry), false)
            });
            if let Err(error) = written {
                return (Err(error), false);
            }
            let tokens = Arc::make_mut(&mut snapshot.tokens);
            over.iter().for_each(|old| drop(tokens.remove(&old.hash)));
            tokens.insert(entry.hash, entry.clone());
            (Ok(entry), true)
        })
    }

    /// Changes a token, and gives it; None where there is none.
    ///
    /// # Errors
    /// When it cannot be written. A token that was taken back stays so until the process ends; any other change is not
    /// made.
    pub fn change_token(
        &self,
        id: &str,
        change: impl FnOnce(&AdminToken) -> AdminToken,
    ) -> Result<Option<Arc<TokenEntry>>, StoreError> {
        self.change(|writer, snapshot| {
            let Some(known) = snapshot.token(id) else { return (Ok(None), false) };
            let entry = Arc::new(TokenEntry { token: change(&known.token), hash: known.hash });
            let written = writer.in_transaction(|transaction, stamper| {
                insert(transaction, &entry, OR_CHANGE)?;
                stamper.renew(transaction, row_of(&entry), false)
            });
            let is_kept = written.is_ok() || entry.token.revoked_at.is_some();
            if written.is_err() && is_kept {
                writer.hold(row_of(&entry));
            }
            if is_kept {
                Arc::make_mut(&mut snapshot.tokens).insert(entry.hash, entry.clone());
            }
            (written.map(|()| Some(entry)), is_kept)
        })
    }
}

fn row_of(entry: &TokenEntry) -> RowName {
    RowName::new(RowKind::Token, entry.token.id.as_str())
}

pub(super) fn read(connection: &Connection) -> rusqlite::Result<Tokens> {
    let mut rows = connection.prepare("SELECT record, secret_hash FROM tokens")?;
    let read = |row: &Row<'_>| Ok(TokenEntry { token: from_json(row, 0)?, hash: row.get(1)? });
    rows.query_map([], read)?.map(|entry| entry.map(|entry| (entry.hash, Arc::new(entry)))).collect()
}

pub(super) fn insert(connection: &Connection, entry: &TokenEntry, otherwise: &str) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO tokens (id, secret_hash, record) VALUES (?1, ?2, ?3) {otherwise}");
    let record = to_json(&entry.token)?;
    connection.prepare_cached(&sql)?.execute(params![entry.token.id, entry.hash.as_slice(), record]).map(drop)
}

pub(super) fn delete(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM tokens WHERE id = ?1")?.execute([id]).map(drop)
}
