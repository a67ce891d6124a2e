//! What a call needs to know of a run that is not in memory: asked of the shared history, but not waited for.

use std::sync::Arc;
use std::time::Duration;

use super::address::ClickHouseAddress;
use super::link::Link;
use super::pause::Pause;
use super::query::Reader;
use crate::error::StoreError;
use crate::history::query::PastRun;
use crate::run_key::RunKey;

/// How long a call waits for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a server that gave none is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// The shared history as calls ask it.
pub(super) struct Recall {
    reader: Reader,
    pause: Pause,
}

impl Recall {
    pub(super) fn new(address: ClickHouseAddress) -> Recall {
        let link = Arc::new(Link::with_patience(address, PATIENCE));
        Recall { reader: Reader::new(link), pause: Pause::of(LEFT_ALONE) }
    }

    /// What all nodes have recorded of a run, or this one where it has recorded more or the others cannot be asked.
    pub(super) fn of(
        &self,
        key: &RunKey,
        own: impl FnOnce() -> Result<Option<PastRun>, StoreError>,
    ) -> Result<Option<PastRun>, StoreError> {
        let shared = if self.pause.is_on() { None } else { self.ask(key) };
        let own = own()?;
        let known = own.as_ref().map_or(0, |own| own.totals.steps);
        Ok(shared.filter(|shared| shared.totals.steps >= known).or(own))
    }

    fn ask(&self, key: &RunKey) -> Option<PastRun> {
        self.pause.around(|| self.reader.recall(key)).unwrap_or_else(|error| {
            tracing::warn!(%error, run.id = %key.id, "what other nodes know about a run cannot be read; this node's own record is used");
            None
        })
    }
}
