//! What was spent under each limit, and what is set aside: by the open accounts, and by the record for the others.

use std::collections::HashMap;

use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, Account, AccountId, Holder, Span, Window};
use sprag_core::time::Timestamp;
use sprag_store::history::SpentByAll;
use sprag_store::{RunKey, StoreError};

use super::limits::Limited;
use super::{BudgetLimit, BudgetRow};
use crate::app::App;

/// Up to so many are asked for one by one; more are read all at once.
const FEW: usize = 8;

/// What everybody has spent, to be looked up by name.
struct Spent {
    agents: HashMap<AgentName, NanoUsd>,
    keys: HashMap<String, NanoUsd>,
    everything: NanoUsd,
    is_partial: bool,
}

type Open = HashMap<AccountId, Account>;

impl App {
    /// Where limits stand, in the order given.
    pub(super) fn stand(&self, limits: Vec<Limited>) -> Result<Vec<BudgetRow>, StoreError> {
        let open = self.open_accounts();
        let mut spent: HashMap<Window, Spent> = HashMap::new();
        for window in [Window::Day, Window::Month] {
            let Some(span) = self.span_of(window) else { continue };
            let of_window = limits.iter().filter(|limited| limited.id.window == window);
            if of_window.filter(|limited| find(&open, &limited.id, Some(span)).is_none()).nth(FEW).is_some() {
                spent.insert(window, Spent::new(self.history.spent_by_all(span.start)?));
            }
        }
        let row = |limited: Limited| {
            let all = spent.get(&limited.id.window);
            self.row(&open, limited.id, Some(limited.limit), all)
        };
        limits.into_iter().map(row).collect()
    }

    /// Where one account stands, whether anything limits it or not. What is in force goes before what is in shadow.
    pub(crate) fn budget_row(&self, id: &AccountId) -> Result<BudgetRow, StoreError> {
        let limited = self.limits_of(id).into_iter().next();
        let (id, limit) = match limited {
            Some(limited) => (limited.id, Some(limited.limit)),
            None => (AccountId { is_shadow: false, ..id.clone() }, None),
        };
        let open = self.state.account(&id).map(|account| (id.clone(), account)).into_iter().collect();
        self.row(&open, id, limit, None)
    }

    /// The time that an account of this window covers now; none for a run.
    pub(crate) fn span_of(&self, window: Window) -> Option<Span> {
        let (day, month) = self.windows.at(&self.settings.load().budget.zone, self.common_now());
        match window {
            Window::Run => None,
            Window::Day => Some(day),
            Window::Month => Some(month),
        }
    }

    fn row(
        &self,
        open: &Open,
        id: AccountId,
        limit: Option<BudgetLimit>,
        spent: Option<&Spent>,
    ) -> Result<BudgetRow, StoreError> {
        let span = self.span_of(id.window);
        let start = span.map_or(Timestamp(0), |span| span.start);
        let adjusted = self.adjusted(&id, span.unwrap_or(ALWAYS));
        let (settled, reserved) = match find(open, &id, span) {
            Some(account) => (account.settled, account.reserved),
            None => {
                let known = spent.and_then(|spent| spent.of(&id.holder));
                let recorded = match (known, &id.holder) {
                    (Some(known), _) => known,
                    (None, Holder::Run(agent, run)) => {
                        self.recorded_of_run(&RunKey { agent: agent.clone(), id: run.clone() })?
                    }
                    (None, _) => self.recorded(&id.holder, start)?,
                };
                ((recorded + adjusted).max(NanoUsd::ZERO), NanoUsd::ZERO)
            }
        };
        Ok(BudgetRow { id, span, limit, settled, reserved, adjusted })
    }

    /// What a run with all its parts has spent since it was last resumed.
    fn recorded_of_run(&self, run: &RunKey) -> Result<NanoUsd, StoreError> {
        let totals = match self.state.totals(run) {
            Some(totals) => Some(totals),
            None => self.history.run_totals(run)?,
        };
        let before = self.catalog.snapshot().mark(run).map_or(NanoUsd::ZERO, |mark| mark.cost);
        Ok(totals.map_or(NanoUsd::ZERO, |totals| totals.tree_cost - before))
    }

    fn open_accounts(&self) -> Open {
        self.state.accounts().into_iter().map(|state| (state.id, state.account)).collect()
    }
}

impl Spent {
    fn new(all: SpentByAll) -> Spent {
        Spent {
            agents: all.agents.into_iter().collect(),
            keys: all.keys.into_iter().collect(),
            everything: all.everything,
            is_partial: all.is_partial,
        }
    }

    /// None where it is not known.
    fn of(&self, holder: &Holder) -> Option<NanoUsd> {
        let listed = match holder {
            Holder::Everything => return Some(self.everything),
            Holder::Agent(agent) => self.agents.get(agent),
            Holder::Key(key) => self.keys.get(&**key),
            Holder::Run(..) => return None,
        };
        listed.copied().or((!self.is_partial).then_some(NanoUsd::ZERO))
    }
}

/// An open account, if it is of this time: one of yesterday says nothing about today.
fn find<'a>(open: &'a Open, id: &AccountId, span: Option<Span>) -> Option<&'a Account> {
    open.get(id).filter(|account| span.is_none_or(|span| span == account.span))
}
