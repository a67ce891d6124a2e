//! The scripted provider: a server on a port and a thread of its own, speaking every dialect.
//!
//! The thread has its own runtime, so dropping the provider ends and joins everything it started, whatever runtime the
//! test uses, and a test with a paused clock does not pause the provider.

mod anthropic;
mod api;
mod catalogue;
mod chat;
mod completions;
mod connection;
mod control;
mod error;
mod gemini;
mod handle;
mod memory;
mod responses;
mod turn;

use crate::fault::Gate;
use crate::log::{Log, LogView, Overdue, Recorded};
use crate::script::Script;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How long [`Provider::wait_for`] waits. A test that gets there has failed; it only must not hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running provider. Dropping it stops it and waits until it has stopped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    world: Arc<World>,
    stop: watch::Sender<bool>,
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct World {
    script: Script,
    log: Log,
    memory: memory::Memory,
}

impl Provider {
    /// Starts on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port, thread or runtime is to be had.
    pub fn start(script: Script) -> io::Result<Provider> {
        Provider::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
    }

    /// Starts on `address`.
    ///
    /// # Errors
    /// When the address is taken, or no thread or runtime is to be had.
    pub fn start_on(address: SocketAddr, script: Script) -> io::Result<Provider> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let world = Arc::new(World { script, log: Log::new(), memory: memory::Memory::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::clone(&world);
        let thread = std::thread::Builder::new().name("scripted-provider".into()).spawn(move || {
            runtime.block_on(connection::accept(listener, shared, stopped));
        })?;
        Ok(Provider { address, world, stop, runtime: handle, thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.log().view().requests.into()
    }

    /// The log as a whole; it outlives the provider.
    #[must_use]
    pub fn log(&self) -> Log {
        self.world.log.clone()
    }

    /// Connections that are open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.log().view().open_connections
    }

    /// Answers that have begun and not ended.
    #[must_use]
    pub fn open_responses(&self) -> usize {
        self.log().view().open_responses
    }

    /// Answers that clients walked away from.
    #[must_use]
    pub fn aborted(&self) -> usize {
        self.log().view().aborted
    }

    /// The gate behind `stall` and `hold` directives.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.world.script.gate.clone()
    }

    /// Forgets requests and ids, and starts the script again.
    pub fn reset(&self) {
        control::reset(&self.world);
    }

    /// Waits until `condition` holds.
    ///
    /// # Errors
    /// [`Overdue`], with the log as it was, after a time that no working test needs.
    pub async fn wait_for(&self, condition: impl Fn(&LogView) -> bool) -> Result<LogView, Overdue> {
        let log = self.log();
        // On the provider's own clock: the test's may be paused.
        let mut patience = self.runtime.spawn(tokio::time::sleep(PATIENCE));
        tokio::select! {
            view = log.wait_until(condition) => {
                patience.abort();
                Ok(view)
            }
            _ = &mut patience => Err(Overdue(log.view())),
        }
    }

    /// Stops, and waits until all connections are gone.
    pub async fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // The thread ends at once: nothing in it blocks.
            let _ = thread.join();
        }
    }
}
