//! From the path of requests to alerts: a bounded queue that never waits. When it is full, what people must hear of whatever
//! happens (kills, stopped runs, loops) is put together by agent and kind; the rest is dropped and counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sprag_core::alerts::{Observation, UrgentKey};
use sprag_core::limits::{ALERT_QUEUE, ALERT_URGENT};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// What events say, on its way to the rules.
pub(super) struct Queue {
    sender: Sender<Observation>,
    receiver: Mutex<Option<Receiver<Observation>>>,
    urgent: Mutex<Urgent>,
    dropped: AtomicU64,
}

/// In the order in which they came first.
#[derive(Default)]
struct Urgent {
    list: Vec<Observation>,
    places: HashMap<UrgentKey, usize>,
}

impl Queue {
    pub(super) fn new() -> Queue {
        let (sender, receiver) = mpsc::channel(ALERT_QUEUE);
        Queue { sender, receiver: Mutex::new(Some(receiver)), urgent: Mutex::default(), dropped: AtomicU64::new(0) }
    }

    /// Never waits.
    pub(super) fn put(&self, seen: Observation) {
        let Err(refused) = self.sender.try_send(seen) else { return };
        let (mpsc::error::TrySendError::Full(seen) | mpsc::error::TrySendError::Closed(seen)) = refused;
        if !seen.urgent_key().is_some_and(|key| self.put_together(key, seen)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    fn put_together(&self, key: UrgentKey, seen: Observation) -> bool {
        let mut urgent = self.urgent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = urgent.places.get(&key).copied().and_then(|place| urgent.list.get_mut(place)) {
            *known = Observation { again: known.again.saturating_add(1), ..seen };
            return true;
        }
        if urgent.list.len() >= ALERT_URGENT {
            return false;
        }
        let place = urgent.list.len();
        urgent.places.insert(key, place);
        urgent.list.push(seen);
        true
    }

    /// The end that events come out of; once.
    pub(super) fn receiver(&self) -> Option<Receiver<Observation>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was put together. It came after what is in the queue.
    pub(super) fn take_urgent(&self) -> Vec<Observation> {
        std::mem::take(&mut *self.urgent.lock().unwrap_or_else(PoisonError::into_inner)).list
    }

    /// How many were dropped since this was asked last.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::alerts::{AlertKind, Signal};
    use sprag_core::event::{Event, EventKind};
    use sprag_core::id::AgentName;
    use sprag_core::time::Timestamp;

    use super::*;

    fn seen(agent: &str, kind: Option<AlertKind>) -> Observation {
        let mut event = Event::new("req_1".to_owned(), Timestamp(1), EventKind::LlmCall);
        event.agent = AgentName::parse(agent).unwrap();
        let mut seen = Observation::of(&event);
        seen.signals.extend(kind.map(|kind| Signal {
            kind,
            subject: agent.to_owned(),
            reason: String::new(),
            score: None,
            threshold: None,
            window: None,
            proof: None,
            period: None,
        }));
        seen
    }

    #[test]
    fn a_full_queue_drops_calls_and_never_a_kill_or_a_loop() {
        let queue = Queue::new();
        for _ in 0..ALERT_QUEUE {
            queue.put(seen("bot", None));
        }
        assert_eq!(queue.take_dropped(), 0);
        queue.put(seen("bot", None));
        queue.put(seen("bot", Some(AlertKind::Dlp)));
        assert_eq!((queue.take_dropped(), queue.take_dropped()), (2, 0));
        let urgent = [AlertKind::KillSwitch, AlertKind::RunKilled, AlertKind::LoopDetected];
        for _ in 0..100_000 {
            urgent.iter().for_each(|kind| queue.put(seen("bot", Some(*kind))));
        }
        let mut activated = seen("bot", None);
        activated.is_activated = true;
        queue.put(activated);
        assert_eq!(queue.take_dropped(), 0);
        let taken = queue.take_urgent();
        assert_eq!(taken.iter().map(|one| one.again).collect::<Vec<_>>(), [99_999, 99_999, 99_999, 0]);
        assert_eq!(queue.take_urgent().len(), 0);
    }

    #[test]
    fn what_is_put_together_is_bounded() {
        let queue = Queue::new();
        for _ in 0..ALERT_QUEUE {
            queue.put(seen("bot", None));
        }
        for number in 0..=ALERT_URGENT {
            queue.put(seen(&format!("agent-{number}"), Some(AlertKind::LoopDetected)));
        }
        assert_eq!((queue.take_dropped(), queue.take_urgent().len()), (1, ALERT_URGENT));
    }
}
