//! Corrections of what accounts have spent: for money that Sprag did not see, or that was given back.

use std::sync::{Arc, PoisonError};

use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Holder, bounded_reason};
use sprag_core::time::Timestamp;
use sprag_store::{RunKey, StoreError};

use crate::app::App;
use crate::budgets::BudgetRow;

/// A correction that somebody asks for.
#[derive(Clone, Debug)]
pub struct Adjustment {
    /// Of which account. One in force and one in shadow are corrected together.
    pub account: AccountId,
    /// What is added to what it has spent; negative to take away.
    pub amount: NanoUsd,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub by: String,
}

/// A correction that was made.
#[derive(Clone, Debug)]
pub struct Adjusted {
    /// The account after it.
    pub row: BudgetRow,
    /// What it had spent before.
    pub before: NanoUsd,
    /// What was added. Not all that was asked for where that would have left less than nothing.
    pub applied: NanoUsd,
}

/// Why nothing was corrected.
#[derive(Debug, thiserror::Error)]
pub enum AdjustRefused {
    /// Nobody knows whose account it is.
    #[error("no {0} is known")]
    Unknown(&'static str),
    /// What was spent cannot be read, or the correction cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Corrects what an account has spent in its present time, for good. Holds for the next call.
    ///
    /// # Errors
    /// When nobody knows the holder, or when it cannot be put on record; then nothing changes.
    pub async fn adjust_budget(self: &Arc<Self>, order: Adjustment) -> Result<Adjusted, AdjustRefused> {
        self.blocking(move |app| app.adjust_now(&order)).await
    }

    fn adjust_now(&self, order: &Adjustment) -> Result<Adjusted, AdjustRefused> {
        let id = AccountId { is_shadow: false, ..order.account.clone() };
        self.check_holder(&id.holder)?;
        // One at a time: two of them must not take the same money away.
        let _alone = self.adjusting.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.budget_row(&id)?;
        let before = row.settled;
        let applied = order.amount.max(NanoUsd::ZERO - before);
        if applied == NanoUsd::ZERO {
            return Ok(Adjusted { row, before, applied });
        }
        // Only those that are open now: one that is opened from here on begins with what is on record.
        let is_open = |id: &AccountId| self.state.accounts().iter().any(|state| state.id == *id);
        let shadow = AccountId { is_shadow: true, ..id.clone() };
        let open: Vec<AccountId> = [id.clone(), shadow].into_iter().filter(is_open).collect();
        self.catalog.adjust(&id, row.span.map_or(Timestamp(0), |span| span.start), applied)?;
        for id in &open {
            self.state.adjust_account(id, applied);
        }
        let row = self.budget_row(&id)?;
        self.record_adjusted(&id, order, (before, applied), &row);
        Ok(Adjusted { row, before, applied })
    }

    /// A slip in a name must not correct an account that nobody ever draws on.
    fn check_holder(&self, holder: &Holder) -> Result<(), AdjustRefused> {
        let snapshot = self.catalog.snapshot();
        let (is_known, what) = match holder {
            Holder::Everything => return Ok(()),
            Holder::Agent(agent) => {
                let is_set_up =
                    snapshot.agent(agent).is_some() || self.settings.load().policies.agents.contains_key(agent);
                (is_set_up || self.is_on_record(|app| Ok(app.history.agent(agent)?.is_some()))?, "agent of this name")
            }
            Holder::Key(key) => (snapshot.key(key).is_some(), "virtual key of this id"),
            Holder::Run(agent, id) => {
                let key = RunKey { agent: agent.clone(), id: id.clone() };
                let is_live = self.state.totals(&key).is_some();
                (is_live || self.is_on_record(|app| Ok(app.history.run(&key)?.is_some()))?, "run of this agent and id")
            }
        };
        if is_known { Ok(()) } else { Err(AdjustRefused::Unknown(what)) }
    }

    fn is_on_record(&self, look: impl Fn(&App) -> Result<bool, StoreError>) -> Result<bool, StoreError> {
        if look(self)? {
            return Ok(true);
        }
        // What was recorded a moment ago may not be readable yet.
        self.history.flush()?;
        look(self)
    }

    fn record_adjusted(
        &self,
        id: &AccountId,
        order: &Adjustment,
        (before, applied): (NanoUsd, NanoUsd),
        row: &BudgetRow,
    ) {
        let now = self.clock.now();
        let act = Act {
            what: ActKind::AdjustBudget,
            by: order.by.clone(),
            target: id.to_string(),
            reason: bounded_reason(&order.reason),
            proof: None,
            expires_at: None,
            detail: Some(json!({
                "asked_usd": order.amount.as_usd(),
                "amount_usd": applied.as_usd(),
                "amount_nano_usd": applied,
                "before_usd": before.as_usd(),
                "after_usd": row.settled.as_usd(),
                "after_nano_usd": row.settled,
                "window": id.window.as_str(),
                "starts_at": row.span.map(|span| span.start.to_rfc3339()),
            })),
        };
        let snapshot = self.catalog.snapshot();
        let (agent, key) = match &id.holder {
            Holder::Everything => (AgentName::default(), None),
            Holder::Agent(agent) => (agent.clone(), None),
            Holder::Run(agent, run) => (agent.clone(), run.key().map(str::to_owned)),
            Holder::Key(key) => {
                let agent = snapshot.key(key).map(|entry| entry.key.agent.clone());
                (agent.unwrap_or_default(), Some(key.to_string()))
            }
        };
        // Not of the run: acts of a run change where it stands.
        let mut event = Event::of_act(self.ids.request(now), now, EventKind::Admin, agent, None, act);
        event.key = key;
        self.record(&event);
    }
}
