//! What a call needs to know of a run that is not in memory: asked of the shared history, but not waited for.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::address::ClickHouseAddress;
use super::link::Link;
use super::query::Reader;
use crate::error::StoreError;
use crate::history::query::PastRun;
use crate::run_key::RunKey;
use crate::shards::with_lock;

/// How long a call waits for an answer, twice at most.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a server that gave none is left alone.
const PAUSE: Duration = Duration::from_secs(5);

/// The shared history as calls ask it.
pub(super) struct Recall {
    reader: Reader,
    /// Until then it is not asked.
    paused_until: Mutex<Option<Instant>>,
}

impl Recall {
    pub(super) fn new(address: ClickHouseAddress) -> Recall {
        let link = Arc::new(Link::with_patience(address, PATIENCE));
        Recall { reader: Reader::new(link), paused_until: Mutex::default() }
    }

    /// What all nodes have recorded of a run, or this one where it has recorded more or the others cannot be asked.
    pub(super) fn of(
        &self,
        key: &RunKey,
        own: impl FnOnce() -> Result<Option<PastRun>, StoreError>,
    ) -> Result<Option<PastRun>, StoreError> {
        let shared = if self.is_paused() { None } else { self.ask(key) };
        let own = own()?;
        let known = own.as_ref().map_or(0, |own| own.totals.steps);
        Ok(shared.filter(|shared| shared.totals.steps >= known).or(own))
    }

    fn ask(&self, key: &RunKey) -> Option<PastRun> {
        self.reader.recall(key).unwrap_or_else(|error| {
            tracing::warn!(%error, run.id = %key.id, "what other nodes know about a run cannot be read; this node's own record is used");
            with_lock(&self.paused_until, |until| *until = Some(Instant::now() + PAUSE));
            None
        })
    }

    fn is_paused(&self) -> bool {
        with_lock(&self.paused_until, |until| until.is_some_and(|until| Instant::now() < until))
    }
}
