//! What accounts have spent, as it is on record, and what is said when a part of a budget is used up.

use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Crossed, Holder, Window};
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::history::Spender;

use crate::app::App;

impl App {
    /// What the holder of an account has spent since a moment, with what was adjusted by hand; nothing for runs. May
    /// take a while: what is recorded is read from disk. None when that fails.
    pub(crate) fn spent(&self, id: &AccountId, since: Timestamp) -> Option<NanoUsd> {
        if id.window == Window::Run {
            return None;
        }
        let recorded = self.recorded(&id.holder, since);
        let recorded =
            recorded.inspect_err(|error| tracing::error!(%error, account = %id, "what was spent is unknown"));
        let adjusted = self.catalog.snapshot().adjustment(&AccountId { is_shadow: false, ..id.clone() }, since);
        Some((recorded.ok()? + adjusted).max(NanoUsd::ZERO))
    }

    /// What a holder has spent since a moment, as it is on record; nothing for runs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn recorded(&self, holder: &Holder, since: Timestamp) -> Result<NanoUsd, StoreError> {
        match holder {
            Holder::Everything => self.history.spent(Spender::Everything, since),
            Holder::Agent(agent) => self.history.spent(Spender::Agent(agent), since),
            Holder::Key(key) => self.history.spent(Spender::Key(key), since),
            Holder::Run(..) => Ok(NanoUsd::ZERO),
        }
    }

    /// Puts on record that a part of a budget is used up.
    pub(crate) fn record_reached(&self, crossed: &Crossed, call: &Event) {
        let Crossed { draw, at, settled } = crossed;
        let now = self.clock.now();
        let act = Act {
            what: ActKind::BudgetReached,
            by: "sprag".to_owned(),
            target: draw.id.to_string(),
            reason: format!("{at} % of ${} used", draw.limit),
            proof: None,
            expires_at: None,
            detail: Some(json!({
                "percent": at,
                "settled_usd": settled.as_usd(),
                "limit_usd": draw.limit.as_usd(),
                "level": draw.level.as_str(),
                "window": draw.id.window.as_str(),
            })),
        };
        // Not of the run: acts of a run change where it stands.
        let event = Event::of_act(self.ids.request(now), now, EventKind::Budget, call.agent.clone(), None, act);
        self.record(&event);
    }
}
