//! What was spent since a moment, as budgets start from it: by all nodes, or by this one alone.

use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::{History, Spender};
use crate::error::StoreError;

impl History {
    /// Money since the quarter of an hour in which `since` lies, with everything that this node recorded so far. Waits for the
    /// database: not for the path of a request.
    ///
    /// # Errors
    /// When what was recorded cannot be put into the database now, or it cannot be read.
    pub fn spent(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        match self {
            History::Sqlite(history) => {
                history.flush()?;
                history.reader().spent(of, since)
            }
            History::ClickHouse(history) => history.spent(of, since),
        }
    }

    /// The same of this node alone: of a history that nodes share, what is known without it.
    ///
    /// # Errors
    /// Those of [`History::spent`].
    pub fn spent_here(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        match self {
            History::Sqlite(_) => self.spent(of, since),
            History::ClickHouse(history) => history.spent_here(of, since),
        }
    }
}
