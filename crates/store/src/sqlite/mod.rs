//! Opening the database file: one writer, readers apart, and the schema brought up to date.

mod migrate;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::data_dir::private_file;
use crate::error::StoreError;

use migrate::Migrations;
pub(crate) use migrate::{ALERTS, CATALOG, HISTORY, LINKS};

/// How long a statement waits for somebody else's lock, such as a backup's.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Opens the one connection that writes, making the file and bringing its schema up to date.
pub(crate) fn open_writer(path: &Path, migrations: Migrations) -> Result<Connection, StoreError> {
    // The file is made here so that it and what SQLite puts beside it are private even in a shared directory.
    let file = private_file().write(true).create(true).truncate(false).open(path).map_err(StoreError::file(path))?;
    let is_new = file.metadata().map_err(StoreError::file(path))?.len() == 0;
    // Closed before SQLite opens it: closing it later would give up SQLite's locks on it.
    drop(file);
    let mut connection = Connection::open(path).map_err(StoreError::database("be opened"))?;
    let prepared = if is_new { connection.pragma_update(None, "synchronous", "OFF") } else { Ok(()) };
    prepared.and_then(|()| prepare_writer(&connection)).map_err(StoreError::database("be prepared"))?;
    migrate::to_newest(&mut connection, path, migrations)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(StoreError::database("be prepared"))?;
    if is_new {
        keep_new(&connection).map_err(StoreError::database("be made durable"))?;
    }
    Ok(connection)
}

/// Writes a new file through to the disk. Until here nothing in it could be lost, so nothing of it was waited for; from
/// here on what is committed must find a whole file below it.
fn keep_new(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Opens a connection that can only read.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn prepare_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Has an effect on an empty file only, hence before the first table.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.cargo/config.toml` says how: what is left out there costs every call that is put on record.
    #[test]
    fn sqlite_is_compiled_as_it_is_used_here() {
        let connection = Connection::open_in_memory().unwrap();
        let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
        let options: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let has = |name: &str| options.iter().any(|option| option == name);
        assert!(has("DEFAULT_MEMSTATUS=0") && has("OMIT_SHARED_CACHE"), "{options:?}");
        assert!(!has("ENABLE_MEMORY_MANAGEMENT") && !has("ENABLE_API_ARMOR"), "{options:?}");
    }
}
