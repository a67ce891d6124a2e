//! How far this node has come with sending: one row of its own database.

use rusqlite::{Connection, OptionalExtension, params};

/// What stands in the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The node's name in the shared history.
    pub(super) node: String,
    /// The number of the last batch; sums of a higher one replace those of a lower one.
    pub(super) version: i64,
    /// Events up to this row have arrived.
    pub(super) sent: i64,
    /// Events up to this row are on their way; not above `sent` when none are.
    pub(super) sending: i64,
    /// All sums are to be sent.
    pub(super) is_whole_due: bool,
    /// Events whose detail was given up before it was sent.
    pub(super) dropped: u64,
}

/// What waits to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// How many events.
    pub(super) events: u64,
    /// When the oldest of them happened, in milliseconds since the Unix epoch.
    pub(super) oldest_at: Option<i64>,
}

impl Position {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Position> {
        connection.query_row("SELECT node, version, sent, sending, is_whole_due, dropped FROM forwarding", [], |row| {
            Ok(Position {
                node: row.get(0)?,
                version: row.get(1)?,
                sent: row.get(2)?,
                sending: row.get(3)?,
                is_whole_due: row.get(4)?,
                dropped: row.get::<_, i64>(5)?.unsigned_abs(),
            })
        })
    }

    pub(super) fn waiting(&self, connection: &Connection) -> rusqlite::Result<Waiting> {
        let newest: i64 = connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
        let oldest_at = connection
            .query_row("SELECT at FROM events WHERE seq > ?1 ORDER BY seq LIMIT 1", [self.sent], |row| row.get(0))
            .optional()?;
        Ok(Waiting { events: u64::try_from(newest - self.sent).unwrap_or(0), oldest_at })
    }
}

/// Begins a batch of events up to a row, and gives it its number.
pub(super) fn begin(connection: &Connection, sending: i64) -> rusqlite::Result<i64> {
    connection.query_row(
        "UPDATE forwarding SET version = version + 1, sending = ?1 RETURNING version",
        [sending],
        |row| row.get(0),
    )
}

/// The events up to a row have arrived. Never goes back: what was given up meanwhile stays so.
pub(super) fn arrived(connection: &Connection, sent: i64) -> rusqlite::Result<()> {
    connection.execute("UPDATE forwarding SET sent = max(sent, ?1)", [sent]).map(drop)
}

/// All sums have arrived.
pub(super) fn whole_arrived(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE forwarding SET is_whole_due = 0", []).map(drop)
}

/// All that is still here is to be sent again: the server does not know this node, or nothing was sent for a while, and
/// row numbers may have begun anew.
pub(in crate::history) fn start_over(connection: &Connection) -> rusqlite::Result<()> {
    const START_OVER: &str = "UPDATE forwarding SET sent = 0, sending = 0, is_whole_due = 1 WHERE sent > 0";
    connection.execute(START_OVER, []).map(drop)
}

/// Gives up the detail of the oldest events that wait, at most so many. Their money stays in the sums, all of which are
/// sent again. Says how many there were.
pub(in crate::history) fn give_up_oldest(connection: &Connection, most: i64) -> rusqlite::Result<u64> {
    let last: Option<i64> = connection.query_row(
        // The newest row stays: row numbers must go on from it.
        "SELECT max(seq) FROM (SELECT seq FROM events, forwarding WHERE seq > sent
            AND seq < (SELECT max(seq) FROM events) ORDER BY seq LIMIT ?1)",
        [most],
        |row| row.get(0),
    )?;
    let Some(last) = last else { return Ok(0) };
    let transaction = connection.unchecked_transaction()?;
    let gone =
        transaction.execute("DELETE FROM events WHERE seq <= ?1 AND seq > (SELECT sent FROM forwarding)", [last])?;
    transaction.execute(
        "UPDATE forwarding SET sent = ?1, is_whole_due = 1, dropped = dropped + ?2",
        params![last, gone as i64],
    )?;
    transaction.commit()?;
    Ok(gone as u64)
}

/// Events that wait to be sent.
pub(in crate::history) fn waiting_events(connection: &Connection) -> rusqlite::Result<u64> {
    Position::read(connection)?.waiting(connection).map(|waiting| waiting.events)
}
