//! Numbered migrations. The number of the last one applied is the file's `user_version`.
//!
//! A migration that has been released is never changed; a new one is added behind it.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;

/// The migrations of one kind of file, oldest first.
pub(crate) type Migrations = &'static [&'static str];

/// Events and totals.
pub(crate) const HISTORY: Migrations = &[
    include_str!("../schema/001_events.sql"),
    include_str!("../schema/002_totals.sql"),
    include_str!("../schema/003_acts.sql"),
    include_str!("../schema/004_verdicts.sql"),
    include_str!("../schema/005_shadow_reports.sql"),
    include_str!("../schema/006_money.sql"),
    include_str!("../schema/007_dlp.sql"),
    include_str!("../schema/008_evidence.sql"),
    include_str!("../schema/009_series.sql"),
    include_str!("../schema/010_agents.sql"),
    include_str!("../schema/011_forwarding.sql"),
];

/// Kills, agents, virtual keys, admin tokens and what was set by hand.
pub(crate) const CATALOG: Migrations = &[
    include_str!("../schema/catalog_001.sql"),
    include_str!("../schema/catalog_002.sql"),
    include_str!("../schema/catalog_003.sql"),
    include_str!("../schema/catalog_004.sql"),
    include_str!("../schema/catalog_005.sql"),
];

/// Alerts on their way.
pub(crate) const ALERTS: Migrations = &[
    include_str!("../schema/alerts_001.sql"),
    include_str!("../schema/alerts_002.sql"),
    include_str!("../schema/alerts_003.sql"),
];

/// Links in alerts that were used.
pub(crate) const LINKS: Migrations = &[include_str!("../schema/links_001.sql")];

/// Applies what the file has not seen yet, all of it or nothing.
pub(super) fn to_newest(connection: &mut Connection, path: &Path, migrations: Migrations) -> Result<(), StoreError> {
    let found = version(connection).map_err(StoreError::database("tell its schema"))?;
    let known = migrations.len() as u32;
    if found > known {
        return Err(StoreError::TooNew { path: path.to_owned(), found, known });
    }
    apply(connection, migrations, found, known).map_err(StoreError::database("be migrated"))
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn apply(connection: &mut Connection, migrations: Migrations, from: u32, to: u32) -> rusqlite::Result<()> {
    if from >= to {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (_, migration) in (1..).zip(migrations).filter(|(number, _)| *number > from && *number <= to) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", to)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{open_writer, prepare_writer};

    fn schema(connection: &Connection) -> Vec<String> {
        let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn an_older_file_ends_up_like_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let fresh = open_writer(&dir.path().join("fresh.db"), HISTORY).unwrap();
        for start in 1..=HISTORY.len() as u32 {
            let path = dir.path().join(format!("from{start}.db"));
            let mut older = Connection::open(&path).unwrap();
            prepare_writer(&older).unwrap();
            apply(&mut older, HISTORY, 0, start).unwrap();
            older
                .execute(
                    "INSERT INTO events (id, at, kind, agent, provider, dialect, path, stream, status, ending,
                     total_ms, overhead_us, unpriced, blocked)
                     VALUES ('old', 1, 'request', 'a', 'p', 'opaque', '/', 0, 200, 'complete', 1, 1, 0, 0)",
                    [],
                )
                .unwrap();
            drop(older);
            let migrated = open_writer(&path, HISTORY).unwrap();
            assert_eq!(schema(&migrated), schema(&fresh));
            assert_eq!(version(&migrated).unwrap() as usize, HISTORY.len());
            let kept: u32 = migrated.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
            assert_eq!(kept, 1);
        }
    }

    #[test]
    fn charts_of_the_last_hours_are_there_after_an_upgrade() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut older = Connection::open(&path).unwrap();
        prepare_writer(&older).unwrap();
        apply(&mut older, HISTORY, 0, 9).unwrap();
        let minute = |ago: i64| -> i64 {
            let now: i64 = older.query_row("SELECT unixepoch() / 60", [], |row| row.get(0)).unwrap();
            now - ago
        };
        let (five, hour, long) = (minute(5), minute(60), minute(125));
        let events = [
            ("1", five, "a", "complete", 0, "NULL"),
            ("2", five, "a", "upstream_gone", 0, "NULL"),
            ("3", five, "b", "refused", 1, "NULL"),
            ("4", five, "b", "complete", 0, "'{}'"),
            ("5", hour, "a", "complete", 0, "NULL"),
            ("6", long, "a", "complete", 0, "NULL"),
        ];
        for (id, minute, agent, ending, blocked, act) in events {
            let sql = format!(
                "INSERT INTO events (id, at, kind, agent, provider, dialect, path, stream, status, ending, total_ms,
                 overhead_us, unpriced, blocked, cost_nano, act)
                 VALUES ('{id}', {minute} * 60000 + 59999, 'llm_call', '{agent}', 'p', 'opaque', '/', 0, 200,
                 '{ending}', 1, 1, 0, {blocked}, 10, {act})"
            );
            older.execute_batch(&sql).unwrap();
        }
        // One minute that was summed in part, and one of which the events are gone.
        let summed = format!("INSERT INTO minute_totals VALUES ({five}, 1, 1, 0, 10), ({hour}, 7, 0, 0, 70)");
        older.execute_batch(&summed).unwrap();
        drop(older);
        let migrated = open_writer(&path, HISTORY).unwrap();
        let rows = |sql: &str| -> Vec<String> {
            let mut statement = migrated.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let sums = "steps || ' ' || blocked || ' ' || errors || ' ' || cost_nano";
        let minutes = rows(&format!("SELECT minute || ': ' || {sums} FROM minute_totals ORDER BY minute"));
        assert_eq!(minutes, [format!("{hour}: 7 0 0 70"), format!("{five}: 3 1 1 30")]);
        let agents = rows(&format!("SELECT minute || ' ' || agent || ': ' || {sums} FROM agent_minutes"));
        assert_eq!(
            agents,
            [format!("{hour} a: 1 0 0 10"), format!("{five} a: 2 0 1 20"), format!("{five} b: 1 1 0 10")]
        );
    }

    #[test]
    fn an_older_catalog_ends_up_like_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let fresh = open_writer(&dir.path().join("fresh.db"), CATALOG).unwrap();
        for start in 1..=CATALOG.len() as u32 {
            let path = dir.path().join(format!("from{start}.db"));
            let mut older = Connection::open(&path).unwrap();
            prepare_writer(&older).unwrap();
            apply(&mut older, CATALOG, 0, start).unwrap();
            older.execute("INSERT INTO marks (agent, run_id, steps, at) VALUES ('a', 'r', 3, 1)", []).unwrap();
            drop(older);
            let migrated = open_writer(&path, CATALOG).unwrap();
            assert_eq!(schema(&migrated), schema(&fresh));
            let cost: i64 = migrated.query_row("SELECT cost_nano FROM marks", [], |row| row.get(0)).unwrap();
            assert_eq!(cost, 0);
        }
    }

    #[test]
    fn older_alerts_end_up_like_new_ones_and_wait_on() {
        let dir = tempfile::tempdir().unwrap();
        let fresh = open_writer(&dir.path().join("fresh.db"), ALERTS).unwrap();
        let path = dir.path().join("older.db");
        let mut older = Connection::open(&path).unwrap();
        prepare_writer(&older).unwrap();
        apply(&mut older, ALERTS, 0, 1).unwrap();
        older
            .execute_batch(
                "INSERT INTO alerts (id, at, rule, subject, body) VALUES ('a', 7, 'r', 's', '{}');
                 INSERT INTO deliveries (seq, channel, state, next_at) VALUES (1, 'ops', 'waiting', 7);",
            )
            .unwrap();
        drop(older);
        let migrated = open_writer(&path, ALERTS).unwrap();
        assert_eq!(schema(&migrated), schema(&fresh));
        let queued_at: i64 = migrated.query_row("SELECT queued_at FROM deliveries", [], |row| row.get(0)).unwrap();
        assert_eq!(queued_at, 7);
    }

    #[test]
    fn a_newer_file_is_refused_with_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let connection = open_writer(&path, HISTORY).unwrap();
        connection.pragma_update(None, "user_version", HISTORY.len() as u32 + 1).unwrap();
        drop(connection);
        let message = open_writer(&path, HISTORY).unwrap_err().to_string();
        let known = HISTORY.len();
        assert!(message.contains(&format!("newer sprag (schema {}, this one knows {known})", known + 1)), "{message}");
        assert!(message.contains("x.db"), "{message}");
    }

    #[test]
    fn a_new_file_is_whole_without_what_stands_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let made = open_writer(&dir.path().join("x.db"), CATALOG).unwrap();
        let synchronous: u32 = made.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!(synchronous, 1, "what is committed from now on is not lost in parts");
        // As a machine leaves it that loses power now.
        std::fs::copy(dir.path().join("x.db"), dir.path().join("y.db")).unwrap();
        let found = Connection::open(dir.path().join("y.db")).unwrap();
        assert_eq!((version(&found).unwrap() as usize, schema(&found)), (CATALOG.len(), schema(&made)));
    }

    #[test]
    fn a_new_file_can_shrink_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let connection = open_writer(&path, HISTORY).unwrap();
        let vacuum: u32 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
        assert_eq!(vacuum, 2, "incremental");
        let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(journal, "wal");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for name in ["x.db", "x.db-wal"] {
                let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{name}");
            }
        }
    }
}
