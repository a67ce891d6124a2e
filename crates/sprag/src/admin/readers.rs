//! Threads that read for people: a bounded number, and less urgent than those that serve calls.
//!
//! A page may look at tens of thousands of rows. While it does, a call that comes in must not wait for its turn on the
//! processor: the system lets these threads run where nobody else wants to.

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, spawn_blocking};

/// How far behind others a reader stands: the system gives it about a tenth of what it gives a thread that serves calls.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// A pool of its own, because a thread that is less urgent cannot be made as urgent as the others again.
pub(super) struct Readers(Option<Runtime>);

impl Readers {
    /// At most so many at once. They are started when there is something to read, and end when there is nothing for a while.
    pub(super) fn new(most: usize) -> Readers {
        let pool = Builder::new_current_thread()
            .max_blocking_threads(most)
            .thread_name("admin-reader")
            .on_thread_start(stand_back)
            .build();
        if let Err(error) = &pool {
            tracing::warn!(%error, "no threads for reading alone; pages share those of calls");
        }
        Readers(pool.ok())
    }

    /// Does a reading on one of them.
    pub(super) fn run<T: Send + 'static>(&self, reading: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        match &self.0 {
            Some(pool) => pool.spawn_blocking(reading),
            None => spawn_blocking(reading),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // A runtime must not be waited for where tasks run.
        if let Some(pool) = self.0.take() {
            pool.shutdown_background();
        }
    }
}

/// Makes the calling thread less urgent. Elsewhere than on Linux that would be the whole process.
fn stand_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a reader is as urgent as other threads");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_stand_behind_others_and_nobody_else_does() {
        let urgency = || rustix::process::getpriority_process(None).unwrap();
        let before = urgency();
        let readers = Readers::new(1);
        assert_eq!(readers.run(urgency).await.unwrap(), NICENESS.max(before));
        assert_eq!(urgency(), before, "the thread that asks");
        assert_eq!(spawn_blocking(urgency).await.unwrap(), before, "those that do the work of calls");
    }
}
