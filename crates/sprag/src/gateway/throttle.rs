//! Requests that wait because they repeat themselves. Their number is bounded.

use std::time::Duration;

use sprag_core::limits::THROTTLED_REQUESTS;
use sprag_core::wire::{Reason, Refusal};
use tokio::sync::Semaphore;

/// The room in which throttled requests wait.
#[derive(Debug)]
pub struct Throttle {
    room: Semaphore,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { room: Semaphore::new(THROTTLED_REQUESTS) }
    }
}

impl Throttle {
    /// Waits. A client that leaves ends the wait.
    ///
    /// # Errors
    /// When too many wait already.
    pub(crate) async fn wait(&self, delay_ms: u64) -> Result<(), Refusal> {
        let Ok(_place) = self.room.try_acquire() else {
            let message = format!(
                "Loop detected, and {THROTTLED_REQUESTS} requests wait in the throttle already; try something else, or \
                 wait until they are through"
            );
            let mut refusal = Refusal::new(Reason::LoopDetected, message);
            refusal.retry_after_seconds = Some(u32::try_from(delay_ms.div_ceil(1000)).unwrap_or(u32::MAX));
            return Err(refusal);
        };
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let throttle = Arc::new(Throttle::default());
        let waiting: Vec<_> = (0..THROTTLED_REQUESTS)
            .map(|_| {
                let throttle = throttle.clone();
                tokio::spawn(async move { throttle.wait(3_600_000).await })
            })
            .collect();
        while throttle.room.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refusal = throttle.wait(1000).await.unwrap_err();
        assert_eq!((refusal.reason, refusal.retry_after_seconds), (Reason::LoopDetected, Some(1)));
        for wait in waiting {
            wait.abort();
            assert!(wait.await.unwrap_err().is_cancelled());
        }
        assert!(throttle.wait(1).await.is_ok(), "who leaves makes room");
    }
}
