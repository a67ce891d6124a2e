//! Channels and rules that were made at run time, each as it would stand in the configuration. Whoever reads them checks them.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{FILE, Outbox};
use crate::error::StoreError;
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
        self.change("be written", |connection| {
            let sql = "INSERT OR REPLACE INTO made (kind, name, body) VALUES (?1, ?2, ?3)";
            connection.execute(sql, params![made.kind.as_str(), made.name, made.body]).map(drop)
        })
    }

    /// Takes one away.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn unmake(&self, kind: MadeKind, name: &str) -> Result<(), StoreError> {
        self.change("be written", |connection| {
            let sql = "DELETE FROM made WHERE kind = ?1 AND name = ?2";
            connection.execute(sql, params![kind.as_str(), name]).map(drop)
        })
    }
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
