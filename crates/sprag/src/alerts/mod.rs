//! Telling people: events come in on a bounded queue that never waits, rules decide, and what is to be told is on disk
//! before it is sent.
//!
//! - `queue`: from the path of requests; `watch`: from events to alerts
//! - `made`: channels and rules of the run time, over the configured ones
//! - `deliver`: from the outbox to the channels, again until they have it; `health`: how channels do
//! - `send`, `post`, `smtp`: one message; `address`, `connect`, `wire`: where it may go, and how many at once
//! - `links`: what messages let people do with one click
//!
//! No request ever waits for any of this.

mod address;
mod connect;
mod deliver;
mod health;
pub(crate) mod links;
mod made;
mod post;
mod queue;
mod rarely;
mod send;
mod smtp;
mod unnoted;
mod watch;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use serde_json::Value;
use sprag_core::alerts::{Alert, Observation};
use sprag_core::event::Event;
use sprag_core::limits::{ALERT_CHANNELS, ALERT_RULES};
use sprag_store::outbox::{Made, MadeKind};
use sprag_store::shared_catalog::{Content, Row};
use sprag_store::{Outbox, StoreError};
use tokio::sync::Notify;

use self::health::AllHealth;
pub use self::health::Health;
use self::made::MadeAlerts;
use self::queue::Queue;
use self::rarely::Rarely;
use self::unnoted::Unnoted;
use self::wire::Wire;
pub use self::wire::{Found, Setup};
use crate::app::App;
use crate::config;

/// A test is no message of the outbox.
const TEST: i64 = -1;

/// Alerts of a running Sprag.
pub struct Alerts {
    queue: Queue,
    /// What is configured, with what was made at run time.
    in_force: ArcSwap<config::Alerts>,
    made: Mutex<MadeAlerts>,
    /// What is on its way, and what was.
    pub outbox: Arc<Outbox>,
    wake: Notify,
    health: AllHealth,
    wire: Wire,
    unnoted: Unnoted,
    counts: Counts,
    complaints: Complaints,
}

/// What was not told as it should have been, since the start.
#[derive(Default)]
struct Counts {
    dropped: AtomicU64,
    untold: AtomicU64,
    delayed: AtomicU64,
    given_up: AtomicU64,
}

/// The same, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertCounts {
    /// Events that nobody looked at, because too many came at once.
    pub dropped: u64,
    /// Things that were not told, because there was no room to know about them.
    pub untold: u64,
    /// Alerts that came later, because their rule had told enough in that minute.
    pub delayed: u64,
    /// Messages that are no longer tried.
    pub given_up: u64,
}

/// What goes wrong often is said once a minute.
#[derive(Default)]
struct Complaints {
    dropped: Rarely,
    untold: Rarely,
    delayed: Rarely,
    given_up: Rarely,
    unwritten: Rarely,
    unnoted: Rarely,
    unread: Rarely,
}

/// A message that did not arrive.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// It is worth another try.
    MayPass(String),
    /// Some of those it is for have it, others are tried again: nothing is wrong with the channel.
    InPart(String),
    /// It is not.
    Final(String),
}

impl Alerts {
    /// Takes over what was on its way, and what was made at run time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(outbox: Outbox, configured: &config::Alerts) -> Result<Alerts, StoreError> {
        let made = MadeAlerts::new(outbox.made()?);
        let alerts = Alerts {
            queue: Queue::new(),
            in_force: ArcSwap::default(),
            made: Mutex::new(made),
            outbox: Arc::new(outbox),
            wake: Notify::new(),
            health: AllHealth::default(),
            wire: Wire::default(),
            unnoted: Unnoted::default(),
            counts: Counts::default(),
            complaints: Complaints::default(),
        };
        alerts.configure(configured);
        Ok(alerts)
    }

    /// Channels and rules that count now.
    #[must_use]
    pub fn in_force(&self) -> Arc<config::Alerts> {
        self.in_force.load_full()
    }

    /// Takes a new configuration.
    pub(crate) fn configure(&self, configured: &config::Alerts) {
        self.put_in_force(&self.made(), configured);
    }

    fn put_in_force(&self, made: &MadeAlerts, configured: &config::Alerts) {
        let (in_force, problems) = made.over(configured);
        for problem in problems {
            tracing::warn!("alerts made at run time: {problem}");
        }
        self.health.retain(|channel| in_force.channels.contains_key(channel));
        self.in_force.store(Arc::new(in_force));
    }

    fn made(&self) -> std::sync::MutexGuard<'_, MadeAlerts> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was made at run time, as it was written. A channel's has its secrets.
    pub(crate) fn written(&self, kind: MadeKind, name: &str) -> Option<Value> {
        self.made().get(kind, name).cloned()
    }

    /// Makes or changes a channel or a rule, or takes it away where `decide` gives nothing; from the next alert on. Nobody
    /// else changes any meanwhile.
    ///
    /// # Errors
    /// Those of `decide`, and when it cannot be written; then nothing changes.
    pub(crate) fn change<E: From<StoreError>>(
        &self,
        kind: MadeKind,
        name: &str,
        configured: &config::Alerts,
        decide: impl FnOnce(&MadeAlerts) -> Result<Option<Value>, E>,
    ) -> Result<(), E> {
        let mut made = self.made();
        match decide(&made)? {
            Some(written) => {
                self.outbox.make(&Made { kind, name: name.to_owned(), body: written.to_string() })?;
                made.of_kind(kind).insert(name.to_owned(), written);
            }
            None => {
                self.outbox.unmake(kind, name)?;
                made.of_kind(kind).remove(name);
            }
        }
        self.put_in_force(&made, configured);
        Ok(())
    }

    /// Takes channels and rules that were made, changed or taken away on other nodes, as far as they are later than those here.
    ///
    /// # Errors
    /// When they cannot be written; then those that are not stay as they are.
    pub(crate) fn take_foreign(&self, rows: &[Row], configured: &config::Alerts) -> Result<(), StoreError> {
        let mut made = self.made();
        let mut taken = Ok(());
        for row in rows {
            let Some(kind) = MadeKind::of(row.name.kind) else { continue };
            let of_kind = made.of_kind(kind);
            let most = if kind == MadeKind::Channel { ALERT_CHANNELS } else { ALERT_RULES };
            if row.content.is_some() && !of_kind.contains_key(&row.name.name) && of_kind.len() >= most {
                tracing::warn!(row = %row.name, most, "there are too many already; one of another node is left out");
                continue;
            }
            match (self.outbox.apply(row), &row.content) {
                (Ok(false), _) => {}
                (Ok(true), Some(Content::Made(written))) => {
                    of_kind.insert(row.name.name.clone(), written.clone());
                }
                (Ok(true), _) => {
                    of_kind.remove(&row.name.name);
                }
                (Err(error), _) => taken = Err(error),
            }
        }
        self.put_in_force(&made, configured);
        taken
    }

    /// Takes note of an event. Never waits: what finds no room is put together or counted.
    pub(crate) fn tell(&self, event: &Event) {
        if !self.in_force.load().rules.rules.is_empty() {
            self.queue.put(Observation::of(event));
        }
    }

    /// Lets deliveries look at the outbox.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Looks names up, and waits, in another way from now on.
    pub fn set_up(&self, setup: Setup) {
        self.wire.set_up(setup);
    }

    /// How a channel does.
    #[must_use]
    pub fn health(&self, channel: &str) -> Health {
        self.health.of(channel)
    }

    /// Events that wait to be looked at.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.waiting()
    }

    /// What was not told as it should have been.
    #[must_use]
    pub fn counts(&self) -> AlertCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AlertCounts {
            dropped: of(&self.counts.dropped),
            untold: of(&self.counts.untold),
            delayed: of(&self.counts.delayed),
            given_up: of(&self.counts.given_up),
        }
    }
}

impl App {
    /// Sends a message that only shows that a channel works, and waits for the result. Gives the alert and why it did
    /// not arrive; nothing where there is no such channel.
    ///
    /// # Errors
    /// When it cannot be put on record.
    pub async fn test_channel(
        self: &Arc<Self>,
        name: &str,
        by: &str,
    ) -> Result<Option<(Alert, Option<String>)>, StoreError> {
        let Some(channel) = self.alerts.in_force().channels.get(name).cloned() else { return Ok(None) };
        let now = self.clock.now();
        let mut alert = Alert::test(name, by, now);
        alert.link = Some(format!("{}/alerts", self.dashboard_url()));
        let error = match self.send_alert(&channel, &alert).await {
            Ok(()) => None,
            Err(Failure::MayPass(said) | Failure::InPart(said) | Failure::Final(said)) => Some(said),
        };
        if self.alerts.health.note(name, TEST, error.clone(), self.clock.now()) {
            self.hasten(name).await;
        }
        let (outbox, tried, failed) = (self.alerts.outbox.clone(), alert.clone(), error.clone());
        let (channel, done_at) = (name.to_owned(), self.clock.now());
        let noted = tokio::task::spawn_blocking(move || outbox.add_done(&tried, done_at, &channel, failed)).await;
        noted.unwrap_or(Err(StoreError::WriterGone))?;
        self.record_alert_test(name, by, error.as_deref());
        Ok(Some((alert, error)))
    }

    /// What links in alerts begin with.
    pub(crate) fn dashboard_url(&self) -> String {
        let settings = self.settings.load();
        settings.alerts.dashboard_url.clone().unwrap_or_else(|| format!("http://{}", settings.admin.listen))
    }
}
