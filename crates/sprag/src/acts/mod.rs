//! What is done about runs, agents, virtual keys, admin tokens and budgets: by a person through the admin side, or by Sprag after a judgement.
//!
//! Each act is durable before it returns, holds for every request from then on, and leaves an event. Calls under way
//! hear of it through [`App::changes`], other nodes through the catalog that they share. What others do comes in through
//! `foreign`.

mod agents;
mod alerts;
mod budgets;
mod foreign;
mod keys;
mod tokens;

use std::sync::Arc;

use serde_json::Value;
use sprag_core::event::{Act, ActKind, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::AgentName;
use sprag_core::limits::KILL_CLUES;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{
    ALWAYS, AccountId, Consequence, DeactivatedBy, KeptProof, Kill, KillKind, KillScope, bounded_reason,
};
use sprag_core::time::Timestamp;
use sprag_store::catalog::Mark;
use sprag_store::shared::Change;
use sprag_store::state::RunTotals;
use sprag_store::{RunKey, StoreError};

pub use self::agents::{Based, PolicyRefused};
pub(crate) use self::agents::{fingerprint, set_for, version_of};
pub use self::alerts::AlertsRefused;
pub use self::budgets::{AdjustRefused, Adjusted, Adjustment};
pub(crate) use self::keys::hash_of;
pub use self::keys::{IssuedKey, KeyOrder};
pub use self::tokens::{IssuedToken, TokenOrder};
use crate::app::App;

/// Who Sprag is when it acts by itself.
pub(crate) const SPRAG: &str = "sprag";

/// A kill that somebody asks for.
#[derive(Clone, Debug)]
pub struct KillOrder {
    /// What is stopped.
    pub scope: KillScope,
    /// For good, or until somebody approves.
    pub kind: KillKind,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub by: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// What it rests on.
    pub proof: Option<Value>,
}

impl App {
    /// Stops something, at once and until it is taken back. Gives the kill in force, which may be an earlier one.
    ///
    /// # Errors
    /// When there are too many kills, or when it cannot be written; then it holds until the process ends.
    pub async fn kill(self: &Arc<Self>, order: KillOrder) -> Result<Arc<Kill>, StoreError> {
        self.blocking(move |app| app.kill_now(order)).await
    }

    /// Lets a run go on; what it did so far is no longer held against it. Gives the kill that was taken back.
    ///
    /// # Errors
    /// When it cannot be written; then the run stays as it is.
    pub async fn resume(self: &Arc<Self>, run: RunKey, by: String) -> Result<Option<Arc<Kill>>, StoreError> {
        self.blocking(move |app| app.resume_now(&run, by)).await
    }

    /// Takes a kill back by its id; that of a run as [`App::resume`] does. Gives what was taken back.
    ///
    /// # Errors
    /// When it cannot be written; then the kill stays.
    pub async fn lift(self: &Arc<Self>, id: String, by: String) -> Result<Option<Arc<Kill>>, StoreError> {
        self.blocking(move |app| {
            let snapshot = app.catalog.snapshot();
            let Some(kill) = snapshot.kills.iter().find(|kill| kill.id == id) else { return Ok(None) };
            if let Some((agent, run)) = kill.run() {
                return app.resume_now(&RunKey { agent: agent.clone(), id: run.clone() }, by);
            }
            let lifted = app.catalog.lift(&id)?;
            if let Some(kill) = &lifted {
                app.record_act(EventKind::Admin, None, act_of(kill, ActKind::Lift, by), &kill.scope);
            }
            Ok(lifted)
        })
        .await
    }

    /// Does what follows from a stop. What the disk refuses holds in memory, so the caller need not know.
    pub(crate) async fn follow(self: &Arc<Self>, agent: AgentName, consequence: Consequence) {
        let kill = |kind, run, reason, proof| KillOrder {
            scope: KillScope::Run { agent: agent.clone(), run },
            kind,
            reason,
            by: SPRAG.to_owned(),
            expires_at: None,
            proof,
        };
        let done = match consequence {
            Consequence::KillRun { run, reason, proof } => {
                self.kill(kill(KillKind::Kill, run, reason, proof)).await.map(drop)
            }
            Consequence::PauseRun { run, reason, proof } => {
                self.kill(kill(KillKind::Pause, run, reason, proof)).await.map(drop)
            }
            Consequence::DeactivateAgent { reason, proof } => {
                let by = DeactivatedBy::KillSwitch;
                self.blocking(move |app| app.deactivate_now(&agent, by, SPRAG.to_owned(), &reason, proof))
                    .await
                    .map(drop)
            }
        };
        if let Err(error) = done {
            tracing::error!(%error, "a stop could not be put on record");
        }
    }

    /// Keeps what a call of a killed run left behind after its kill, so that the run is known again after a restart.
    pub(crate) fn keep_clues(self: &Arc<Self>, run: RunKey) {
        // Most calls are cut by a wider kill, and looking for clues costs a look at all of them.
        if self.catalog.snapshot().kills.of_run(&run.agent, &run.id).is_none() {
            return;
        }
        let app = self.clone();
        let keep = move || {
            if let Err(error) = app.catalog.add_clues(&run, &app.state.clues_of(&run, KILL_CLUES)) {
                tracing::error!(%error, run.id = %run.id, "evidence of a killed run could not be put on record");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(_) => drop(self.settling.spawn_blocking(keep)),
            Err(_) => keep(),
        }
    }

    async fn blocking<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&App) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let app = self.clone();
        // Tracked, so that the program does not end in the middle of it.
        self.settling.spawn_blocking(move || work(&app)).await.unwrap_or(Err(StoreError::WriterGone.into()))
    }

    fn kill_now(&self, order: KillOrder) -> Result<Arc<Kill>, StoreError> {
        let now = self.clock.now();
        let KillOrder { scope, kind, reason, by, expires_at, proof } = order;
        let (reason, id) = (bounded_reason(&reason), self.ids.kill(now));
        let kill = Kill {
            id: id.clone(),
            scope: scope.clone(),
            kind,
            reason,
            by,
            at: now,
            expires_at,
            proof: proof.map(Into::into),
        };
        let run = kill.run().map(|(agent, run)| RunKey { agent: agent.clone(), id: run.clone() });
        let clues = run.as_ref().map(|run| self.state.clues_of(run, KILL_CLUES)).unwrap_or_default();
        let killed = self.catalog.kill(kill, &clues);
        // What the disk refused holds too. One that was killed before is not killed again.
        let snapshot = self.catalog.snapshot();
        let in_force = killed.as_ref().ok().or_else(|| snapshot.kills.of_scope(&scope)).filter(|kill| kill.id == id);
        if let Some(kill) = in_force {
            let what = if kill.kind == KillKind::Pause { ActKind::Pause } else { ActKind::Kill };
            let event = if kill.by == SPRAG { EventKind::RunKilled } else { EventKind::Admin };
            self.record_act(event, run.as_ref(), act_of(kill, what, kill.by.clone()), &scope);
        }
        killed
    }

    fn resume_now(&self, run: &RunKey, by: String) -> Result<Option<Arc<Kill>>, StoreError> {
        // A mark takes evidence away, so only where it comes with a resume.
        if self.catalog.snapshot().kills.of_run(&run.agent, &run.id).is_none() {
            return Ok(None);
        }
        // Its account is not opened meanwhile, with what it spent before.
        let account = foreign::account_of_run(run);
        self.state.begin_change([&account].into_iter());
        let resumed = self.resume_account(run, &account);
        self.state.end_change([&account].into_iter());
        if let Ok(Some(kill)) = &resumed {
            let what = if kill.kind == KillKind::Pause { ActKind::Approve } else { ActKind::Resume };
            self.record_act(EventKind::Admin, Some(run), act_of(kill, what, by), &kill.scope);
        }
        resumed
    }

    fn resume_account(&self, run: &RunKey, account: &AccountId) -> Result<Option<Arc<Kill>>, StoreError> {
        let totals = self.totals_at_resume(run);
        let spent = self.spent_by_run(account, run, totals.tree_cost);
        let mark = Mark { steps: totals.counted_steps(), cost: totals.tree_cost, at: self.common_now() };
        let resumed = self.catalog.resume(run, mark)?;
        if resumed.is_some() {
            // What it spent before no longer counts against its budget.
            for is_shadow in [false, true] {
                let account = AccountId { is_shadow, ..account.clone() };
                let spent = self.state.account(&account).map_or(spent, |known| known.settled);
                self.state.reset_account(&account);
                self.share_correction(&account, ALWAYS, Change::Reset { spent });
            }
            self.share_forgotten(run);
            self.forget_adjustment(account);
        }
        Ok(resumed)
    }

    /// What a run did up to now, and what is no longer evidence against it.
    fn totals_at_resume(&self, run: &RunKey) -> RunTotals {
        let totals = match self.state.mark(run) {
            Some(totals) => Some(totals),
            None => self.history.run_totals(run).unwrap_or_default(),
        };
        totals.unwrap_or_default()
    }

    /// What was corrected by hand is a part of what a run spent before it was resumed.
    fn forget_adjustment(&self, run: &AccountId) {
        let adjusted = self.adjusted(run, ALWAYS);
        if adjusted == NanoUsd::ZERO {
            return;
        }
        if let Err(error) = self.catalog.adjust(run, Timestamp(0), NanoUsd::ZERO - adjusted) {
            tracing::error!(%error, account = %run, "a correction of what a run has spent still stands");
        }
    }

    fn record_act(&self, kind: EventKind, run: Option<&RunKey>, act: Act, scope: &KillScope) {
        let now = self.clock.now();
        let agent = scope.agent().cloned().unwrap_or_default();
        let record = run.map(|run| RunRecord {
            id: run.id.clone(),
            step: 0,
            parent: None,
            // For a run of which nothing is on record yet: only a name can be known ahead.
            origin: RunOrigin::Declared,
        });
        self.record(&Event::of_act(self.ids.request(now), now, kind, agent, record, act));
    }
}

fn act_of(kill: &Kill, what: ActKind, by: String) -> Act {
    Act {
        what,
        by,
        target: kill.scope.to_string(),
        reason: kill.reason.clone(),
        proof: kill.proof.as_ref().map(KeptProof::value),
        expires_at: kill.expires_at,
        detail: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use sprag_core::id::RunId;

    use super::*;
    use crate::clock::{Clock, Ids};
    use crate::config::{Flags, Sources, load};

    #[test]
    fn clues_are_looked_for_only_where_the_run_itself_was_killed() {
        let data = tempfile::tempdir().unwrap();
        let flags = Flags { data: Some(data.path().to_owned()), ..Flags::default() };
        let settings = load(&Sources { flags, ..Sources::default() }).unwrap().settings;
        let app = App::new(settings, Clock::Real, Ids::Random).unwrap();
        let run = RunKey { agent: AgentName::default(), id: RunId::parse("task").unwrap() };
        let kill = |scope: &str| KillOrder {
            scope: scope.parse().unwrap(),
            kind: KillKind::Kill,
            reason: String::new(),
            by: "anna".to_owned(),
            expires_at: None,
            proof: None,
        };
        // The only thread for such work is taken, so that what was begun can be counted.
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let (release, wait) = mpsc::channel::<()>();
        runtime.spawn_blocking(move || wait.recv());
        let _entered = runtime.enter();
        app.kill_now(kill("all")).unwrap();
        app.keep_clues(run.clone());
        assert_eq!(app.settling.len(), 0);
        app.kill_now(kill("run:default/task")).unwrap();
        app.keep_clues(run);
        assert_eq!(app.settling.len(), 1);
        drop(release);
    }
}
