//! What is to be sent where, in which order, and what became of it.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use sprag_core::time::Timestamp;

use super::Outbox;
use crate::error::StoreError;

/// Longest error that is kept of a delivery.
pub(super) const ERROR_CHARS: usize = 300;
/// After so many tries that failed, while others arrive, a message no longer holds up those behind it.
const PATIENT_TRIES: u32 = 3;

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
    pub(super) fn as_str(self) -> &'static str {
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
    /// Since when it is tried.
    pub queued_at: Timestamp,
    /// What it is about: those about the same go out in their order.
    pub about: i64,
}

/// How much is not told yet, or never was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Messages that are tried.
    pub waiting: u32,
    /// Messages that are no longer tried.
    pub given_up: u32,
    /// How often something happened that cooldowns and quiet hours hold back.
    pub held_back: u64,
}

impl Outbox {
    /// The channels that something waits for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn waiting_channels(&self) -> Result<Vec<String>, StoreError> {
        self.change("be read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT DISTINCT channel FROM deliveries WHERE state = 'waiting'")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// What may go to a channel now, what waits longest first, at most so many: one whose time has come, or lies beyond `horizon`
    /// because the clock was set back; and of what is about the same the first. In a channel that fails (`is_strict`) the
    /// first always goes first; in one that works, a message that fails again and again lets others pass.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn due(
        &self,
        channel: &str,
        now: Timestamp,
        horizon: Timestamp,
        is_strict: bool,
        most: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let sql = format!(
            "SELECT {DELIVERY} FROM deliveries AS one
             WHERE state = 'waiting' AND channel = ?1 AND (next_at <= ?2 OR next_at > ?3) AND NOT EXISTS (
                 SELECT 1 FROM deliveries AS earlier
                 WHERE earlier.state = 'waiting' AND earlier.channel = one.channel AND earlier.about = one.about
                     AND earlier.seq < one.seq AND (?4 OR earlier.attempts < {PATIENT_TRIES}))
             ORDER BY next_at, seq LIMIT ?5"
        );
        self.change("be read", |connection| {
            let values = params![channel, now.0, horizon.0, is_strict, i64::try_from(most).unwrap_or(i64::MAX)];
            connection.prepare_cached(&sql)?.query_map(values, delivery)?.collect()
        })
    }

    /// Notes where a delivery stands. What was given up meanwhile does not wait again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let sql = "UPDATE deliveries SET state = ?3, attempts = ?4, next_at = ?5, error = ?6, done_at = ?7
                   WHERE seq = ?1 AND channel = ?2 AND (?3 <> 'waiting' OR state = 'waiting')";
        self.change("be written", |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let noted = statement.execute(params![
                delivery.seq,
                delivery.channel,
                delivery.state.as_str(),
                delivery.attempts,
                delivery.next_at.0,
                bounded(delivery.error.as_deref()),
                delivery.done_at.map(|at| at.0)
            ])?;
            debug_assert!(noted <= 1);
            Ok(())
        })
    }

    /// A channel works again: nothing waits for its next try any longer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn hasten(&self, channel: &str, now: Timestamp) -> Result<(), StoreError> {
        self.change("be written", |connection| {
            let sql = "UPDATE deliveries SET next_at = ?2 WHERE state = 'waiting' AND channel = ?1 AND next_at > ?2";
            connection.execute(sql, params![channel, now.0]).map(drop)
        })
    }

    /// Lets given-up deliveries of an alert wait again, as if it were new; only those to `channel`, where one is named. Says
    /// how many there were; nothing where there is no such alert.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn again(&self, id: &str, channel: Option<&str>, now: Timestamp) -> Result<Option<usize>, StoreError> {
        self.change("be written", |connection| {
            let find = connection.query_row("SELECT seq FROM alerts WHERE id = ?1", [id], |row| row.get(0)).optional();
            let Some(seq): Option<i64> = find? else { return Ok(None) };
            let sql = "UPDATE deliveries
                       SET state = 'waiting', attempts = 0, next_at = ?3, queued_at = ?3, error = NULL, done_at = NULL
                       WHERE seq = ?1 AND state = 'given_up' AND (?2 IS NULL OR channel = ?2)";
            connection.execute(sql, params![seq, channel, now.0]).map(Some)
        })
    }

    /// How much is not told yet, or never was.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn backlog(&self) -> Result<Backlog, StoreError> {
        self.change("be read", |connection| {
            let sql = "SELECT coalesce(sum(state = 'waiting'), 0), coalesce(sum(state = 'given_up'), 0),
                           (SELECT total(json_extract(body, '$.suppressed')) FROM standings)
                       FROM deliveries";
            connection.query_row(sql, [], |row| {
                Ok(Backlog { waiting: row.get(0)?, given_up: row.get(1)?, held_back: row.get::<_, f64>(2)? as u64 })
            })
        })
    }
}

/// Takes away what is too old to be listed. What still waits when half of that is newer is given up before, so that it can
/// be seen. Says how many those were.
pub(super) fn make_room(transaction: &Transaction<'_>, most: u32, now: Timestamp) -> rusqlite::Result<u64> {
    let newest: i64 = transaction.query_row("SELECT coalesce(max(seq), 0) FROM alerts", [], |row| row.get(0))?;
    let (most, half) = (i64::from(most), i64::from(most) / 2);
    let error = format!("given up: {half} newer alerts came while it waited");
    let given_up = transaction
        .prepare_cached(
            "UPDATE deliveries SET state = 'given_up', error = ?2, done_at = ?3 WHERE state = 'waiting' AND seq <= ?1",
        )?
        .execute(params![newest - half, error, now.0])?;
    transaction.prepare_cached("DELETE FROM deliveries WHERE seq <= ?1")?.execute([newest - most])?;
    transaction.prepare_cached("DELETE FROM alerts WHERE seq <= ?1")?.execute([newest - most])?;
    Ok(given_up as u64)
}

/// The deliveries of an alert.
pub(super) fn of(connection: &Connection, seq: i64) -> rusqlite::Result<Vec<Delivery>> {
    let sql = format!("SELECT {DELIVERY} FROM deliveries WHERE seq = ?1 ORDER BY channel");
    connection.prepare_cached(&sql)?.query_map([seq], delivery)?.collect()
}

pub(super) fn bounded(error: Option<&str>) -> Option<String> {
    error.map(|error| error.chars().take(ERROR_CHARS).collect())
}

const DELIVERY: &str = "seq, channel, state, attempts, next_at, error, done_at, queued_at, about";

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
        queued_at: Timestamp(row.get(7)?),
        about: row.get(8)?,
    })
}
