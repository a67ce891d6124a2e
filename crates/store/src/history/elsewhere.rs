//! The history of a data directory that another process may have: read, never written.

use std::path::Path;

use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::query::{Reader, Spender};
use crate::error::StoreError;

/// What another process has put on record, as far as it has reached the database.
pub struct HistoryElsewhere(Reader);

impl HistoryElsewhere {
    /// The history of a data directory; none where nothing is on record yet.
    ///
    /// # Errors
    /// When there is one that cannot be read, or that another version made.
    pub fn open(data_dir: &Path) -> Result<Option<HistoryElsewhere>, StoreError> {
        let file = data_dir.join("sprag.db");
        if !file.exists() {
            return Ok(None);
        }
        let history = HistoryElsewhere(Reader::new(&file));
        history.spent(Spender::Everything, Timestamp(i64::MAX))?;
        Ok(Some(history))
    }

    /// Money since the quarter of an hour in which `since` lies.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn spent(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        self.0.spent(of, since)
    }
}
