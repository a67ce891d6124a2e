//! Channels and rules that were made at run time, each as it would stand in the configuration. Whoever reads them checks them.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::{FILE, Outbox};
use crate::error::StoreError;
use crate::shared_catalog::row::{Content, Row, RowKind, RowName, Stamp};
use crate::shared_catalog::{Unshared, stamps};
use crate::sqlite::open_reader;

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeKind {
    /// A channel.
    Channel,
    /// A rule.
    Rule,
}

/// A channel or a rule.
#[derive(Clone, PartialEq, Eq)]
pub struct Made {
    /// Which of both.
    pub kind: MadeKind,
    /// Its name.
    pub name: String,
    /// JSON. A channel's holds secrets.
    pub body: String,
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").field("kind", &self.kind).field("name", &self.name).finish_non_exhaustive()
    }
}

impl MadeKind {
    fn as_str(self) -> &'static str {
        match self {
            MadeKind::Channel => "channel",
            MadeKind::Rule => "rule",
        }
    }

    fn row(self, name: &str) -> RowName {
        RowName::new(if self == MadeKind::Rule { RowKind::Rule } else { RowKind::Channel }, name)
    }

    /// What a row is, where it is one of these.
    #[must_use]
    pub fn of(kind: RowKind) -> Option<MadeKind> {
        match kind {
            RowKind::Channel => Some(MadeKind::Channel),
            RowKind::Rule => Some(MadeKind::Rule),
            _ => None,
        }
    }
}

impl Outbox {
    /// All that were made, by their names.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn made(&self) -> Result<Vec<Made>, StoreError> {
        self.change("be read", |connection| read(connection))
    }

    /// All that were made in a data directory that another process may have; none where there is no outbox yet, or an older
    /// one that knows of none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_made(data_dir: &Path) -> Result<Vec<Made>, StoreError> {
        let file = data_dir.join(FILE);
        if !file.exists() {
            return Ok(Vec::new());
        }
        let read = || {
            let connection = open_reader(&file)?;
            let is_there = connection.table_exists(None, "made")?;
            if is_there { read(&connection) } else { Ok(Vec::new()) }
        };
        read().map_err(StoreError::database("be read"))
    }

    /// Makes one, or changes the one of that name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(&self, made: &Made) -> Result<(), StoreError> {
        self.change_made(made.kind.row(&made.name), |connection| put(connection, made.kind, &made.name, &made.body))
    }

    /// Takes one away.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn unmake(&self, kind: MadeKind, name: &str) -> Result<(), StoreError> {
        self.change_made(kind.row(name), |connection| remove(connection, kind, name))
    }

    fn change_made(
        &self,
        row: RowName,
        work: impl FnOnce(&Connection) -> rusqlite::Result<bool>,
    ) -> Result<(), StoreError> {
        self.change("be written", |connection| {
            let transaction = connection.transaction()?;
            let is_there = work(&transaction)?;
            let known = stamps::of(&transaction, &row)?;
            stamps::set(&transaction, &row, &stamps::next(known.as_ref(), &self.node, !is_there))?;
            transaction.commit()
        })?;
        if let Some(unshared) = self.unshared.get() {
            unshared.add([row]);
        }
        Ok(())
    }

    /// From now on `unshared` hears which channels and rules are made, changed or taken away here.
    pub fn share(&self, unshared: Arc<Unshared>) {
        let _ = self.unshared.set(unshared);
    }

    /// The stamps of all of a kind, those that were taken away not long ago included.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn stamps(&self, kind: RowKind) -> Result<Vec<(String, Stamp)>, StoreError> {
        self.change("be read", |connection| stamps::of_kind(connection, kind))
    }

    /// One of them for other nodes; none where there never was one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn row(&self, name: &RowName) -> Result<Option<Row>, StoreError> {
        let found = self.change("be read", |connection| {
            let Some(stamp) = stamps::of(connection, name)? else { return Ok(None) };
            let body: Option<String> = connection
                .prepare_cached("SELECT body FROM made WHERE kind = ?1 AND name = ?2")?
                .query_row(params![name.kind.as_str(), name.name], |row| row.get(0))
                .optional()?;
            Ok(Some((stamp, body)))
        })?;
        let Some((stamp, body)) = found else { return Ok(None) };
        let row = |content| Some(Row { name: name.clone(), stamp: stamp.clone(), content });
        if stamp.gone_at.is_some() {
            return Ok(row(None));
        }
        let written = body.and_then(|body| serde_json::from_str::<Value>(&body).ok());
        Ok(written.and_then(|written| row(Some(Content::Made(written)))))
    }

    /// Takes one of another node, if it is later than what is known here. Says whether it is.
    ///
    /// # Errors
    /// When it cannot be written; then nothing changes.
    pub fn apply(&self, row: &Row) -> Result<bool, StoreError> {
        let Some(kind) = MadeKind::of(row.name.kind) else { return Ok(false) };
        self.change("be written", |connection| {
            let transaction = connection.transaction()?;
            if !row.stamp.beats(stamps::of(&transaction, &row.name)?.as_ref()) {
                return Ok(false);
            }
            match &row.content {
                Some(Content::Made(written)) => put(&transaction, kind, &row.name.name, &written.to_string())?,
                Some(_) => return Ok(false),
                None => remove(&transaction, kind, &row.name.name)?,
            };
            stamps::set(&transaction, &row.name, &row.stamp)?;
            transaction.commit()?;
            Ok(true)
        })
    }

    /// Forgets what was taken away long ago.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget_gone(&self) -> Result<usize, StoreError> {
        self.change("be written", |connection| stamps::forget_gone(connection))
    }
}

fn put(connection: &Connection, kind: MadeKind, name: &str, body: &str) -> rusqlite::Result<bool> {
    let sql = "INSERT OR REPLACE INTO made (kind, name, body) VALUES (?1, ?2, ?3)";
    connection.execute(sql, params![kind.as_str(), name, body]).map(|_| true)
}

fn remove(connection: &Connection, kind: MadeKind, name: &str) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM made WHERE kind = ?1 AND name = ?2";
    connection.execute(sql, params![kind.as_str(), name]).map(|_| false)
}

fn read(connection: &Connection) -> rusqlite::Result<Vec<Made>> {
    let mut statement = connection.prepare("SELECT kind, name, body FROM made ORDER BY kind, name")?;
    let rows = statement.query_map([], |row| {
        let kind: String = row.get(0)?;
        let kind = if kind == "rule" { MadeKind::Rule } else { MadeKind::Channel };
        Ok(Made { kind, name: row.get(1)?, body: row.get(2)? })
    })?;
    rows.collect()
}
