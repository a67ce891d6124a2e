//! Who looks at what happens, as it happens. Nobody looking costs a request nothing but a load.

use std::sync::Arc;

use sprag_core::event::Event;
use sprag_core::limits::LIVE_EVENTS;
use tokio::sync::broadcast;

/// Events on their way to open pages.
pub struct Live {
    events: broadcast::Sender<Arc<Event>>,
}

impl Default for Live {
    fn default() -> Live {
        Live { events: broadcast::Sender::new(LIVE_EVENTS) }
    }
}

impl Live {
    /// Tells everybody who looks. Never waits: who is slow misses some, and learns how many.
    pub fn tell(&self, event: &Event) {
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(Arc::new(event.clone()));
        }
    }

    /// Events from now on.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }
}
