//! What moves the bytes of a connection, and when that was done.
//!
//! Commands of all calls go through one channel to one task, which writes them. Whoever must know that a command is on its way, and need not
//! know what came of it, waits here for the next turn of that task.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The task of one connection. It ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Pump {
    turns: Arc<Turns>,
    _task: Arc<Ending>,
}

#[derive(Debug)]
struct Turns {
    /// The number of the latest turn that has begun.
    begun: AtomicU64,
    /// The number of the latest turn that is over.
    over: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ending(AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pump {
    /// Starts it. Must be called inside a runtime.
    pub(super) fn start(driver: impl Future<Output = ()> + Send + 'static) -> Pump {
        let turns = Arc::new(Turns { begun: AtomicU64::new(0), over: watch::Sender::new(0) });
        let counted = turns.clone();
        let task = tokio::spawn(async move {
            let mut driver = pin!(driver);
            std::future::poll_fn(|cx| {
                let turn = counted.begun.fetch_add(1, Ordering::SeqCst) + 1;
                let polled = driver.as_mut().poll(cx);
                counted.over.send_replace(turn);
                polled
            })
            .await;
        });
        Pump { turns, _task: Arc::new(Ending(task.abort_handle())) }
    }

    /// Waits until what has been handed over is written: a turn that begins from now on takes it along. Should the turn of this moment have
    /// taken it, the next one comes with its answer.
    pub(super) async fn written(&self) {
        let begun = self.turns.begun.load(Ordering::SeqCst);
        let _ = self.turns.over.subscribe().wait_for(|over| *over > begun).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_was_handed_over_is_written_after_the_next_turn() {
        let (hand_over, mut handed) = mpsc::unbounded_channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let paper = written.clone();
        let pump = Pump::start(async move {
            while let Some(word) = handed.recv().await {
                paper.lock().unwrap().push(word);
            }
        });
        for number in 0..3_usize {
            hand_over.send(number).unwrap();
            assert_eq!(written.lock().unwrap().len(), number, "not yet");
            pump.written().await;
            assert_eq!(written.lock().unwrap().len(), number + 1);
        }
    }

    #[tokio::test]
    async fn it_ends_with_the_connection() {
        let (hand_over, mut handed) = mpsc::unbounded_channel::<()>();
        let pump = Pump::start(async move { while handed.recv().await.is_some() {} });
        drop(pump.clone());
        assert!(!hand_over.is_closed());
        drop(pump);
        hand_over.closed().await;
    }
}
