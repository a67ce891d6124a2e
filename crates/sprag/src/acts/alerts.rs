//! Channels of alerts that somebody tries.

use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;

use crate::app::App;

impl App {
    /// Puts on record that a channel was tried, and how that went.
    pub(crate) fn record_alert_test(&self, channel: &str, by: &str, error: Option<&str>) {
        let now = self.clock.now();
        let act = Act {
            what: ActKind::TestAlert,
            by: by.to_owned(),
            target: format!("channel:{channel}"),
            reason: error.unwrap_or("delivered").to_owned(),
            proof: None,
            expires_at: None,
            detail: None,
        };
        let agent = AgentName::default();
        self.record(&Event::of_act(self.ids.request(now), now, EventKind::Admin, agent, None, act));
    }
}
