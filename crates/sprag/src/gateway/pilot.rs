//! The first call of its kind goes alone.
//!
//! What a call will cost is told by what calls like it have cost. Before there is one, many at once could overrun a
//! budget together, each on a guess. So under a budget the first call to a model that nobody has called yet goes ahead,
//! and those beside it wait until it is over, or for a while. One that fails teaches nothing, and holds nobody up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sprag_core::limits::PILOTS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a call waits for the first of its kind. A longer answer says too little about the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long nobody waits after a first call that failed: the next would most likely fail too, one after the other.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// The kinds of which the first call is under way.
#[derive(Debug)]
pub struct Pilots {
    kinds: Mutex<HashMap<u64, Arc<Turn>>>,
    patience_ms: AtomicU64,
}

/// Whose turn it is, of one kind.
#[derive(Debug)]
struct Turn {
    one: Arc<Semaphore>,
    failed_at: Mutex<Option<Instant>>,
}

/// Others of its kind wait while a call holds it.
#[derive(Debug)]
pub(crate) struct Pilot {
    turn: Arc<Turn>,
    _held: OwnedSemaphorePermit,
}

impl Default for Pilots {
    fn default() -> Pilots {
        let patience_ms = AtomicU64::new(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX));
        Pilots { kinds: Mutex::default(), patience_ms }
    }
}

impl Pilots {
    /// Another time that calls wait for the first of their kind.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits until no call of this kind is ahead. None where that takes too long, where one has just failed, or where
    /// too many kinds are waited for.
    pub(crate) async fn lead(&self, kind: u64) -> Option<Pilot> {
        let turn = self.turn(kind)?;
        if turn.has_failed() {
            return None;
        }
        let patience = Duration::from_millis(self.patience_ms.load(Ordering::Relaxed));
        let held = tokio::time::timeout(patience, turn.one.clone().acquire_owned()).await.ok()?.ok()?;
        // Those behind it are let go one by one, each by the one before.
        (!turn.has_failed()).then(|| Pilot { turn, _held: held })
    }

    fn turn(&self, kind: u64) -> Option<Arc<Turn>> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= PILOTS && !kinds.contains_key(&kind) {
            kinds.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        let has_room = kinds.len() < PILOTS || kinds.contains_key(&kind);
        let new = || Arc::new(Turn { one: Arc::new(Semaphore::new(1)), failed_at: Mutex::new(None) });
        has_room.then(|| kinds.entry(kind).or_insert_with(new).clone())
    }
}

impl Pilot {
    /// The call taught nothing: nobody waits for the next one.
    pub(crate) fn fail(self) {
        *self.turn.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Turn {
    fn has_failed(&self) -> bool {
        let failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.is_some_and(|at| at.elapsed() < AFTER_FAILURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_of_a_kind_waits_for_the_first_but_not_for_ever() {
        let pilots = Arc::new(Pilots::default());
        let first = pilots.lead(1).await.unwrap();
        assert!(pilots.lead(2).await.is_some(), "another kind");
        pilots.set_patience(Duration::from_millis(1));
        assert!(pilots.lead(1).await.is_none(), "too long");
        pilots.set_patience(PATIENCE);
        let waiting = tokio::spawn({
            let pilots = pilots.clone();
            async move { pilots.lead(1).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_after_one_that_failed() {
        let pilots = Arc::new(Pilots::default());
        let first = pilots.lead(1).await.unwrap();
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let pilots = pilots.clone();
                tokio::spawn(async move { pilots.lead(1).await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        first.fail();
        let failed = Instant::now();
        for one in waiting {
            assert!(!one.await.unwrap(), "it goes on its own guess");
        }
        assert!(pilots.lead(1).await.is_none() && pilots.lead(2).await.is_some());
        assert_eq!(failed.elapsed(), Duration::ZERO);
        tokio::time::advance(AFTER_FAILURE).await;
        assert!(pilots.lead(1).await.is_some(), "and after a while one leads again");
    }

    #[tokio::test]
    async fn kinds_are_bounded() {
        let pilots = Pilots::default();
        let mut held = Vec::new();
        for kind in 0..PILOTS as u64 {
            held.push(pilots.lead(kind).await.unwrap());
        }
        assert!(pilots.lead(PILOTS as u64).await.is_none());
        held.pop();
        assert!(pilots.lead(PILOTS as u64).await.is_some(), "one is over");
    }
}
