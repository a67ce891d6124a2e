//! Corrections of what accounts have spent: for money that Sprag did not see, or that was given back.

use std::sync::{Arc, PoisonError};

use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, AccountId, Holder, Span, bounded_reason};
use sprag_core::time::Timestamp;
use sprag_store::shared::Change;
use sprag_store::{RunKey, StoreError};

use crate::app::App;
use crate::budgets::BudgetRow;

/// A quarter of an hour.
const QUARTER_MS: i64 = 15 * 60_000;

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
        let shadow = AccountId { is_shadow: true, ..id.clone() };
        // Neither is opened meanwhile, with what is on record before it or after it.
        self.state.begin_change([&id].into_iter());
        let written = self.catalog.adjust(&id, self.moment(row.span), applied);
        if written.is_ok() {
            let span = row.span.unwrap_or(ALWAYS);
            for account in [&id, &shadow] {
                self.state.adjust_account(account, applied);
                self.share_correction(account, span, Change::By(applied));
            }
        }
        self.state.end_change([&id].into_iter());
        written?;
        let row = self.budget_row(&id)?;
        self.record_adjusted(&id, order, (before, applied), &row);
        for crossed in self.crossed(&row.id, before, row.settled) {
            self.record_reached(&crossed, &self.agent_of(&id).unwrap_or_default());
        }
        Ok(Adjusted { row, before, applied })
    }

    /// When a correction of this time is made. It must lie in the day and month also if they are moved to another zone,
    /// whose hours begin at a quarter at most; more of them share a moment, for their number is bounded.
    fn moment(&self, span: Option<Span>) -> Timestamp {
        let Some(span) = span else { return Timestamp(0) };
        let now = self.clock.now().0;
        Timestamp(now - now.rem_euclid(QUARTER_MS)).max(span.start)
    }

    /// The agent that an account is of.
    fn agent_of(&self, id: &AccountId) -> Option<AgentName> {
        match &id.holder {
            Holder::Everything => None,
            Holder::Agent(agent) | Holder::Run(agent, _) => Some(agent.clone()),
            Holder::Key(key) => self.catalog.snapshot().key(key).map(|entry| entry.key.agent.clone()),
        }
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
        let key = match &id.holder {
            Holder::Everything | Holder::Agent(_) => None,
            Holder::Run(_, run) => run.key().map(str::to_owned),
            Holder::Key(key) => Some(key.to_string()),
        };
        let agent = self.agent_of(id).unwrap_or_default();
        // Not of the run: acts of a run change where it stands.
        let mut event = Event::of_act(self.ids.request(now), now, EventKind::Admin, agent, None, act);
        event.key = key;
        self.record(&event);
    }
}
