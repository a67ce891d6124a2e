//! A runtime of its own for the admin side: making a page takes milliseconds, and no call waits for that.
//!
//! Its threads have a lower priority. On a machine whose cores are all busy a call goes first, and a page takes what is
//! left.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Pages are few, and their work is mostly reading, which has threads of its own.
const THREADS: usize = 2;

/// How far threads stand back: enough that a thread that wakes up for a call takes the core from them.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Where the admin side is served. Dropped, it ends what is still under way there.
pub struct Aside {
    handle: Handle,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

impl Aside {
    /// Starts its threads.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn start() -> io::Result<Aside> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("sprag-admin")
            .on_thread_start(stand_back)
            .enable_all()
            .build()?;
        Ok(Aside { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Does something there.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(work)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // A runtime must not be waited for inside another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the thread. Elsewhere than on Linux that would be the whole process.
fn stand_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "pages have the same priority as calls");
    }
}
