//! From events to alerts on record.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sprag_core::alerts::{Alert, AlertRules, Engine, Observation};
use sprag_core::id::RunId;
use sprag_core::limits::ALERT_SUBJECTS;
use sprag_core::time::Timestamp;
use sprag_store::{RunKey, StoreError};
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Events looked at before what they gave is written.
const BATCH: usize = 1024;
/// Alerts older than this are not remembered after a restart: no cooldown is longer.
const REMEMBERED_MS: i64 = 8 * 24 * 3_600_000;

/// An alert that is not on disk yet, and who shall get it.
type Raised = (Alert, Timestamp, Vec<String>);

impl App {
    /// Looks at events until `shutdown`, then at those that are left.
    pub(crate) async fn raise_alerts(self: Arc<Self>, shutdown: CancellationToken) {
        let taken = self.alerts.to_watch.lock().ok().and_then(|mut queue| queue.take());
        let Some(mut queue) = taken else { return };
        let mut rules = self.settings.load().alerts.rules.clone();
        let mut engine = Engine::default();
        engine.set_rules(rules.clone());
        self.remember(&mut engine, &rules).await;
        let mut every = tokio::time::interval(Duration::from_secs(1));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut batch, mut raised): (Vec<Observation>, Vec<Raised>) = (Vec::new(), Vec::new());
        loop {
            // Once a second at most: that looks at all that is known.
            let (is_last, is_tick) = tokio::select! {
                biased;
                () = shutdown.cancelled() => (true, false),
                _ = every.tick() => (false, true),
                _ = queue.recv_many(&mut batch, BATCH) => (false, false),
            };
            if is_last {
                while let Ok(seen) = queue.try_recv() {
                    batch.push(seen);
                }
            }
            let in_force = self.settings.load().alerts.rules.clone();
            if !Arc::ptr_eq(&rules, &in_force) && rules != in_force {
                rules = in_force;
                engine.set_rules(rules.clone());
            }
            let now = self.clock.now();
            let mut alerts: Vec<Alert> =
                batch.drain(..).flat_map(|seen| engine.observe(&seen, now, self.run_cost(&seen))).collect();
            if is_tick {
                alerts.extend(engine.tick(now));
            }
            raised.extend(alerts.into_iter().map(|alert| self.addressed(alert, &rules, now)));
            // A disk that refuses for long must not fill the memory.
            raised.truncate(ALERT_SUBJECTS);
            self.write(&mut raised).await;
            let dropped = self.alerts.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(events = dropped, "too many events at once: alerts did not look at some");
            }
            if is_last {
                return;
            }
        }
    }

    async fn remember(&self, engine: &mut Engine, rules: &AlertRules) {
        let (outbox, since) = (self.alerts.outbox.clone(), Timestamp(self.clock.now().0 - REMEMBERED_MS));
        let read = tokio::task::spawn_blocking(move || outbox.latest(since)).await;
        match read.unwrap_or(Err(StoreError::WriterGone)) {
            Ok(latest) => latest
                .iter()
                .filter(|sent| rules.rules.iter().any(|rule| rule.name == sent.alert.rule))
                .for_each(|sent| engine.restore(&sent.alert, sent.at)),
            Err(error) => tracing::error!(%error, "what was told before is not known; it may be told again"),
        }
    }

    /// Only where something may be told of it.
    fn run_cost(&self, seen: &Observation) -> Option<sprag_core::money::NanoUsd> {
        let id: &RunId = seen.run.as_ref().filter(|_| !seen.signals.is_empty())?;
        let totals = self.state.totals(&RunKey { agent: seen.agent.clone(), id: id.clone() })?;
        Some(totals.tree_cost)
    }

    fn addressed(&self, mut alert: Alert, rules: &AlertRules, now: Timestamp) -> Raised {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (base, agent) = (self.dashboard_url(), encoded(&alert.occurrence.agent));
        alert.link = Some(match &alert.occurrence.run {
            Some(run) => format!("{base}/run?agent={agent}&id={}", encoded(run)),
            None => format!("{base}/runs?agent={agent}"),
        });
        let rule = rules.rules.iter().find(|rule| rule.name == alert.rule);
        let channels = rule.map(|rule| rule.channels.clone()).unwrap_or_default();
        (alert, now, channels)
    }

    async fn write(&self, raised: &mut Vec<Raised>) {
        if raised.is_empty() {
            return;
        }
        let (outbox, waiting) = (self.alerts.outbox.clone(), std::mem::take(raised));
        let write = move || {
            let mut refused = Vec::new();
            for (alert, at, channels) in waiting {
                if let Err(error) = outbox.add(&alert, at, &channels) {
                    tracing::error!(%error, alert = alert.id, "an alert could not be put on record; it is tried again");
                    refused.push((alert, at, channels));
                }
            }
            refused
        };
        *raised = tokio::task::spawn_blocking(write).await.unwrap_or_default();
        self.alerts.wake.notify_one();
    }
}
