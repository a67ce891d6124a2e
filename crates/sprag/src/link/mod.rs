//! The way of this node to what several nodes share, and what it still has to tell there.
//!
//! While Redis is away the node goes on by what it knows. What it did meanwhile is summed up, and told when Redis is
//! back. Calls that had begun before end by themselves: the link of the store sees to that.

mod alone;
mod merges;
mod time;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Span};
use sprag_core::run::Clue;
use sprag_store::RunKey;
use sprag_store::shared::{
    Address, Away, Change, Clock as SharedClock, Correction, LinkStatus, Missed, NewWatch, Options, Phase, Shared,
};
use tokio::sync::Notify;

use self::alone::Alone;
pub(crate) use self::alone::DoneAlone;
use self::merges::Merges;
use self::time::CommonTime;
use crate::app::App;
use crate::clock::Clock;
use crate::config::State;

/// When something is told again that Redis did not take.
const AGAIN: Duration = Duration::from_secs(1);

/// What follows where Redis does not hear that the past of a run or an agent no longer counts.
const FORGOTTEN_HERE: &str = "that the past no longer counts did not reach redis; it holds on this node alone";

/// How long a start waits for Redis.
const FIRST_CONNECTION: Duration = Duration::from_secs(1);

/// The link of this node.
#[derive(Debug)]
pub struct Link {
    /// The store's end of it.
    pub(crate) shared: Shared,
    /// Who writes what was seen of agents.
    pub(crate) merges: Merges,
    alone: Mutex<Alone>,
    /// There is more to tell.
    has_more: Notify,
    /// Whose clock counts.
    time: CommonTime,
}

impl Link {
    /// Connects in the background, where a Redis is configured.
    ///
    /// # Errors
    /// When its address makes no sense.
    pub(crate) fn connect(settings: &State, clock: &Clock) -> Result<Option<Link>> {
        let Some(url) = &settings.redis else { return Ok(None) };
        let address = Address::parse(url.reveal()).context("reading `state.redis`")?;
        let clock = match clock {
            Clock::Real | Clock::Wrong { .. } => SharedClock::Redis,
            Clock::Scripted(ms) => SharedClock::Told(ms.clone()),
        };
        let timeout_ms = u64::try_from(settings.timeout.as_millis()).unwrap_or(u64::MAX);
        let shared = Shared::connect(&address, Options { timeout_ms, clock });
        let (merges, alone, has_more) = (Merges::default(), Mutex::default(), Notify::new());
        Ok(Some(Link { shared, merges, alone, has_more, time: CommonTime::default() }))
    }

    /// Whether Redis is there.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.is_connected()
    }

    /// How the link is.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        self.shared.status()
    }

    /// What this node did by itself and has not told yet: of how many runs, and how many did not fit.
    #[must_use]
    pub fn untold_runs(&self) -> (usize, u64) {
        let alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        alone.len()
    }

    /// The run that one of these clues leads to, left while Redis was away, and the clue.
    pub(crate) fn led_to<'c>(&self, clues: &'c [Clue]) -> Option<(RunKey, &'c Clue)> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner).led_to(clues)
    }

    /// Whether this node has seen of a run what others have not. The first who asks is told.
    pub(crate) fn take_ahead(&self, run: &RunKey) -> bool {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner).take_ahead(run)
    }

    /// What was spent on an account without Redis, and is not told yet.
    pub(crate) fn untold(&self, id: &AccountId, span: Span) -> NanoUsd {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner).untold(id, span)
    }

    /// A call was made, or refused, without Redis. It may be there by now, or be away for this call alone.
    pub(crate) fn note_alone(&self, done: DoneAlone<'_>) {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner).add(done);
        self.has_more.notify_one();
    }

    /// Tells all that was done alone.
    async fn reconcile(&self, app: &App) -> Result<(), Away> {
        while let Some(missed) = self.next_to_tell(app) {
            self.shared.reconcile(&missed).await?;
            let (runs, accounts) = (missed.runs.len(), missed.accounts.len());
            tracing::info!(runs, accounts, "what was done without redis is told");
            self.alone.lock().unwrap_or_else(PoisonError::into_inner).told();
        }
        Ok(())
    }

    fn next_to_tell(&self, app: &App) -> Option<Missed> {
        let mut alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let in_all = |id: &AccountId, span| {
            app.state.account(id).filter(|account| account.span == span).map(|account| account.settled)
        };
        alone.next_to_tell(|| app.ids.request(app.clock.now()), |run| app.state.totals(run), in_all)
    }
}

impl App {
    /// Waits for the first connection, or for a while: calls that come right after the start should find it.
    pub(crate) async fn await_link(&self) {
        if let Some(link) = &self.link {
            let connected = link.shared.changed(Phase::Connecting);
            drop(tokio::time::timeout(FIRST_CONNECTION, connected).await);
            self.hear_time(link);
        }
    }

    /// Tells Redis, whenever it is back, what happened meanwhile; and at once what a call did without it that ends later.
    pub async fn follow_link(self: std::sync::Arc<Self>) {
        let Some(link) = &self.link else { return };
        let mut seen = Phase::Connecting;
        loop {
            tokio::select! {
                phase = link.shared.changed(seen) => {
                    seen = phase;
                    self.hear_time(link);
                }
                () = link.has_more.notified() => {}
            }
            while link.is_connected()
                && let Err(away) = link.reconcile(&self).await
            {
                tracing::debug!(%away, "what was done without redis cannot be told yet");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Tells other nodes that an account was corrected by hand: now, or when Redis is back.
    pub(crate) fn share_correction(&self, account: &AccountId, span: Span, change: Change) {
        let Some(link) = &self.link else { return };
        let name = self.ids.request(self.clock.now());
        link.shared.correct(Correction { name, account: account.clone(), span, change });
        self.tell("a correction of a budget is told when redis is back", |shared| async move {
            shared.tell_corrections().await
        });
    }

    /// Tells other nodes that what a run did so far is no longer evidence against it.
    pub fn share_forgotten(&self, run: &RunKey) {
        if self.link.is_none() {
            return;
        }
        let (run, version) = (run.clone(), new_version());
        let Some((bytes, _)) = self.state.hand_out_watch(&run, version) else { return };
        self.tell(FORGOTTEN_HERE, move |shared| async move {
            let watch = NewWatch { based_on: None, version, bytes: &bytes };
            shared.put_watch(&run.agent, Some(&run.id), &watch).await.map(drop)
        });
    }

    /// Tells other nodes that what an agent did so far is no longer evidence against it.
    pub fn share_forgotten_agent(&self, agent: &AgentName) {
        if self.link.is_none() {
            return;
        }
        let (agent, version) = (agent.clone(), new_version());
        let (bytes, _) = self.state.hand_out_agent_watch(&agent, self.clock.now(), version);
        self.tell(FORGOTTEN_HERE, move |shared| async move {
            let watch = NewWatch { based_on: None, version, bytes: &bytes };
            shared.put_watch(&agent, None, &watch).await.map(drop)
        });
    }

    /// Tells Redis something on the side; `otherwise` is what follows where it is away.
    fn tell<F, T>(&self, otherwise: &'static str, what: F)
    where
        F: FnOnce(Shared) -> T,
        T: Future<Output = Result<(), Away>> + Send + 'static,
    {
        let Some(link) = &self.link else { return };
        let telling = what(link.shared.clone());
        if tokio::runtime::Handle::try_current().is_ok() {
            self.settling.spawn(async move {
                if let Err(away) = telling.await {
                    tracing::warn!(%away, "{otherwise}");
                }
            });
        }
    }
}

/// A version of what detection keeps: told apart by being equal or not, never 0.
pub(crate) fn new_version() -> u64 {
    rand::random::<u64>().max(1)
}
