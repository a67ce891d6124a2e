//! What hyper waits for on one connection, with one timer of the runtime.
//!
//! The head of every request has its time, which begins and is taken back with each of them. For the runtime that is
//! work under a lock both times, and may wake a thread. Here the timer stays where it was set first: when it goes off
//! and was not meant to, it is moved.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type Alarm = Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>;

/// The timers of one connection, of which one is waited for at a time.
#[derive(Debug, Default)]
pub(super) struct OneTimer {
    alarm: Alarm,
}

#[derive(Debug)]
struct Until {
    alarm: Alarm,
    deadline: Instant,
}

impl Timer for OneTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Until { alarm: self.alarm.clone(), deadline })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for Until {}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = tokio::time::Instant::from(self.deadline);
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if deadline < alarm.deadline() {
            alarm.as_mut().reset(deadline);
        }
        loop {
            ready!(alarm.as_mut().poll(cx));
            if deadline <= alarm.deadline() {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_time_whatever_the_timer_was_set_to() {
        let (timer, begun) = (OneTimer::default(), tokio::time::Instant::now());
        let seconds = || begun.elapsed().as_secs();
        let wait = |seconds| timer.sleep(Duration::from_secs(seconds));
        // Taken back before its time, as is the rule.
        assert!(tokio::time::timeout(Duration::from_secs(9), wait(10)).await.is_err());
        wait(10).await;
        assert_eq!(seconds(), 19, "later than the timer was set to");
        assert!(tokio::time::timeout(Duration::from_secs(1), wait(60)).await.is_err());
        wait(5).await;
        assert_eq!(seconds(), 25, "earlier than that");
        tokio::time::sleep(Duration::from_secs(100)).await;
        wait(5).await;
        assert_eq!(seconds(), 130, "long after it went off");
    }
}
