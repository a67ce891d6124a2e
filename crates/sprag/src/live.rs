//! Who looks at what happens, as it happens. Nobody looking costs a request nothing but two counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sprag_core::event::Event;
use sprag_core::limits::LIVE_EVENTS;
use tokio::sync::broadcast;

/// Events on their way to open pages.
pub struct Live {
    events: broadcast::Sender<Arc<Event>>,
    /// How many there were.
    count: AtomicU64,
    listener: OnceLock<Listener>,
}

/// Hears every event, before whoever called goes on.
pub type Listener = Box<dyn Fn(&Event) + Send + Sync>;

impl Default for Live {
    fn default() -> Live {
        Live { events: broadcast::Sender::new(LIVE_EVENTS), count: AtomicU64::new(0), listener: OnceLock::new() }
    }
}

impl Live {
    /// Tells everybody who looks. Never waits: who is slow misses some, and learns how many.
    pub fn tell(&self, event: &Event) {
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(Arc::new(event.clone()));
        }
    }

    /// How many events there were so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Lets somebody hear every event, without missing one. It must be quick: calls wait for it. Only the first one asked
    /// for is heard.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Events from now on.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }
}
