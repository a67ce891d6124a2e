//! Links in alerts that were used: each works once, also after a restart.
//!
//! A file of its own: whoever takes a link waits for nothing but the disk.

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sprag_core::limits::USED_LINKS;
use sprag_core::time::Timestamp;

use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::shards::with_lock;
use crate::sqlite::{LINKS, open_writer};

/// A used link is remembered for so long after its end: a clock that goes back must not bring it to life.
const KEPT_AFTER_MS: i64 = 7 * 24 * 3_600_000;

/// The used links of one data directory.
pub struct UsedLinks {
    connection: Mutex<Connection>,
    most: u32,
    /// Keeps other processes out for as long as the file is in use.
    _dir: Arc<DataDir>,
}

impl UsedLinks {
    /// Opens the file, and makes it where it is missing.
    ///
    /// # Errors
    /// When it cannot be read and written.
    pub fn open(dir: Arc<DataDir>) -> Result<UsedLinks, StoreError> {
        UsedLinks::bounded(dir, USED_LINKS)
    }

    /// The same with room for so many.
    ///
    /// # Errors
    /// As [`UsedLinks::open`].
    pub fn bounded(dir: Arc<DataDir>, most: u32) -> Result<UsedLinks, StoreError> {
        let connection = open_writer(&dir.path().join("links.db"), LINKS)?;
        // What was done once must not be done again, also when the power fails.
        connection.pragma_update(None, "synchronous", "FULL").map_err(StoreError::database("be prepared"))?;
        Ok(UsedLinks { connection: Mutex::new(connection), most, _dir: dir })
    }

    /// Takes a link: from now on it is used. Gives when that was, where somebody was earlier.
    ///
    /// # Errors
    /// When it cannot be written, or too many are remembered; then it is not taken.
    pub fn take(&self, id: &str, now: Timestamp, expires_at: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        with_lock(&self.connection, |connection| {
            let taken = (|| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                transaction.execute("DELETE FROM used WHERE expires_at < ?1", [now.0.saturating_sub(KEPT_AFTER_MS)])?;
                let earlier = used_at(&transaction, id)?;
                let kept: u32 = transaction.query_row("SELECT count(*) FROM used", [], |row| row.get(0))?;
                if earlier.is_some() || kept >= self.most {
                    return Ok((earlier, kept));
                }
                transaction.execute(
                    "INSERT INTO used (id, at, expires_at) VALUES (?1, ?2, ?3)",
                    params![id, now.0, expires_at.0],
                )?;
                transaction.commit()?;
                Ok((None, 0))
            })();
            match taken.map_err(StoreError::database("be written"))? {
                (None, kept) if kept >= self.most => {
                    Err(StoreError::Full { what: "used links of alerts", most: self.most as usize })
                }
                (earlier, _) => Ok(earlier),
            }
        })
    }

    /// When a link was used.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn used_at(&self, id: &str) -> Result<Option<Timestamp>, StoreError> {
        with_lock(&self.connection, |connection| used_at(connection, id)).map_err(StoreError::database("be read"))
    }

    /// Gives a link back that was taken and then did nothing.
    ///
    /// # Errors
    /// When it cannot be written; then it stays used.
    pub fn give_back(&self, id: &str) -> Result<(), StoreError> {
        let given =
            with_lock(&self.connection, |connection| connection.execute("DELETE FROM used WHERE id = ?1", [id]));
        given.map(drop).map_err(StoreError::database("be written"))
    }
}

fn used_at(connection: &Connection, id: &str) -> rusqlite::Result<Option<Timestamp>> {
    connection.query_row("SELECT at FROM used WHERE id = ?1", [id], |row| row.get(0).map(Timestamp)).optional()
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Timestamp = Timestamp(1000);

    fn open(folder: &std::path::Path, most: u32) -> UsedLinks {
        UsedLinks::bounded(Arc::new(DataDir::open(folder).unwrap()), most).unwrap()
    }

    #[test]
    fn a_link_is_taken_once_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let links = open(folder.path(), 10);
        assert_eq!(links.used_at("a").unwrap(), None);
        assert_eq!(links.take("a", Timestamp(5), END).unwrap(), None);
        assert_eq!(links.take("a", Timestamp(6), END).unwrap(), Some(Timestamp(5)));
        assert_eq!(links.take("b", Timestamp(6), END).unwrap(), None);
        links.give_back("b").unwrap();
        drop(links);
        let links = open(folder.path(), 10);
        assert_eq!(links.used_at("a").unwrap(), Some(Timestamp(5)));
        assert_eq!(links.used_at("b").unwrap(), None);
    }

    #[test]
    fn ended_links_make_room_and_others_never_do() {
        let folder = tempfile::tempdir().unwrap();
        let links = open(folder.path(), 2);
        assert_eq!(links.take("a", Timestamp(0), END).unwrap(), None);
        assert_eq!(links.take("b", Timestamp(0), END).unwrap(), None);
        assert!(matches!(links.take("c", Timestamp(0), END), Err(StoreError::Full { .. })));
        assert_eq!(links.take("a", Timestamp(1), END).unwrap(), Some(Timestamp(0)), "those in it are still known");
        let later = Timestamp(END.0 + KEPT_AFTER_MS);
        assert!(links.take("c", later, END).is_err(), "not yet");
        assert_eq!(links.take("c", Timestamp(later.0 + 1), Timestamp(later.0 + 9)).unwrap(), None);
    }
}
