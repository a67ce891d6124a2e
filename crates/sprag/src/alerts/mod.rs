//! Telling people: events come in on a bounded queue that never waits, rules decide, and what is to be told is on disk
//! before it is sent.
//!
//! - `watch`: from events to alerts
//! - `deliver`: from the outbox to the channels, again until they have it
//! - `send`, `post`, `smtp`: one message; `address`, `connect`: where it may go
//!
//! No request ever waits for any of this.

mod address;
mod connect;
mod deliver;
mod post;
mod send;
mod smtp;
mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sprag_core::alerts::{Alert, Observation};
use sprag_core::event::Event;
use sprag_core::limits::ALERT_QUEUE;
use sprag_core::time::Timestamp;
use sprag_store::{Outbox, StoreError};
use tokio::sync::{Notify, mpsc};

use crate::app::App;
use crate::config;

/// Alerts of a running Sprag.
pub struct Alerts {
    seen: mpsc::Sender<Observation>,
    to_watch: Mutex<Option<mpsc::Receiver<Observation>>>,
    dropped: AtomicU64,
    /// What is on its way, and what was.
    pub outbox: Arc<Outbox>,
    wake: Notify,
    health: Mutex<BTreeMap<String, Health>>,
}

/// How a channel does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Tries in a row that failed.
    pub failures: u32,
    /// Nothing is tried before.
    pub closed_until: Timestamp,
    /// Why the last one failed.
    pub error: Option<String>,
}

/// A message that did not arrive.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// It is worth another try.
    MayPass(String),
    /// It is not.
    Final(String),
}

impl Alerts {
    /// Takes over what was on its way.
    #[must_use]
    pub fn new(outbox: Outbox) -> Alerts {
        let (seen, to_watch) = mpsc::channel(ALERT_QUEUE);
        Alerts {
            seen,
            to_watch: Mutex::new(Some(to_watch)),
            dropped: AtomicU64::new(0),
            outbox: Arc::new(outbox),
            wake: Notify::new(),
            health: Mutex::default(),
        }
    }

    /// Takes note of an event. Never waits: what finds no room is counted.
    pub(crate) fn tell(&self, settings: &config::Alerts, event: &Event) {
        if settings.rules.rules.is_empty() {
            return;
        }
        if self.seen.try_send(Observation::of(event)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How a channel does.
    #[must_use]
    pub fn health(&self, channel: &str) -> Health {
        self.all_health().get(channel).cloned().unwrap_or_default()
    }

    fn all_health(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Health>> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
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
        let Some(channel) = self.settings.load().alerts.channels.get(name).cloned() else { return Ok(None) };
        let now = self.clock.now();
        let mut alert = Alert::test(name, by, now);
        alert.link = Some(format!("{}/alerts", self.dashboard_url()));
        let error = match send::send(&channel, &alert, now).await {
            Ok(()) => None,
            Err(Failure::MayPass(said) | Failure::Final(said)) => Some(said),
        };
        self.note_health(name, error.clone(), self.clock.now());
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

#[cfg(test)]
mod tests {
    use sprag_core::event::EventKind;
    use sprag_store::DataDir;

    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts_and_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(Arc::new(DataDir::open(folder.path()).unwrap())).unwrap();
        let alerts = Alerts::new(outbox);
        let event = Event::new("req_1".to_owned(), Timestamp(1), EventKind::LlmCall);
        let silent = config::Alerts::default();
        alerts.tell(&silent, &event);
        assert_eq!(alerts.seen.capacity(), ALERT_QUEUE, "without rules nothing is kept");
        let mut settings = config::Alerts::default();
        Arc::make_mut(&mut settings.rules).rules.push(any_rule());
        for _ in 0..ALERT_QUEUE {
            alerts.tell(&settings, &event);
        }
        assert_eq!(alerts.dropped.load(Ordering::Relaxed), 0);
        alerts.tell(&settings, &event);
        assert_eq!(alerts.dropped.load(Ordering::Relaxed), 1);
    }

    fn any_rule() -> sprag_core::alerts::AlertRule {
        use sprag_core::alerts::{AlertKind, AlertRule, ErrorRate};
        AlertRule {
            name: "dlp".to_owned(),
            kind: AlertKind::Dlp,
            agents: vec!["*".to_owned()],
            channels: Vec::new(),
            cooldown_ms: 0,
            repeat_ms: None,
            tells_recovery: false,
            keeps_quiet: false,
            error_rate: ErrorRate { percent: 1, min_requests: 1, window_ms: 1 },
            silent_ms: 1,
        }
    }
}
