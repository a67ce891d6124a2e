//! From the outbox to the channels: each by itself, in order, again until it has them.
//!
//! A channel that fails is left alone for longer each time, and with it all that waits for it. Whoever was cut off
//! between the answer and the note sends again, with the same id.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::outbox::{Delivery, DeliveryState};
use tokio::task::JoinSet;

use super::{Failure, Health, send};
use crate::app::App;
use crate::config::Channel;

const FIRST_WAIT_MS: u64 = 1000;
const LONGEST_WAIT_MS: u64 = 60_000;
/// What could not be delivered for so long is given up.
const GIVEN_UP_AFTER_MS: u64 = 24 * 3_600_000;
/// The clock that deliveries wait by is looked at so often.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// A new alert wakes who waits.
const NOTHING_WAITS: Duration = Duration::from_secs(3600);
const READ_AGAIN: Duration = Duration::from_secs(5);

impl App {
    /// Delivers what is in the outbox, for as long as the program runs.
    pub(crate) async fn deliver_alerts(self: Arc<Self>) {
        let mut under_way: JoinSet<String> = JoinSet::new();
        let mut busy: HashSet<String> = HashSet::new();
        loop {
            let (waiting, pause) = match self.waiting_alerts().await {
                Ok(waiting) => {
                    let pause = if waiting.is_empty() { NOTHING_WAITS } else { LOOK_AGAIN };
                    (waiting, pause)
                }
                Err(error) => {
                    tracing::error!(%error, "alerts on their way cannot be read; trying again");
                    (Vec::new(), READ_AGAIN)
                }
            };
            let mut by_channel: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
            waiting.into_iter().for_each(|one| by_channel.entry(one.channel.clone()).or_default().push(one));
            let now = self.clock.now();
            for (channel, deliveries) in by_channel {
                let is_due = self.alerts.health(&channel).closed_until <= now && deliveries[0].next_at <= now;
                if is_due && busy.insert(channel.clone()) {
                    under_way.spawn(self.clone().deliver_to(channel, deliveries));
                }
            }
            tokio::select! {
                () = self.alerts.wake.notified() => {}
                Some(done) = under_way.join_next() => match done {
                    Ok(channel) => drop(busy.remove(&channel)),
                    Err(_) => busy.clear(),
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn waiting_alerts(&self) -> Result<Vec<Delivery>, StoreError> {
        let outbox = self.alerts.outbox.clone();
        tokio::task::spawn_blocking(move || outbox.waiting()).await.unwrap_or(Err(StoreError::WriterGone))
    }

    async fn deliver_to(self: Arc<Self>, name: String, deliveries: Vec<Delivery>) -> String {
        let channel = self.settings.load().alerts.channels.get(&name).cloned();
        for delivery in deliveries {
            let is_cut_short = !self.deliver(channel.as_deref(), delivery).await;
            if is_cut_short {
                break;
            }
        }
        name
    }

    /// Tries one delivery; whether the next one is worth a try.
    async fn deliver(&self, channel: Option<&Channel>, mut delivery: Delivery) -> bool {
        let (outbox, seq) = (self.alerts.outbox.clone(), delivery.seq);
        let read = tokio::task::spawn_blocking(move || outbox.alert(seq)).await;
        let alert = read.unwrap_or(Err(StoreError::WriterGone));
        let sent = match (channel, &alert) {
            (_, Err(error)) => Err(Failure::MayPass(error.to_string())),
            (None, _) => Err(Failure::Final("the channel is no longer configured".to_owned())),
            (_, Ok(None)) => Err(Failure::Final("the alert is no longer on record".to_owned())),
            (Some(channel), Ok(Some(alert))) => send::send(channel, alert, self.clock.now()).await,
        };
        let now = self.clock.now();
        delivery.attempts += 1;
        let (state, error) = match sent {
            Ok(()) => (DeliveryState::Delivered, None),
            Err(Failure::Final(said)) => (DeliveryState::GivenUp, Some(said)),
            Err(Failure::MayPass(said)) => {
                let since = alert.ok().flatten().and_then(|alert| alert.at.parse::<jiff::Timestamp>().ok());
                let is_old = since.is_some_and(|at| now.since_ms(Timestamp(at.as_millisecond())) >= GIVEN_UP_AFTER_MS);
                (if is_old { DeliveryState::GivenUp } else { DeliveryState::Waiting }, Some(said))
            }
        };
        let closed_until = self.note_health(&delivery.channel, error.clone(), now);
        if state == DeliveryState::GivenUp {
            tracing::error!(channel = delivery.channel, error, "an alert was given up");
        }
        delivery.next_at = closed_until;
        delivery.done_at = (state != DeliveryState::Waiting).then_some(now);
        (delivery.state, delivery.error) = (state, error);
        let goes_on = delivery.error.is_none() || channel.is_none();
        let name = delivery.channel.clone();
        let (outbox, noted) = (self.alerts.outbox.clone(), delivery);
        let written = tokio::task::spawn_blocking(move || outbox.note(&noted)).await;
        if let Err(error) = written.unwrap_or(Err(StoreError::WriterGone)) {
            tracing::error!(%error, "what became of an alert could not be put on record; it may be sent again");
            // Not at once: a full disk would make a flood of it.
            self.note_health(&name, Some("what became of it could not be put on record".to_owned()), now);
            return false;
        }
        // After a failure the channel is left alone, whatever became of this one; without a channel nothing is sent.
        goes_on
    }

    /// Gives until when the channel is left alone.
    pub(super) fn note_health(&self, channel: &str, error: Option<String>, now: Timestamp) -> Timestamp {
        let mut all = self.alerts.all_health();
        let failures = match &error {
            Some(_) => all.get(channel).map_or(0, |health| health.failures).saturating_add(1),
            None => 0,
        };
        if failures == 1 {
            tracing::warn!(channel, error, "an alert could not be delivered");
        }
        let wait = i64::try_from(wait_ms(failures, rand::random_range(0.75..1.25))).unwrap_or(i64::MAX);
        let closed_until = Timestamp(now.0.saturating_add(wait));
        all.insert(channel.to_owned(), Health { failures, closed_until, error });
        closed_until
    }
}

/// How long a channel is left alone after so many failures in a row. `jitter` keeps channels of several programs apart.
fn wait_ms(failures: u32, jitter: f64) -> u64 {
    if failures == 0 {
        return 0;
    }
    let doubled = FIRST_WAIT_MS.saturating_mul(1 << (failures - 1).min(16));
    (doubled.min(LONGEST_WAIT_MS) as f64 * jitter) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_channel_is_left_alone_for_longer_each_time() {
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 8, u32::MAX].map(|failures| wait_ms(failures, 1.0)),
            [0, 1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000]
        );
        assert_eq!((wait_ms(1, 0.75), wait_ms(1, 1.25)), (750, 1250));
    }
}
