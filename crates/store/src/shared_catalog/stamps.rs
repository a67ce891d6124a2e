//! Stamps of rows, on disk beside the rows: in the catalog, and with the alerts.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sprag_core::limits::{GONE_ROW_DAYS, GONE_ROWS};

use super::row::{RowKind, RowName, Stamp};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The stamp of a row; none where nobody ever had one of this name.
pub(crate) fn of(connection: &Connection, row: &RowName) -> rusqlite::Result<Option<Stamp>> {
    connection
        .prepare_cached("SELECT at, node, gone_at FROM stamps WHERE kind = ?1 AND name = ?2")?
        .query_row(params![row.kind.as_str(), row.name], |row| read(row, 0))
        .optional()
}

/// Sets the stamp of a row.
pub(crate) fn set(connection: &Connection, row: &RowName, stamp: &Stamp) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO stamps (kind, name, at, node, gone_at) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![row.kind.as_str(), row.name, stamp.at, stamp.node, stamp.gone_at])
        .map(drop)
}

/// The stamps of all rows of a kind, those that left included.
pub(crate) fn of_kind(connection: &Connection, kind: RowKind) -> rusqlite::Result<Vec<(String, Stamp)>> {
    connection
        .prepare_cached("SELECT name, at, node, gone_at FROM stamps WHERE kind = ?1")?
        .query_map([kind.as_str()], |row| Ok((row.get(0)?, read(row, 1)?)))?
        .collect()
}

/// A stamp for a change that is made here now: later than any before.
pub(crate) fn next(known: Option<&Stamp>, node: &str, is_gone: bool) -> Stamp {
    let now = now_ms();
    let at = known.map_or(now, |known| now.max(known.at.saturating_add(1)));
    Stamp { at, node: node.to_owned(), gone_at: is_gone.then_some(now) }
}

/// Forgets rows that left long ago, and those that left first where there are too many.
pub(crate) fn forget_gone(connection: &Connection) -> rusqlite::Result<usize> {
    forget_gone_beyond(connection, GONE_ROWS)
}

fn forget_gone_beyond(connection: &Connection, most: usize) -> rusqlite::Result<usize> {
    let old = connection.execute("DELETE FROM stamps WHERE gone_at < ?1", [now_ms() - gone_row_ms()])?;
    let count: u32 =
        connection.query_row("SELECT count(*) FROM stamps WHERE gone_at IS NOT NULL", [], |row| row.get(0))?;
    let excess = (count as usize).saturating_sub(most);
    if excess == 0 {
        return Ok(old);
    }
    let sql = "DELETE FROM stamps WHERE (kind, name) IN
        (SELECT kind, name FROM stamps WHERE gone_at IS NOT NULL ORDER BY gone_at LIMIT ?1)";
    Ok(old + connection.execute(sql, [i64::try_from(excess).unwrap_or(i64::MAX)])?)
}

/// For how long a row that left is remembered.
pub(crate) fn gone_row_ms() -> i64 {
    i64::from(GONE_ROW_DAYS) * DAY_MS
}

/// The time by which nodes compare their changes.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A name for this node, new with each start: no two processes ever share one, also where a data directory was copied.
pub(crate) fn new_node() -> String {
    format!("{:016x}", rand::random::<u64>())
}

fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Stamp> {
    Ok(Stamp { at: row.get(first)?, node: row.get(first + 1)?, gone_at: row.get(first + 2)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{CATALOG, open_writer};

    #[test]
    fn a_later_change_wins_however_the_clock_goes() {
        let ahead = Stamp { at: now_ms() + 1_000_000, node: "b".into(), gone_at: None };
        let next = next(Some(&ahead), "a", true);
        assert!(next.beats(Some(&ahead)) && next.gone_at.is_some());
    }

    #[test]
    fn rows_that_left_are_forgotten_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), CATALOG).unwrap();
        let stamp = |gone_at| Stamp { at: 1, node: "a".into(), gone_at };
        let names = ["live", "recent", "old"].map(|name| RowName::new(RowKind::Key, name));
        let ages = [None, Some(now_ms() - gone_row_ms() + DAY_MS), Some(now_ms() - gone_row_ms() - DAY_MS)];
        for (name, age) in names.iter().zip(ages) {
            set(&connection, name, &stamp(age)).unwrap();
        }
        assert_eq!(forget_gone(&connection).unwrap(), 1);
        let kept = names.map(|name| of(&connection, &name).unwrap().is_some());
        assert_eq!(kept, [true, true, false]);
    }

    #[test]
    fn of_too_many_that_left_the_first_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), CATALOG).unwrap();
        let left = now_ms() - DAY_MS;
        let name = |number: i64| RowName::new(RowKind::Key, number.to_string());
        for number in 0..4 {
            let stamp = Stamp { at: 1, node: "a".into(), gone_at: (number < 3).then_some(left - number) };
            set(&connection, &name(number), &stamp).unwrap();
        }
        assert_eq!(forget_gone_beyond(&connection, 3).unwrap(), 0, "at the bound");
        assert_eq!(forget_gone_beyond(&connection, 2).unwrap(), 1, "one past it");
        let kept: Vec<bool> = (0..4).map(|number| of(&connection, &name(number)).unwrap().is_some()).collect();
        assert_eq!(kept, [true, true, false, true]);
    }
}
