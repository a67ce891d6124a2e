//! What was done on another node, and holds here too. It goes in through the same doors as what is done here; but it is on record
//! where it was done, so it leaves no event here, and nobody else is told of it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use sprag_core::id::AgentName;
use sprag_core::policy::{ALWAYS, AccountId, Holder, Window};
use sprag_store::catalog::Applied;
use sprag_store::shared::Address;
use sprag_store::shared_catalog::{Content, Row, RowKind, SharedCatalog};
use sprag_store::{RunKey, StoreError};

use tokio::task::JoinHandle;

use crate::app::App;

/// How long a start waits for what other nodes have.
const FIRST_EXCHANGE: Duration = Duration::from_secs(2);

impl App {
    /// A link to the catalog of all nodes; it begins when it is run.
    #[must_use]
    pub fn share_catalog(self: &Arc<Self>, address: Address) -> Arc<SharedCatalog> {
        // The link must not keep the data directory from being let go.
        let app = Arc::downgrade(self);
        let take = move |rows| app.upgrade().map_or(Ok(()), |app| app.take_foreign(rows));
        SharedCatalog::new(address, self.catalog.clone(), self.alerts.outbox.clone(), take)
    }

    /// Shares the catalog from now on, where a Redis is configured, and waits a moment for what other nodes have.
    ///
    /// # Errors
    /// When the address of the Redis makes no sense.
    pub(crate) async fn join_nodes(self: &Arc<Self>) -> Result<Option<JoinHandle<()>>> {
        let Some(url) = self.settings.load().state.redis.clone() else { return Ok(None) };
        let address = Address::parse(url.reveal()).context("reading `state.redis`")?;
        let shared = self.shared_catalog.get_or_init(|| self.share_catalog(address)).clone();
        let running = tokio::spawn(shared.clone().run());
        // What is killed on other nodes shall be killed here from the first call on.
        if !shared.first_exchange(FIRST_EXCHANGE).await {
            tracing::warn!("what is killed on other nodes is not known yet; this one goes on by what it knows");
        }
        Ok(Some(running))
    }

    /// Gives other nodes what was changed last.
    pub(crate) async fn leave_nodes(&self, running: Option<JoinHandle<()>>) {
        let (Some(running), Some(shared)) = (running, self.shared_catalog.get()) else { return };
        running.abort();
        let _ = running.await;
        shared.give_last().await;
    }

    fn take_foreign(&self, rows: Vec<Row>) -> Result<(), StoreError> {
        let (of_alerts, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.name.kind.is_of_alerts());
        // The one does not wait for the other: their files are two.
        let taken = self.take_foreign_rows(&rows);
        taken.and(self.take_foreign_alerts(&of_alerts))
    }

    fn take_foreign_rows(&self, rows: &[Row]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.forget_activated(rows);
        let is_adjusted = rows.iter().any(|row| row.name.kind == RowKind::Adjustment);
        let _alone = is_adjusted.then(|| self.adjusting.lock().unwrap_or_else(PoisonError::into_inner));
        // Accounts are not opened meanwhile, with what they had spent before.
        let accounts: Vec<AccountId> = rows.iter().filter_map(account_of).collect();
        self.state.begin_change(accounts.iter());
        let so_far = |run: &RunKey| Some(self.totals_at_resume(run));
        let applied = self.change_policies(|| self.catalog.apply(rows, so_far), agents_of);
        for one in applied.iter().flatten() {
            self.follow_foreign(one);
        }
        self.state.end_change(accounts.iter());
        applied.map(drop)
    }

    /// Before anybody sees an agent active: its first call must not meet what it did before.
    fn forget_activated(&self, rows: &[Row]) {
        let snapshot = self.catalog.snapshot();
        for row in rows {
            let Some(Content::Standing(theirs)) = &row.content else { continue };
            let is_activated =
                |agent: &AgentName| theirs.active && snapshot.agent(agent).is_some_and(|standing| !standing.active);
            if let Some(agent) = row.name.agent().filter(is_activated) {
                self.state.forget_agent(&agent);
            }
        }
    }

    fn follow_foreign(&self, applied: &Applied) {
        match applied {
            Applied::Killed(kill, clues) => {
                if let Some((agent, run)) = kill.run() {
                    self.state.remember(clues, &RunKey { agent: agent.clone(), id: run.clone() });
                }
            }
            Applied::Marked(run) => {
                let account = account_of_run(run);
                self.state.reset_account(&account);
                self.state.reset_account(&AccountId { is_shadow: true, ..account });
            }
            Applied::Adjusted { account, at, amount } => {
                // One of a day that is over here.
                if !self.span_of(account.window).unwrap_or(ALWAYS).contains(*at) {
                    return;
                }
                // Whoever made it has corrected the account in Redis as well: the next call here follows that.
                for is_shadow in [false, true] {
                    self.state.adjust_account(&AccountId { is_shadow, ..account.clone() }, *amount);
                }
            }
            Applied::Lifted(_)
            | Applied::Standing(_)
            | Applied::Policy(_)
            | Applied::Key(_)
            | Applied::Token(_)
            | Applied::Forgotten => {}
        }
    }

    fn take_foreign_alerts(&self, rows: &[Row]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let configured = self.settings.load_full();
        let taken = self.alerts.take_foreign(rows, &configured.alerts);
        self.reconfigure_alerts();
        self.alerts.wake();
        taken
    }
}

/// The account that a row changes.
fn account_of(row: &Row) -> Option<AccountId> {
    match row.name.kind {
        RowKind::Mark => row.name.run().map(|run| account_of_run(&run)),
        RowKind::Adjustment => row.name.adjusted().map(|(_, _, account)| account),
        _ => None,
    }
}

pub(super) fn account_of_run(run: &RunKey) -> AccountId {
    let holder = Holder::Run(run.agent.clone(), run.id.clone());
    AccountId { holder, window: Window::Run, is_shadow: false }
}

fn agents_of(applied: &Result<Vec<Applied>, StoreError>) -> Vec<AgentName> {
    let agent = |one: &Applied| match one {
        Applied::Policy(agent) => Some(agent.clone()),
        _ => None,
    };
    applied.iter().flatten().filter_map(agent).collect()
}
