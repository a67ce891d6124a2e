//! From the outbox to the channels: a few messages at a time for each, again until it has them.
//!
//! A message that fails waits by itself and holds up nobody but those about the same; a channel that is down is tried with
//! one message at a time. Whoever was cut off between the answer and the note sends again, with the same id; whom only the
//! disk refused does not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sprag_core::limits::ALERTS_AT_ONCE;
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::outbox::{Delivery, DeliveryState};
use tokio::task::{Id, JoinError, JoinSet};

use super::Failure;
use super::health::{self, LONGEST_WAIT_MS};
use crate::app::App;

/// What could not be delivered for so long is given up.
const GIVEN_UP_AFTER_MS: u64 = 24 * 3_600_000;
/// The clock that deliveries wait by is looked at so often.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// A new alert wakes who waits.
const NOTHING_WAITS: Duration = Duration::from_secs(3600);
const READ_AGAIN: Duration = Duration::from_secs(5);

/// The messages that are being sent.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<()>,
    /// By the task; of each the delivery as it was.
    messages: HashMap<Id, Delivery>,
}

impl UnderWay {
    /// A task is over. Gives its message back where it did not end well; the others go on.
    fn end(&mut self, done: Result<(Id, ()), JoinError>) -> Option<Delivery> {
        match done {
            Ok((id, ())) => {
                self.messages.remove(&id);
                None
            }
            Err(failed) => self.messages.remove(&failed.id()),
        }
    }
}

impl App {
    /// Delivers what is in the outbox, for as long as the program runs.
    pub(crate) async fn deliver_alerts(self: Arc<Self>) {
        let mut under_way = UnderWay::default();
        loop {
            let pause = match self.send_due(&mut under_way).await {
                Ok(true) => LOOK_AGAIN,
                Ok(false) => NOTHING_WAITS,
                Err(error) => {
                    if let Some(times) = self.alerts.complaints.unread.count(1) {
                        tracing::error!(%error, times, "alerts on their way cannot be read; trying again");
                    }
                    READ_AGAIN
                }
            };
            tokio::select! {
                () = self.alerts.wake.notified() => {}
                Some(done) = under_way.tasks.join_next_with_id() => {
                    if let Some(delivery) = under_way.end(done) {
                        self.finish(delivery, Err(Failure::MayPass("sending it failed within Sprag".to_owned()))).await;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Begins to send what is due and has room. Says whether anything waits.
    async fn send_due(self: &Arc<Self>, under_way: &mut UnderWay) -> Result<bool, StoreError> {
        self.note_again().await;
        let outbox = self.alerts.outbox.clone();
        let channels = blocking(move || outbox.waiting_channels()).await?;
        let has_any = !channels.is_empty();
        if self.alerts.unnoted.is_full() {
            return Ok(true);
        }
        let now = self.clock.now();
        let mut wanted = Vec::new();
        for channel in channels {
            let busy = under_way.messages.values().filter(|one| one.channel == channel).count();
            let health = self.alerts.health(&channel);
            // A clock that was set back must not keep it closed.
            let is_closed = health.closed_until > now && health.closed_until <= horizon(now);
            let room = match health.is_down() {
                true => usize::from(busy == 0 && !is_closed),
                false => ALERTS_AT_ONCE.saturating_sub(busy),
            };
            if room > 0 {
                let page = room + busy + self.alerts.unnoted.count(&channel);
                wanted.push((channel, health.failures > 0, room, page));
            }
        }
        let outbox = self.alerts.outbox.clone();
        let due = blocking(move || {
            let read = wanted.into_iter().map(|(channel, is_strict, room, page)| {
                Ok((room, outbox.due(&channel, now, horizon(now), is_strict, page)?))
            });
            read.collect::<Result<Vec<_>, StoreError>>()
        })
        .await?;
        for (room, page) in due {
            let mut begun = 0;
            for delivery in page.into_iter().filter_map(|one| self.alerts.unnoted.known(one, now)) {
                let is_in_line = under_way.messages.values().any(|one| {
                    one.channel == delivery.channel && (one.seq == delivery.seq || one.about == delivery.about)
                });
                if begun < room && !is_in_line {
                    let task = under_way.tasks.spawn(self.clone().deliver(delivery.clone()));
                    under_way.messages.insert(task.id(), delivery);
                    begun += 1;
                }
            }
        }
        Ok(has_any)
    }

    /// Tries one delivery, with the settings of this moment.
    async fn deliver(self: Arc<Self>, delivery: Delivery) {
        let (outbox, seq) = (self.alerts.outbox.clone(), delivery.seq);
        let alert = blocking(move || outbox.alert(seq)).await;
        let channel = self.alerts.in_force().channels.get(&delivery.channel).cloned();
        let sent = match (channel, &alert) {
            (_, Err(error)) => Err(Failure::MayPass(error.to_string())),
            (None, _) => Err(Failure::Final("the channel is no longer configured".to_owned())),
            (_, Ok(None)) => Err(Failure::Final("the alert is no longer on record".to_owned())),
            (Some(channel), Ok(Some(alert))) => self.send_alert(&channel, alert).await,
        };
        self.finish(delivery, sent).await;
    }

    /// Notes how a try went.
    async fn finish(&self, mut delivery: Delivery, sent: Result<(), Failure>) {
        let now = self.clock.now();
        delivery.attempts += 1;
        let is_old = now.since_ms(delivery.queued_at) >= GIVEN_UP_AFTER_MS;
        let works = matches!(sent, Ok(()) | Err(Failure::InPart(_)));
        let (state, error) = match sent {
            Ok(()) => (DeliveryState::Delivered, None),
            Err(Failure::Final(said)) => (DeliveryState::GivenUp, Some(said)),
            Err(Failure::MayPass(said) | Failure::InPart(said)) if is_old => {
                (DeliveryState::GivenUp, Some(format!("given up after 24 hours: {said}")))
            }
            Err(Failure::MayPass(said) | Failure::InPart(said)) => (DeliveryState::Waiting, Some(said)),
        };
        let fault = error.clone().filter(|_| !works);
        let is_back = self.alerts.health.note(&delivery.channel, delivery.seq, fault, now);
        if state == DeliveryState::GivenUp {
            self.count_given_up(1, error.as_deref().unwrap_or_default());
        }
        delivery.next_at = health::after(now, delivery.attempts);
        delivery.done_at = (state != DeliveryState::Waiting).then_some(now);
        (delivery.state, delivery.error) = (state, error);
        let (outbox, noted) = (self.alerts.outbox.clone(), delivery.clone());
        if let Err(error) = blocking(move || outbox.note(&noted)).await {
            if let Some(times) = self.alerts.complaints.unnoted.count(1) {
                tracing::error!(%error, times, "what became of an alert cannot be put on record; it is not sent again");
            }
            self.alerts.unnoted.keep(delivery);
            return;
        }
        self.alerts.unnoted.forget(&delivery);
        if is_back {
            self.hasten(&delivery.channel).await;
        }
    }

    /// A channel works again: what waits for it need wait no longer.
    pub(super) async fn hasten(&self, channel: &str) {
        let (outbox, name, now) = (self.alerts.outbox.clone(), channel.to_owned(), self.clock.now());
        if let Err(error) = blocking(move || outbox.hasten(&name, now)).await {
            tracing::warn!(%error, channel, "messages that wait for a channel which works again come later");
        }
        self.alerts.wake();
    }

    /// Notes what the disk refused before.
    async fn note_again(&self) {
        for delivery in self.alerts.unnoted.list() {
            let (outbox, noted) = (self.alerts.outbox.clone(), delivery.clone());
            if blocking(move || outbox.note(&noted)).await.is_err() {
                return;
            }
            self.alerts.unnoted.forget(&delivery);
        }
    }
}

/// No try is ever further away than this.
fn horizon(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_add(2 * LONGEST_WAIT_MS as i64))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::WriterGone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_takes_no_other_message_with_it() {
        let mut under_way = UnderWay::default();
        for seq in 0..3 {
            let task = under_way.tasks.spawn(async move {
                match seq {
                    0 => std::future::pending().await,
                    1 => {}
                    _ => panic!("of the test"),
                }
            });
            let delivery = Delivery {
                seq,
                channel: "ops".to_owned(),
                state: DeliveryState::Waiting,
                attempts: 0,
                next_at: Timestamp(0),
                error: None,
                done_at: None,
                queued_at: Timestamp(0),
                about: seq,
            };
            under_way.messages.insert(task.id(), delivery);
        }
        let mut failed = Vec::new();
        for _ in 0..2 {
            let done = under_way.tasks.join_next_with_id().await.unwrap();
            failed.extend(under_way.end(done).map(|delivery| delivery.seq));
        }
        assert_eq!(failed, [2], "it is tried again");
        assert_eq!(under_way.messages.values().map(|one| one.seq).collect::<Vec<_>>(), [0], "the other goes on");
    }
}
