//! Taking into the record what commands under `sprag run` have handed over.
//!
//! A command judges its calls itself and keeps no data directory. Whoever has the directory makes its events a part of the
//! record: they count in what agents have spent, pages show them, and an agent that a kill switch set inactive is inactive
//! here too. Alerts were the command's own business.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use sprag_core::event::{ActKind, Event, EventKind};
use sprag_core::id::RunId;
use sprag_store::StoreError;
use sprag_store::history::Recorded;

use crate::app::App;
use crate::gateway::Late;

/// How often the folder is looked into.
const EVERY: Duration = Duration::from_secs(1);

impl App {
    /// Takes what is handed over, as it comes.
    pub(crate) async fn adopt_forever(self: Arc<Self>) {
        let mut every = tokio::time::interval(EVERY);
        // Told once, not every second.
        let mut has_failed = false;
        loop {
            every.tick().await;
            let app = self.clone();
            let adopted = tokio::task::spawn_blocking(move || app.adopt_waiting()).await;
            let failed = adopted.ok().and_then(Result::err);
            if let Some(error) = failed.as_ref().filter(|_| !has_failed) {
                tracing::warn!(%error, "what a command did cannot be put on record; trying again");
            }
            has_failed = failed.is_some();
        }
    }

    /// Takes what waits now, and says how many events that were.
    ///
    /// # Errors
    /// When it cannot be read, or this process records nothing at the moment: then it is safer where it is.
    pub(crate) fn adopt_waiting(&self) -> Result<u64, StoreError> {
        if let Some(problem) = self.history.status().spool.problem {
            return Err(StoreError::NotRecording(problem));
        }
        let mut handed_over = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        handed_over.take(&self.data_dir(), |event| self.adopt(&event))
    }

    /// False when the event is not safe, and nothing was done about it.
    fn adopt(&self, event: &Event) -> bool {
        let runs: Vec<RunId> =
            event.run.iter().flat_map(|run| [Some(run.id.clone()), run.parent.clone()]).flatten().collect();
        let late = Late::begin(self, event, &runs, [&[], &[]]);
        if self.history.record(event) == Recorded::Lost {
            // It comes again, and is charged then.
            late.give_up(self);
            return false;
        }
        late.end(self, event, &runs, [&[], &[]]);
        self.live.tell(event);
        if let Some(act) = event.act.as_deref().filter(|act| act.what == ActKind::Deactivate)
            && event.kind == EventKind::KillSwitch
        {
            self.adopt_deactivation(&event.agent, act);
        }
        // Also of one that was dropped there is nothing more to take.
        true
    }
}
