//! From events to alerts on record.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sprag_core::alerts::{Alert, AlertRules, Engine, Now, Observation, StandingChange};
use sprag_core::id::RunId;
use sprag_core::limits::ALERT_SUBJECTS;
use sprag_core::time::Timestamp;
use sprag_store::outbox::Raised;
use sprag_store::{RunKey, StoreError};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::clock::Clock;

/// Events looked at before what they gave is written.
const BATCH: usize = 1024;

/// What is not on disk yet.
#[derive(Default)]
struct Unwritten {
    raised: Vec<Raised>,
    standings: HashMap<(String, String), StandingChange>,
}

/// The moment by both clocks.
struct Clocks {
    wall: Clock,
    began: (Timestamp, Instant),
}

impl App {
    /// Looks at events until `shutdown`, then at those that are left.
    pub(crate) async fn raise_alerts(self: Arc<Self>, shutdown: CancellationToken) {
        let Some(mut queue) = self.alerts.queue.receiver() else { return };
        let clocks = Clocks::new(self.clock.clone());
        let mut rules = self.alerts.in_force().rules.clone();
        let mut engine = Engine::default();
        engine.set_rules(rules.clone());
        self.remember(&mut engine, clocks.now()).await;
        let mut every = tokio::time::interval(Duration::from_secs(1));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut batch, mut unwritten): (Vec<Observation>, Unwritten) = (Vec::new(), Unwritten::default());
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
            let in_force = self.alerts.in_force().rules.clone();
            if !Arc::ptr_eq(&rules, &in_force) && rules != in_force {
                rules = in_force;
                engine.set_rules(rules.clone());
            }
            batch.extend(self.alerts.queue.take_urgent());
            let now = clocks.now();
            let mut alerts: Vec<Alert> =
                batch.drain(..).flat_map(|seen| engine.observe(&seen, now, self.run_cost(&seen))).collect();
            if is_tick {
                alerts.extend(engine.tick(now));
            }
            let raised = alerts.into_iter().map(|alert| self.addressed(alert, &rules, now.wall));
            let lost = unwritten.add(raised, engine.take_changes());
            self.write(&mut unwritten).await;
            self.count(&mut engine, lost);
            if is_last {
                return;
            }
        }
    }

    /// Takes over what was known before the start: cooldowns go on, and what was held back is told when its time comes.
    async fn remember(&self, engine: &mut Engine, now: Now) {
        let outbox = self.alerts.outbox.clone();
        let read = tokio::task::spawn_blocking(move || outbox.standings()).await;
        match read.unwrap_or(Err(StoreError::WriterGone)) {
            Ok(kept) => kept.into_iter().for_each(|(rule, subject, standing)| {
                engine.restore(rule, subject, standing, now);
            }),
            Err(error) => tracing::error!(%error, "what was told before is not known; it may be told again"),
        }
    }

    /// Only where something may be told of it.
    fn run_cost(&self, seen: &Observation) -> Option<sprag_core::money::NanoUsd> {
        let id: &RunId = seen.run.as_ref().filter(|_| !seen.signals.is_empty())?;
        let totals = self.state.totals(&RunKey { agent: seen.agent.clone(), id: id.clone() })?;
        Some(totals.tree_cost)
    }

    fn addressed(&self, mut alert: Alert, rules: &AlertRules, at: Timestamp) -> Raised {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (base, agent) = (self.dashboard_url(), encoded(&alert.occurrence.agent));
        alert.link = Some(match &alert.occurrence.run {
            Some(run) => format!("{base}/run?agent={agent}&id={}", encoded(run)),
            None => format!("{base}/runs?agent={agent}"),
        });
        let rule = rules.rules.iter().find(|rule| rule.name == alert.rule);
        let channels = rule.map(|rule| rule.channels.clone()).unwrap_or_default();
        Raised { alert, at, channels }
    }

    /// All of it in one transaction. What the disk refuses is tried again with what comes next.
    async fn write(&self, unwritten: &mut Unwritten) {
        if unwritten.raised.is_empty() && unwritten.standings.is_empty() {
            return;
        }
        let (outbox, taken) = (self.alerts.outbox.clone(), std::mem::take(unwritten));
        let has_alerts = !taken.raised.is_empty();
        let write = move || {
            let standings: Vec<StandingChange> = taken.standings.values().cloned().collect();
            let written = outbox.write(&taken.raised, &standings);
            (written, taken)
        };
        let (written, taken) = match tokio::task::spawn_blocking(write).await {
            Ok((written, taken)) => (written, taken),
            Err(_) => (Err(StoreError::WriterGone), Unwritten::default()),
        };
        match written {
            Ok(given_up) => {
                self.count_given_up(given_up, "too many newer alerts came while they waited");
                if has_alerts {
                    self.alerts.wake();
                }
            }
            Err(error) => {
                let alerts = taken.raised.len();
                *unwritten = taken;
                if let Some(times) = self.alerts.complaints.unwritten.count(1) {
                    tracing::error!(%error, alerts, times, "alerts cannot be put on record; it is tried again");
                }
            }
        }
    }

    /// Counts what was not told as it should have been, and says so, once a minute at most.
    fn count(&self, engine: &mut Engine, lost: u64) {
        let (counts, complaints) = (&self.alerts.counts, &self.alerts.complaints);
        let (dropped, of_engine) = (self.alerts.queue.take_dropped(), engine.take_counts());
        counts.dropped.fetch_add(dropped, Ordering::Relaxed);
        counts.untold.fetch_add(of_engine.untold + lost, Ordering::Relaxed);
        counts.delayed.fetch_add(of_engine.delayed, Ordering::Relaxed);
        if let Some(events) = complaints.dropped.count(dropped) {
            tracing::warn!(
                events,
                "too many events at once: alerts did not look at some; kills and loops are not among them"
            );
        }
        if let Some(alerts) = complaints.untold.count(of_engine.untold + lost) {
            tracing::error!(alerts, "some alerts were not told: there is no room to remember more");
        }
        if let Some(alerts) = complaints.delayed.count(of_engine.delayed) {
            tracing::warn!(alerts, "a rule tells too much in a minute; the rest is told later");
        }
    }

    pub(super) fn count_given_up(&self, messages: u64, why: &str) {
        self.alerts.counts.given_up.fetch_add(messages, Ordering::Relaxed);
        if let Some(messages) = self.alerts.complaints.given_up.count(messages) {
            tracing::error!(messages, why, "alerts were given up");
        }
    }
}

impl Unwritten {
    /// Says how many alerts found no room: a disk that refuses for long must not fill the memory.
    fn add(&mut self, raised: impl Iterator<Item = Raised>, changes: Vec<StandingChange>) -> u64 {
        self.raised.extend(raised);
        let lost = self.raised.len().saturating_sub(ALERT_SUBJECTS);
        self.raised.truncate(ALERT_SUBJECTS);
        for change in changes {
            self.standings.insert((change.rule.clone(), change.subject.clone()), change);
        }
        // Those that are no longer known need not be taken away on a disk that refuses for ever.
        if self.standings.len() > 2 * ALERT_SUBJECTS {
            self.standings.retain(|_, change| change.standing.is_some());
        }
        lost as u64
    }
}

impl Clocks {
    fn new(wall: Clock) -> Clocks {
        let began = (wall.now(), Instant::now());
        Clocks { wall, began }
    }

    /// A clock of a test is steady by itself.
    fn now(&self) -> Now {
        let wall = self.wall.now();
        let since = i64::try_from(self.began.1.elapsed().as_millis()).unwrap_or(i64::MAX);
        let steady = match self.wall {
            Clock::Real | Clock::Wrong { .. } => Timestamp(self.began.0.0.saturating_add(since)),
            Clock::Scripted(_) => wall,
        };
        Now { wall, steady }
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::alerts::{AlertKind, AlertState, Occurrence};

    use super::*;

    #[test]
    fn a_disk_that_refuses_for_long_does_not_fill_the_memory() {
        let raised = |count: usize| {
            (0..count).map(|number| {
                let (of, subject) = (("loops", AlertKind::LoopDetected), number.to_string());
                let at = Timestamp(1);
                let alert = Alert::new(of, &subject, AlertState::Firing, at, 0, Occurrence::default());
                Raised { alert, at, channels: Vec::new() }
            })
        };
        let gone = |count: usize| -> Vec<StandingChange> {
            let change = |number: usize| StandingChange {
                rule: "loops".to_owned(),
                subject: number.to_string(),
                standing: None,
            };
            (0..count).map(change).collect()
        };
        let mut unwritten = Unwritten::default();
        assert_eq!(unwritten.add(raised(ALERT_SUBJECTS), gone(2 * ALERT_SUBJECTS)), 0);
        assert_eq!(unwritten.standings.len(), 2 * ALERT_SUBJECTS);
        assert_eq!(unwritten.add(raised(3), gone(2 * ALERT_SUBJECTS + 1)), 3, "and what is lost is counted");
        assert_eq!((unwritten.raised.len(), unwritten.standings.len()), (ALERT_SUBJECTS, 0));
    }
}
