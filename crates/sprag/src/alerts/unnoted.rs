//! What became of messages while the disk took no note of it. They are not sent again because of that; while there are too
//! many of them, nothing is sent at all.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sprag_core::limits::ALERTS_UNNOTED;
use sprag_core::time::Timestamp;
use sprag_store::outbox::{Delivery, DeliveryState};

/// By channel and number.
#[derive(Default)]
pub(super) struct Unnoted(Mutex<BTreeMap<(String, i64), Delivery>>);

impl Unnoted {
    pub(super) fn keep(&self, delivery: Delivery) {
        self.all().insert((delivery.channel.clone(), delivery.seq), delivery);
    }

    pub(super) fn is_full(&self) -> bool {
        self.all().len() >= ALERTS_UNNOTED
    }

    /// How many there are of a channel.
    pub(super) fn count(&self, channel: &str) -> usize {
        self.all().keys().filter(|(of, _)| of == channel).count()
    }

    pub(super) fn list(&self) -> Vec<Delivery> {
        self.all().values().cloned().collect()
    }

    /// It is on disk now.
    pub(super) fn forget(&self, noted: &Delivery) {
        let mut all = self.all();
        let key = (noted.channel.clone(), noted.seq);
        // Another try may have been made meanwhile.
        if all.get(&key) == Some(noted) {
            all.remove(&key);
        }
    }

    /// What is to be tried of what the disk says to be due.
    pub(super) fn known(&self, due: Delivery, now: Timestamp) -> Option<Delivery> {
        match self.all().get(&(due.channel.clone(), due.seq)) {
            None => Some(due),
            Some(known) if known.state == DeliveryState::Waiting && known.next_at <= now => Some(known.clone()),
            Some(_) => None,
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, i64), Delivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(seq: i64, state: DeliveryState) -> Delivery {
        Delivery {
            seq,
            channel: "ops".to_owned(),
            state,
            attempts: 1,
            next_at: Timestamp(50),
            error: None,
            done_at: None,
            queued_at: Timestamp(0),
            about: 0,
        }
    }

    #[test]
    fn what_was_sent_is_not_sent_again_and_what_failed_waits_its_time() {
        let (unnoted, old) = (Unnoted::default(), delivery(1, DeliveryState::Waiting));
        assert_eq!(unnoted.known(old.clone(), Timestamp(60)), Some(old.clone()));
        unnoted.keep(delivery(1, DeliveryState::Delivered));
        assert_eq!(unnoted.known(old.clone(), Timestamp(60)), None);
        unnoted.keep(delivery(2, DeliveryState::Waiting));
        let due = Delivery { next_at: Timestamp(0), ..delivery(2, DeliveryState::Waiting) };
        assert_eq!(unnoted.known(due.clone(), Timestamp(49)), None);
        assert_eq!(unnoted.known(due, Timestamp(50)), Some(delivery(2, DeliveryState::Waiting)));
        assert_eq!((unnoted.count("ops"), unnoted.count("mail"), unnoted.list().len()), (2, 0, 2));
        unnoted.forget(&delivery(1, DeliveryState::Delivered));
        assert_eq!(unnoted.known(old.clone(), Timestamp(60)), Some(old));
    }

    #[test]
    fn they_are_bounded() {
        let unnoted = Unnoted::default();
        (1..ALERTS_UNNOTED as i64).for_each(|seq| unnoted.keep(delivery(seq, DeliveryState::Delivered)));
        assert!(!unnoted.is_full());
        unnoted.keep(delivery(0, DeliveryState::Delivered));
        assert!(unnoted.is_full());
    }
}
