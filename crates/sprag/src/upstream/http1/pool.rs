//! Connections that wait for the next request, the last one first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;

/// How often those are looked for that nobody needs any more.
const SWEEP: Duration = Duration::from_secs(5);

/// The idle connections of one provider.
pub(super) struct Pool {
    idle: Mutex<Idle>,
    /// The longest that one waits.
    longest: Duration,
    most: usize,
}

#[derive(Default)]
struct Idle {
    /// Since when they wait, the longest first.
    connections: VecDeque<(Instant, Connection)>,
    /// Somebody looks for those that nobody needs.
    is_swept: bool,
}

impl Pool {
    pub(super) fn new(longest: Duration, most: usize) -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::default(), longest, most })
    }

    /// One that can be used.
    pub(super) fn take(&self, cx: &mut Context<'_>, now: Instant) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.with(|idle| idle.connections.pop_back())?;
            if now.duration_since(since) < self.longest && connection.is_quiet(cx) {
                return Some(connection);
            }
        }
    }

    /// Keeps one for the next request.
    pub(super) fn put(self: &Arc<Pool>, connection: Connection) {
        // Outside of the runtime there is no next request.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let is_swept = self.with(|idle| {
            if idle.connections.len() >= self.most {
                idle.connections.pop_front();
            }
            idle.connections.push_back((Instant::now(), connection));
            std::mem::replace(&mut idle.is_swept, true)
        });
        if !is_swept {
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops those that waited too long or are over. False when none is left.
    fn sweep(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.with(|idle| {
            idle.connections
                .retain_mut(|(since, connection)| since.elapsed() < self.longest && connection.is_quiet(&mut cx));
            idle.is_swept = !idle.connections.is_empty();
            idle.is_swept
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Idle) -> T) -> T {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
            return;
        }
    }
}
