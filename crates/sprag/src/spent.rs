//! What accounts have spent, as it is on record, and what is said when a part of a budget is used up.

use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, AccountId, Crossed, Holder, Span};
use sprag_core::time::Timestamp;
use sprag_store::history::Spender;
use sprag_store::{RunKey, StoreError};

use crate::app::App;

impl App {
    /// What the holder of an account has spent in a time that is not over, with what was adjusted by hand; nothing for
    /// runs. May take a while: what is recorded is read from disk.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn spent(&self, id: &AccountId, span: Span) -> Result<NanoUsd, StoreError> {
        let recorded = self.recorded(&id.holder, span.start)?;
        Ok((recorded + self.adjusted(id, span)).max(NanoUsd::ZERO))
    }

    /// The same as far as this Sprag has it on record itself. Others may have spent more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn spent_here(&self, id: &AccountId, span: Span) -> Result<NanoUsd, StoreError> {
        let here = |spender: Spender<'_>| self.history.spent_here(spender, span.start);
        let recorded = spender(&id.holder).map_or(Ok(NanoUsd::ZERO), here)?;
        Ok((recorded + self.adjusted(id, span)).max(NanoUsd::ZERO))
    }

    /// What a run with all its parts has spent since it was last resumed, with what was adjusted by hand; `tree_cost` is
    /// what it has cost in all.
    pub(crate) fn spent_by_run(&self, id: &AccountId, run: &RunKey, tree_cost: NanoUsd) -> NanoUsd {
        let before = self.catalog.snapshot().mark(run).map_or(NanoUsd::ZERO, |mark| mark.cost);
        (tree_cost - before + self.adjusted(id, ALWAYS)).max(NanoUsd::ZERO)
    }

    /// What was adjusted by hand. An account in shadow has the same as the one in force.
    pub(crate) fn adjusted(&self, id: &AccountId, span: Span) -> NanoUsd {
        self.catalog.snapshot().adjustment(&AccountId { is_shadow: false, ..id.clone() }, span)
    }

    /// What a holder has spent since a moment, as it is on record; nothing for runs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn recorded(&self, holder: &Holder, since: Timestamp) -> Result<NanoUsd, StoreError> {
        let Some(spender) = spender(holder) else { return Ok(NanoUsd::ZERO) };
        let here = self.history.spent(spender, since)?;
        Ok(here + self.elsewhere.get().map_or(Ok(NanoUsd::ZERO), |elsewhere| elsewhere(holder, since))?)
    }

    /// Puts on record that a part of a budget is used up.
    pub(crate) fn record_reached(&self, crossed: &Crossed, agent: &AgentName) {
        let Crossed { draw, at, settled } = crossed;
        let now = self.clock.now();
        let mut detail = json!({
            "percent": at,
            "settled_usd": settled.as_usd(),
            "limit_usd": draw.limit.as_usd(),
            "level": draw.level.as_str(),
            "window": draw.id.window.as_str(),
        });
        if draw.span != ALWAYS {
            detail["since"] = draw.span.start.to_rfc3339().into();
            detail["until"] = draw.span.end.to_rfc3339().into();
        }
        let act = Act {
            what: ActKind::BudgetReached,
            by: "sprag".to_owned(),
            target: draw.id.to_string(),
            reason: format!("{at} % of ${} used", draw.limit),
            proof: None,
            expires_at: None,
            detail: Some(detail),
        };
        // Not of the run: acts of a run change where it stands.
        let event = Event::of_act(self.ids.request(now), now, EventKind::Budget, agent.clone(), None, act);
        self.record(&event);
    }
}

/// A holder as the history knows it; runs know themselves what they have spent.
pub(crate) fn spender(holder: &Holder) -> Option<Spender<'_>> {
    match holder {
        Holder::Everything => Some(Spender::Everything),
        Holder::Agent(agent) => Some(Spender::Agent(agent)),
        Holder::Key(key) => Some(Spender::Key(key)),
        Holder::Run(..) => None,
    }
}
