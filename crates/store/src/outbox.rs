//! Alerts on their way: on disk before they are sent, and until each channel has them or was given up.
//!
//! A file of its own: what is sent never waits for what is recorded.

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use sprag_core::alerts::Alert;
use sprag_core::limits::ALERTS_KEPT;
use sprag_core::time::Timestamp;

use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::shards::with_lock;
use crate::sqlite::{ALERTS, open_writer};

/// Longest error that is kept of a delivery.
const ERROR_CHARS: usize = 300;

/// The alerts of one data directory.
pub struct Outbox {
    connection: Mutex<Connection>,
    most: u32,
    /// Keeps other processes out for as long as the file is in use.
    _dir: Arc<DataDir>,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DeliveryState {
    /// It is tried again.
    Waiting,
    /// The channel has it.
    Delivered,
    /// It is no longer tried.
    GivenUp,
}

impl DeliveryState {
    fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::GivenUp => "given_up",
        }
    }
}

/// An alert to one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The alert's number.
    pub seq: i64,
    /// The channel's name.
    pub channel: String,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    pub next_at: Timestamp,
    /// Why the last try failed.
    pub error: Option<String>,
    /// When it was delivered or given up.
    pub done_at: Option<Timestamp>,
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
        let connection = open_writer(&dir.path().join("alerts.db"), ALERTS)?;
        // Who was told that something is on its way must get it, also when the power fails.
        connection.pragma_update(None, "synchronous", "FULL").map_err(StoreError::database("be prepared"))?;
        Ok(Outbox { connection: Mutex::new(connection), most, _dir: dir })
    }

    /// Puts an alert on record, to be sent to these channels. One that is there already stays as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, alert: &Alert, at: Timestamp, channels: &[String]) -> Result<(), StoreError> {
        let body = serde_json::to_string(alert).unwrap_or_default();
        self.change("be written", |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let added = transaction.execute(
                "INSERT OR IGNORE INTO alerts (id, at, rule, subject, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![alert.id, at.0, alert.rule, alert.subject, body],
            )?;
            if added == 1 {
                let seq = transaction.last_insert_rowid();
                for channel in channels {
                    transaction.execute(
                        "INSERT OR IGNORE INTO deliveries (seq, channel, state, next_at) VALUES (?1, ?2, 'waiting', ?3)",
                        params![seq, channel, at.0],
                    )?;
                }
                let oldest = seq.saturating_sub(i64::from(self.most));
                transaction.execute("DELETE FROM deliveries WHERE seq <= ?1", [oldest])?;
                transaction.execute("DELETE FROM alerts WHERE seq <= ?1", [oldest])?;
            }
            transaction.commit()
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
        self.add(alert, at, &[])?;
        let state = if error.is_none() { DeliveryState::Delivered } else { DeliveryState::GivenUp };
        let error: Option<String> = error.map(|error| error.chars().take(ERROR_CHARS).collect());
        self.change("be written", |connection| {
            connection
                .execute(
                    "INSERT OR IGNORE INTO deliveries (seq, channel, state, attempts, next_at, error, done_at)
                     SELECT seq, ?2, ?3, 1, ?4, ?5, ?4 FROM alerts WHERE id = ?1",
                    params![alert.id, channel, state.as_str(), at.0, error],
                )
                .map(drop)
        })
    }

    /// Everything that is still to be delivered, the oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn waiting(&self) -> Result<Vec<Delivery>, StoreError> {
        self.change("be read", |connection| {
            let sql = format!("SELECT {DELIVERY} FROM deliveries WHERE state = 'waiting' ORDER BY seq");
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map([], delivery)?.collect()
        })
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

    /// Notes where a delivery stands.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let error: Option<String> = delivery.error.as_ref().map(|error| error.chars().take(ERROR_CHARS).collect());
        self.change("be written", |connection| {
            connection
                .execute(
                    "UPDATE deliveries SET state = ?3, attempts = ?4, next_at = ?5, error = ?6, done_at = ?7
                     WHERE seq = ?1 AND channel = ?2",
                    params![
                        delivery.seq,
                        delivery.channel,
                        delivery.state.as_str(),
                        delivery.attempts,
                        delivery.next_at.0,
                        error,
                        delivery.done_at.map(|at| at.0)
                    ],
                )
                .map(drop)
        })
    }

    /// Alerts, the latest first; `before` is the number of the last one of the page before.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, before: Option<i64>, most: u32) -> Result<Vec<SentAlert>, StoreError> {
        let sql = "SELECT seq, at, body FROM alerts WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
        self.read(sql, params![before.unwrap_or(i64::MAX), most])
    }

    /// The latest alert about each subject of each rule, since a moment.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn latest(&self, since: Timestamp) -> Result<Vec<SentAlert>, StoreError> {
        let sql = "SELECT seq, at, body FROM alerts
                   WHERE seq IN (SELECT max(seq) FROM alerts WHERE at >= ?1 GROUP BY rule, subject) ORDER BY seq";
        self.read(sql, params![since.0])
    }

    fn read(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<SentAlert>, StoreError> {
        self.change("be read", |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows: Vec<(i64, i64, String)> = statement
                .query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let sql = format!("SELECT {DELIVERY} FROM deliveries WHERE seq = ?1 ORDER BY channel");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut alerts = Vec::with_capacity(rows.len());
            for (seq, at, body) in rows {
                // A body that a later version wrote in another form is left out.
                let Ok(alert) = serde_json::from_str(&body) else { continue };
                let deliveries = statement.query_map([seq], delivery)?.collect::<rusqlite::Result<_>>()?;
                alerts.push(SentAlert { seq, at: Timestamp(at), alert, deliveries });
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

const DELIVERY: &str = "seq, channel, state, attempts, next_at, error, done_at";

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let state: String = row.get(2)?;
    Ok(Delivery {
        seq: row.get(0)?,
        channel: row.get(1)?,
        state: match state.as_str() {
            "delivered" => DeliveryState::Delivered,
            "given_up" => DeliveryState::GivenUp,
            _ => DeliveryState::Waiting,
        },
        attempts: row.get(3)?,
        next_at: Timestamp(row.get(4)?),
        error: row.get(5)?,
        done_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
    })
}

#[cfg(test)]
mod tests {
    use sprag_core::alerts::{AlertKind, AlertState, Occurrence};

    use super::*;

    fn alert(subject: &str, at: i64) -> Alert {
        let of = ("loops", AlertKind::LoopDetected);
        Alert::new(of, subject, AlertState::Firing, Timestamp(at), 0, Occurrence::default())
    }

    fn channels() -> Vec<String> {
        ["mail", "ops"].map(str::to_owned).to_vec()
    }

    #[test]
    fn what_waits_is_there_after_a_restart_until_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Outbox::open(Arc::new(DataDir::open(folder.path()).unwrap())).unwrap();
        let outbox = open();
        outbox.add(&alert("bot", 1), Timestamp(1), &channels()).unwrap();
        outbox.add(&alert("bot", 1), Timestamp(1), &channels()).unwrap();
        drop(outbox);
        let outbox = open();
        let waiting = outbox.waiting().unwrap();
        assert_eq!(waiting.iter().map(|one| one.channel.as_str()).collect::<Vec<_>>(), ["mail", "ops"], "each once");
        assert_eq!(outbox.alert(waiting[0].seq).unwrap(), Some(alert("bot", 1)));
        let (error, next_at) = (Some("x".repeat(ERROR_CHARS + 1)), Timestamp(9));
        outbox.note(&Delivery { attempts: 1, next_at, error, ..waiting[0].clone() }).unwrap();
        let (state, done_at) = (DeliveryState::Delivered, Some(Timestamp(5)));
        outbox.note(&Delivery { state, done_at, ..waiting[1].clone() }).unwrap();
        drop(outbox);
        let outbox = open();
        let left = outbox.waiting().unwrap();
        assert_eq!((left.len(), left[0].attempts, left[0].next_at), (1, 1, Timestamp(9)));
        let listed = outbox.list(None, 10).unwrap();
        assert_eq!(listed[0].deliveries[0].error.as_ref().map(String::len), Some(ERROR_CHARS));
        assert_eq!((listed[0].deliveries[1].state, listed[0].deliveries[1].done_at), (state, done_at));
    }

    #[test]
    fn alerts_are_listed_in_pages_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::bounded(Arc::new(DataDir::open(folder.path()).unwrap()), 3).unwrap();
        for at in 1..=5 {
            outbox.add(&alert(if at % 2 == 0 { "a" } else { "b" }, at), Timestamp(at), &channels()).unwrap();
        }
        let moments = |alerts: Vec<SentAlert>| alerts.iter().map(|alert| alert.at.0).collect::<Vec<_>>();
        let first = outbox.list(None, 2).unwrap();
        let last = first[1].seq;
        assert_eq!(moments(first), [5, 4]);
        assert_eq!(moments(outbox.list(Some(last), 2).unwrap()), [3], "the oldest are gone");
        assert_eq!(outbox.waiting().unwrap().len(), 6);
        assert_eq!(moments(outbox.latest(Timestamp(0)).unwrap()), [4, 5]);
        assert_eq!(moments(outbox.latest(Timestamp(5)).unwrap()), [5]);
    }
}
