//! Requests that wait: because they repeat themselves, or because a budget is nearly used up. Their number is bounded.

use std::time::Duration;

use sprag_core::limits::THROTTLED_REQUESTS;
use sprag_core::policy::Delay;
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
    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        THROTTLED_REQUESTS.saturating_sub(self.room.available_permits())
    }

    /// Waits. A client that leaves ends the wait.
    ///
    /// # Errors
    /// When too many wait already.
    pub(crate) async fn wait(&self, delay: Delay) -> Result<(), Refusal> {
        let Ok(_place) = self.room.try_acquire() else {
            let (what, advice) = match delay.reason {
                Reason::BudgetExceeded => ("The budget is nearly used up", ""),
                Reason::RateLimited => ("The rate is nearly used up", ""),
                _ => ("Loop detected", "try something else, or "),
            };
            let message = format!(
                "{what}, and {THROTTLED_REQUESTS} requests wait in the throttle already; {advice}wait until they are \
                 through"
            );
            let mut refusal = Refusal::new(delay.reason, message);
            refusal.retry_after_seconds = Some(u32::try_from(delay.ms.div_ceil(1000)).unwrap_or(u32::MAX));
            return Err(refusal);
        };
        tokio::time::sleep(Duration::from_millis(delay.ms)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn of_loop(ms: u64) -> Delay {
        Delay { ms, reason: Reason::LoopDetected }
    }

    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let throttle = Arc::new(Throttle::default());
        let waiting: Vec<_> = (0..THROTTLED_REQUESTS)
            .map(|_| {
                let throttle = throttle.clone();
                tokio::spawn(async move { throttle.wait(of_loop(3_600_000)).await })
            })
            .collect();
        while throttle.room.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        for (reason, told) in [
            (Reason::LoopDetected, "Loop detected, and 1024 "),
            (Reason::BudgetExceeded, "The budget is nearly used up, and 1024 "),
            (Reason::RateLimited, "The rate is nearly used up, and 1024 "),
        ] {
            let refusal = throttle.wait(Delay { ms: 1000, reason }).await.unwrap_err();
            assert_eq!((refusal.reason, refusal.retry_after_seconds), (reason, Some(1)));
            assert!(refusal.message.starts_with(told), "{}", refusal.message);
        }
        for wait in waiting {
            wait.abort();
            assert!(wait.await.unwrap_err().is_cancelled());
        }
        assert!(throttle.wait(of_loop(1)).await.is_ok(), "who leaves makes room");
    }
}
