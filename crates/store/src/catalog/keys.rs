//! Virtual keys: found by the hash of a secret, or by their id.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use sprag_core::policy::{SecretPlace, VirtualKey};
use sprag_core::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use super::table::{from_json, to_json};
use super::{Catalog, Snapshot};
use crate::error::StoreError;
use crate::shared_catalog::row::{RowKind, RowName};

/// The SHA-256 of a secret.
pub type SecretHash = [u8; 32];

/// A virtual key, and what its secrets are known by.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyEntry {
    /// The key.
    pub key: VirtualKey,
    /// The secret that holds.
    pub hash: SecretHash,
    /// The secret before the last rotation.
    pub previous_hash: Option<SecretHash>,
}

/// Only the row of the same id is replaced: a secret that another key has is an error.
pub(super) const OR_CHANGE: &str = "ON CONFLICT (id) DO UPDATE SET secret_hash = excluded.secret_hash, \
    previous_hash = excluded.previous_hash, record = excluded.record";

/// Every key, by secret and by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    by_secret: Pieces<SecretHash>,
    by_id: Pieces<Arc<str>>,
    pub(super) count: usize,
}

/// A map in pieces that snapshots share: a change copies one piece, not a hundred thousand entries.
#[derive(Clone, Debug)]
struct Pieces<K>(Vec<Arc<HashMap<K, Arc<KeyEntry>>>>);

const PIECES: usize = 64;

impl<K> Default for Pieces<K> {
    fn default() -> Pieces<K> {
        Pieces((0..PIECES).map(|_| Arc::default()).collect())
    }
}

impl<K: Clone + Eq + Hash> Pieces<K> {
    /// The piece for a name.
    fn of(&self, name: &[u8]) -> &HashMap<K, Arc<KeyEntry>> {
        &self.0[place(name)]
    }

    fn of_mut(&mut self, name: &[u8]) -> &mut HashMap<K, Arc<KeyEntry>> {
        Arc::make_mut(&mut self.0[place(name)])
    }
}

fn place(name: &[u8]) -> usize {
    (xxh3_64(name) % PIECES as u64) as usize
}

impl Keys {
    pub(super) fn insert(&mut self, entry: &Arc<KeyEntry>) {
        self.remove(&entry.key.id);
        for hash in [Some(entry.hash), entry.previous_hash].into_iter().flatten() {
            self.by_secret.of_mut(&hash).insert(hash, entry.clone());
        }
        let id = entry.key.id.as_str();
        self.by_id.of_mut(id.as_bytes()).insert(id.into(), entry.clone());
        self.count += 1;
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some(entry) = self.by_id.of_mut(id.as_bytes()).remove(id) else { return };
        for hash in [Some(entry.hash), entry.previous_hash].into_iter().flatten() {
            self.by_secret.of_mut(&hash).remove(&hash);
        }
        self.count -= 1;
    }
}

impl Snapshot {
    /// The key that a secret belongs to, and which of its secrets it is.
    #[must_use]
    pub fn key_of_secret(&self, hash: &SecretHash) -> Option<(&Arc<KeyEntry>, SecretPlace)> {
        let entry = self.keys.by_secret.of(hash).get(hash)?;
        Some((entry, if entry.hash == *hash { SecretPlace::Current } else { SecretPlace::Previous }))
    }

    /// A key by its id.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Arc<KeyEntry>> {
        self.keys.by_id.of(id.as_bytes()).get(id)
    }

    /// Every key, those that ended included, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<KeyEntry>> {
        self.keys.by_id.0.iter().flat_map(|piece| piece.values())
    }
}

impl Catalog {
    /// Adds a key. Where there is no room, keys that ended long ago leave first.
    ///
    /// # Errors
    /// When there are too many, when its id or secret is taken, or when it cannot be written; then there is no such key.
    pub fn add_key(&self, entry: KeyEntry) -> Result<Arc<KeyEntry>, StoreError> {
        let entry = Arc::new(entry);
        let now = entry.key.created_at;
        self.change(|writer, snapshot| {
            let most = self.bounds.keys;
            let over = if snapshot.keys.count < most { Vec::new() } else { long_over(snapshot, now) };
            if snapshot.keys.count - over.len() >= most {
                return (Err(StoreError::Full { what: "virtual keys", most }), false);
            }
            let written = writer.in_transaction(|transaction, stamper| {
                over.iter().try_for_each(|id| delete(transaction, id))?;
                insert(transaction, &entry, "")?;
                stamper.renew(transaction, row_of(&entry), false)
            });
            if let Err(error) = written {
                return (Err(error), false);
            }
            let keys = Arc::make_mut(&mut snapshot.keys);
            over.iter().for_each(|id| keys.remove(id));
            keys.insert(&entry);
            (Ok(entry), true)
        })
    }

    /// Changes a key, and gives it; None where there is none, or where `change` gives none.
    ///
    /// # Errors
    /// When it cannot be written. A key that was taken back stays so until the process ends; any other change is
    /// not made.
    pub fn change_key(
        &self,
        id: &str,
        change: impl FnOnce(&KeyEntry) -> Option<KeyEntry>,
    ) -> Result<Option<Arc<KeyEntry>>, StoreError> {
        self.change(|writer, snapshot| {
            let Some(entry) = snapshot.key(id).and_then(|known| change(known)).map(Arc::new) else {
                return (Ok(None), false);
            };
            let written = writer.in_transaction(|transaction, stamper| {
                insert(transaction, &entry, OR_CHANGE)?;
                stamper.renew(transaction, row_of(&entry), false)
            });
            let is_kept = written.is_ok() || entry.key.revoked_at.is_some();
            if written.is_err() && is_kept {
                writer.hold(row_of(&entry));
            }
            if is_kept {
                Arc::make_mut(&mut snapshot.keys).insert(&entry);
            }
            (written.map(|()| Some(entry)), is_kept)
        })
    }
}

fn row_of(entry: &KeyEntry) -> RowName {
    RowName::new(RowKind::Key, entry.key.id.as_str())
}

pub(super) fn read(connection: &Connection) -> rusqlite::Result<Keys> {
    let mut keys = Keys::default();
    let mut rows = connection.prepare("SELECT record, secret_hash, previous_hash FROM keys")?;
    let read = |row: &Row<'_>| {
        let previous_hash = row.get::<_, Option<SecretHash>>(2)?;
        Ok(KeyEntry { key: from_json(row, 0)?, hash: row.get(1)?, previous_hash })
    };
    for entry in rows.query_map([], read)? {
        keys.insert(&Arc::new(entry?));
    }
    Ok(keys)
}

pub(super) fn insert(connection: &Connection, entry: &KeyEntry, otherwise: &str) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO keys (id, secret_hash, previous_hash, record) VALUES (?1, ?2, ?3, ?4) {otherwise}");
    let previous = entry.previous_hash.as_ref().map(<[u8; 32]>::as_slice);
    connection.prepare_cached(&sql)?.execute(params![
        entry.key.id,
        entry.hash.as_slice(),
        previous,
        to_json(&entry.key)?
    ])?;
    Ok(())
}

pub(super) fn delete(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM keys WHERE id = ?1")?.execute([id]).map(drop)
}

fn long_over(snapshot: &Snapshot, now: Timestamp) -> Vec<String> {
    snapshot.keys().filter(|entry| entry.key.is_long_over(now)).map(|entry| entry.key.id.clone()).collect()
}
