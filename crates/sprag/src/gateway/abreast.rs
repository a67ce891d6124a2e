//! Calls go through the line side by side.
//!
//! A call runs a lot of code, most of it once, and such code is slow: a core does not keep all of it at hand until the next call. So a call makes
//! room after a stage: others that are ready come as far, and find there what the first one has brought in. A call that is alone goes on at once:
//! making room takes a look at all sockets. [What that gains](../../../../docs/performance.md#a-call) is a third of a call's time where 64 are
//! under way.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The calls that are on their way through the line.
#[derive(Debug, Default)]
pub struct Line {
    calls: AtomicUsize,
}

/// The place of one call in the line. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Line);

impl Line {
    /// For a call that begins.
    pub(crate) fn join(&self) -> Place<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Place(self)
    }

    /// Lets other calls, where there are any, come as far as this one.
    pub(crate) async fn abreast(&self) {
        if self.calls.load(Ordering::Relaxed) > 1 {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn all_calls_end_a_stage_before_one_begins_the_next() {
        let (line, begun) = (Arc::new(Line::default()), Arc::new(Mutex::new(Vec::new())));
        let calls = (0..3).map(|_| {
            let (line, begun) = (line.clone(), begun.clone());
            tokio::spawn(async move {
                let _place = line.join();
                // So that all of them are there.
                tokio::task::yield_now().await;
                for stage in 0..4 {
                    begun.lock().unwrap().push(stage);
                    line.abreast().await;
                }
                // Whoever ends first must not leave the last one alone.
                tokio::task::yield_now().await;
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        assert_eq!(*begun.lock().unwrap(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn a_call_that_is_alone_goes_on_at_once() {
        let line = Line::default();
        let is_at_once = || pin!(line.abreast()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let first = line.join();
        assert!(is_at_once());
        let second = line.join();
        assert!(!is_at_once());
        drop(first);
        assert!(is_at_once());
        drop(second);
    }
}
