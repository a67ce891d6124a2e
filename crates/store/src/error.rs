//! What can go wrong with what is on disk. Messages are for the person who runs the program.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// A failure of the data directory, the spool or the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be made or used.
    #[error("cannot use {path}; choose another data directory with --data DIR, or make this one writable")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the data directory.
    #[error(
        "the data directory {path} is in use by another sprag{holder}: stop that one, or give this one its own directory with --data DIR"
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// ` (process N)`, or empty when the holder did not say.
        holder: String,
    },
    /// The database was made by a newer version of the program.
    #[error(
        "the database {path} was made by a newer sprag (schema {found}, this one knows {known}): run that version, or use another data directory"
    )]
    TooNew {
        /// The database file.
        path: PathBuf,
        /// The schema in the file.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The database refused.
    #[error("the database cannot {action}: {message}")]
    Database {
        /// What was tried.
        action: &'static str,
        /// What the database said.
        message: String,
        /// It may work later without anybody's doing: no room, a lock, a failing disk.
        may_pass: bool,
    },
    /// Events cannot be written down.
    #[error("recording has stopped: {0}")]
    NotRecording(String),
    /// A cursor that no listing gave out.
    #[error("`{0}` is not a cursor of this listing")]
    BadCursor(String),
    /// There is a bound, and it is reached.
    #[error("there are {most} {what} already, and no room for another; take back what is no longer needed")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// Whoever is called so has a token already.
    #[error("`{0}` has a token already; choose another name, or revoke that token first")]
    NameTaken(String),
    /// The thread that writes the database has ended.
    #[error("the history's writer has stopped")]
    WriterGone,
}

impl StoreError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::File { path, source }
    }

    pub(crate) fn database(action: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
        move |error| StoreError::Database { action, message: error.to_string(), may_pass: may_pass(&error) }
    }
}

fn may_pass(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
        )
    )
}
