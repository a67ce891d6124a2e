//! Alerts on their way: on disk before they are sent, and until each channel has them or was given up. Beside them what
//! rules hold back, and the channels and rules that were made at run time.
//!
//! - `deliveries`: what is to be sent where, and what became of it
//! - `made`: channels and rules of the run time
//!
//! A file of its own: what is sent never waits for what is recorded.

mod deliveries;
mod made;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sprag_core::alerts::{Alert, Standing, StandingChange};
use sprag_core::limits::ALERTS_KEPT;
use sprag_core::time::Timestamp;

pub use self::deliveries::{Backlog, Delivery, DeliveryState};
pub use self::made::{Made, MadeKind};
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::shards::with_lock;
use crate::shared_catalog::{Unshared, stamps};
use crate::sqlite::{ALERTS, open_writer};

const FILE: &str = "alerts.db";

/// The alerts of one data directory.
pub struct Outbox {
    connection: Mutex<Connection>,
    most: u32,
    /// This node, as stamps name it.
    node: String,
    /// Who wants to know which channels and rules are changed here.
    unshared: OnceLock<Arc<Unshared>>,
    /// Keeps other processes out for as long as the file is in use.
    _dir: Arc<DataDir>,
}

/// An alert that is not on disk yet, and who shall get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Raised {
    /// What is sent.
    pub alert: Alert,
    /// When it was raised.
    pub at: Timestamp,
    /// To whom.
    pub channels: Vec<String>,
}

/// An alert with what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SentAlert {
    /// Its number.
    pub seq: i64,
    /// When it was raised.
    pub at: Timestamp,
    /// What is sent.
    pub alert: Alert,
    /// To whom.
    pub deliveries: Vec<Delivery>,
}

impl Outbox {
    /// Opens the file, and makes it where it is missing.
    ///
    /// # Errors
    /// When it cannot be read and written.
    pub fn open(dir: Arc<DataDir>) -> Result<Outbox, StoreError> {
        Outbox::bounded(dir, ALERTS_KEPT)
    }

    /// The same with room for so many alerts.
    ///
    /// # Errors
    /// As [`Outbox::open`].
    pub fn bounded(dir: Arc<DataDir>, most: u32) -> Result<Outbox, StoreError> {
        let connection = open_writer(&dir.path().join(FILE), ALERTS)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(StoreError::database("be prepared"))?;
        let connection = Mutex::new(connection);
        Ok(Outbox { connection, most, node: stamps::new_node(), unshared: OnceLock::new(), _dir: dir })
    }

    /// Puts alerts on record, to be sent to their channels, together with where their subjects stand: all of it or nothing.
    /// An alert that is there already stays as it is. Says how many messages were given up because too many newer alerts
    /// came while they waited.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, raised: &[Raised], standings: &[StandingChange]) -> Result<u64, StoreError> {
        // Who was told that something is on its way must get it, also when the power fails: one flush for all of them. Counts
        // need only survive the process.
        let safety = if raised.is_empty() { "NORMAL" } else { "FULL" };
        self.change("be written", |connection| {
            connection.pragma_update(None, "synchronous", safety)?;
            let written = write_all(connection, raised, standings, self.most);
            connection.pragma_update(None, "synchronous", "FULL")?;
            written
        })
    }

    /// Puts an alert on record that was sent already, or could not be.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_done(
        &self,
        alert: &Alert,
        at: Timestamp,
        channel: &str,
        error: Option<String>,
    ) -> Result<(), StoreError> {
        let state = if error.is_none() { DeliveryState::Delivered } else { DeliveryState::GivenUp };
        let raised = Raised { alert: alert.clone(), at, channels: Vec::new() };
        self.change("be written", |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert(&transaction, &raised)?;
            deliveries::make_room(&transaction, self.most, at)?;
            transaction.execute(
                "INSERT OR IGNORE INTO deliveries (seq, channel, state, attempts, next_at, error, done_at, queued_at, about)
                 SELECT seq, ?2, ?3, 1, ?4, ?5, ?4, ?4, ?6 FROM alerts WHERE id = ?1",
                params![alert.id, channel, state.as_str(), at.0, deliveries::bounded(error.as_deref()), alert.about()],
            )?;
            transaction.commit()
        })
    }

    /// What rules knew about their subjects when they were last written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn standings(&self) -> Result<Vec<(String, String, Standing)>, StoreError> {
        let rows: Vec<(String, String, String)> = self.change("be read", |connection| {
            let mut statement = connection.prepare("SELECT rule, subject, body FROM standings")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })?;
        // A body that a later version wrote in another form is left out.
        let read =
            |(rule, subject, body): (String, String, String)| Some((rule, subject, serde_json::from_str(&body).ok()?));
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// An alert by its number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn alert(&self, seq: i64) -> Result<Option<Alert>, StoreError> {
        let body: Option<String> = self.change("be read", |connection| {
            connection.query_row("SELECT body FROM alerts WHERE seq = ?1", [seq], |row| row.get(0)).optional()
        })?;
        Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
    }

    /// Alerts, the latest first; `before` is the number of the last one of the page before.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, before: Option<i64>, most: u32) -> Result<Vec<SentAlert>, StoreError> {
        self.change("be read", |connection| {
            let mut statement = connection
                .prepare_cached("SELECT seq, at, body FROM alerts WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2")?;
            let rows: Vec<(i64, i64, String)> = statement
                .query_map(params![before.unwrap_or(i64::MAX), most], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?
                .collect::<rusqlite::Result<_>>()?;
            let mut alerts = Vec::with_capacity(rows.len());
            for (seq, at, body) in rows {
                // A body that a later version wrote in another form is left out.
                let Ok(alert) = serde_json::from_str(&body) else { continue };
                alerts.push(SentAlert { seq, at: Timestamp(at), alert, deliveries: deliveries::of(connection, seq)? });
            }
            Ok(alerts)
        })
    }

    fn change<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        with_lock(&self.connection, work).map_err(StoreError::database(action))
    }
}

fn write_all(
    connection: &mut Connection,
    raised: &[Raised],
    standings: &[StandingChange],
    most: u32,
) -> rusqlite::Result<u64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    raised.iter().try_for_each(|one| insert(&transaction, one))?;
    let given_up = match raised.last() {
        Some(last) => deliveries::make_room(&transaction, most, last.at)?,
        None => 0,
    };
    standings.iter().try_for_each(|change| keep(&transaction, change))?;
    transaction.commit()?;
    Ok(given_up)
}

fn insert(transaction: &Transaction<'_>, raised: &Raised) -> rusqlite::Result<()> {
    let Raised { alert, at, channels } = raised;
    let body = serde_json::to_string(alert).unwrap_or_default();
    let added = transaction
        .prepare_cached("INSERT OR IGNORE INTO alerts (id, at, rule, subject, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![alert.id, at.0, alert.rule, alert.subject, body])?;
    if added == 0 {
        return Ok(());
    }
    let seq = transaction.last_insert_rowid();
    let mut statement = transaction.prepare_cached(
        "INSERT OR IGNORE INTO deliveries (seq, channel, state, next_at, queued_at, about)
         VALUES (?1, ?2, 'waiting', ?3, ?3, ?4)",
    )?;
    channels.iter().try_for_each(|channel| statement.execute(params![seq, channel, at.0, alert.about()]).map(drop))
}

fn keep(transaction: &Transaction<'_>, change: &StandingChange) -> rusqlite::Result<()> {
    let StandingChange { rule, subject, standing } = change;
    match standing {
        Some(standing) => transaction
            .prepare_cached("INSERT OR REPLACE INTO standings (rule, subject, body) VALUES (?1, ?2, ?3)")?
            .execute(params![rule, subject, serde_json::to_string(standing).unwrap_or_default()])?,
        None => transaction
            .prepare_cached("DELETE FROM standings WHERE rule = ?1 AND subject = ?2")?
            .execute(params![rule, subject])?,
    };
    Ok(())
}
