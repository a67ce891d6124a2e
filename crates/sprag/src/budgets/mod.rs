//! Every limit on money that exists now, and where it stands.
//!
//! - `limits`: which limits there are, by configuration, catalog and the runs under way
//! - `standing`: what was spent and what is set aside under each
//!
//! For people and their programs: no request waits for this, and nothing here stops a call.

mod limits;
mod standing;

use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Holder, Level, Reserve, Span, Stage, Window};
use sprag_store::StoreError;

use self::limits::Limited;
use crate::app::App;

/// Which limits are wanted.
#[derive(Clone, Debug, Default)]
pub struct BudgetFilter {
    /// Those of this agent, of its keys and of its runs.
    pub agent: Option<AgentName>,
    /// Those of this key and of its runs.
    pub key: Option<String>,
    /// Those of runs too, which are many. With a filter they come anyway.
    pub runs: bool,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetLimit {
    /// The most that may be spent.
    pub amount: NanoUsd,
    /// Whether it is kept, or only watched.
    pub mode: Mode,
    /// Who set it.
    pub level: Level,
    /// How much is set aside for a call.
    pub reserve: Reserve,
    /// What happens before it.
    pub stages: Arc<[Stage]>,
}

/// An account, its limit, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetRow {
    /// Which account; the one in shadow where the limit is.
    pub id: AccountId,
    /// The time that it covers; none for a run.
    pub span: Option<Span>,
    /// None where nothing limits it.
    pub limit: Option<BudgetLimit>,
    /// What calls cost that are over, corrections included.
    pub settled: NanoUsd,
    /// What is set aside for calls under way.
    pub reserved: NanoUsd,
    /// What was added by hand to what was spent.
    pub adjusted: NanoUsd,
}

/// Some of the limits.
#[derive(Debug)]
pub struct BudgetPage {
    /// Everything first, then agents, keys and runs, by their names.
    pub rows: Vec<BudgetRow>,
    /// Where the next page begins.
    pub next: Option<String>,
}

impl App {
    /// Lists limits, a page of them. Reads what is recorded: not for the runtime's threads.
    ///
    /// # Errors
    /// When the cursor is none of this listing, or when what was spent cannot be read.
    pub fn budgets(&self, filter: &BudgetFilter, cursor: Option<&str>, most: usize) -> Result<BudgetPage, StoreError> {
        let after = match cursor {
            Some(text) => {
                let id: AccountId = text.parse().map_err(|_| StoreError::BadCursor(text.to_owned()))?;
                Some(place(&id))
            }
            None => None,
        };
        let mut limits = self.limits(filter)?;
        limits.retain(|Limited { id, .. }| after.as_ref().is_none_or(|after| place(id) > *after));
        limits.sort_by_cached_key(|limited| place(&limited.id));
        let has_more = limits.len() > most;
        limits.truncate(most);
        let next = limits.last().filter(|_| has_more).map(|last| last.id.to_string());
        Ok(BudgetPage { rows: self.stand(limits)?, next })
    }

    /// How many limits in force of days and months are used up.
    ///
    /// # Errors
    /// When what was spent cannot be read.
    pub fn budgets_used_up(&self) -> Result<u64, StoreError> {
        let mut limits = self.limits(&BudgetFilter::default())?;
        limits.retain(|limited| limited.limit.mode == Mode::Enforce);
        let rows = self.stand(limits)?;
        Ok(rows.iter().filter(|row| row.limit.as_ref().is_some_and(|limit| row.settled >= limit.amount)).count() as u64)
    }
}

impl BudgetRow {
    /// What may still be spent; never less than nothing.
    #[must_use]
    pub fn remaining(&self) -> Option<NanoUsd> {
        let limit = self.limit.as_ref()?.amount;
        Some((limit - self.settled - self.reserved).max(NanoUsd::ZERO))
    }

    /// How much of the limit an amount is, in thousandths; rounded down, so that all of it is all of it.
    #[must_use]
    pub fn thousandths(&self, amount: NanoUsd) -> Option<u64> {
        let limit = i128::from(self.limit.as_ref()?.amount.0).max(1);
        u64::try_from(i128::from(amount.0) * 1000 / limit).ok()
    }

    /// Who set the limit, or whose money it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match (&self.limit, &self.id.holder) {
            (Some(limit), _) => limit.level,
            (None, Holder::Everything) => Level::Everything,
            (None, Holder::Key(_)) => Level::Key,
            (None, Holder::Agent(_) | Holder::Run(..)) => Level::Agent,
        }
    }
}

/// Where a limit stands in the listing.
fn place(id: &AccountId) -> (u8, String, Window, bool) {
    let rank = match id.holder {
        Holder::Everything => 0,
        Holder::Agent(_) => 1,
        Holder::Key(_) => 2,
        Holder::Run(..) => 3,
    };
    (rank, id.holder.to_string(), id.window, id.is_shadow)
}

#[cfg(test)]
mod tests;
