//! When an agent may call.
//!
//! Clock time in the zone counts: on a day with 23 or 25 hours a window is as long as the clocks say. A time that the
//! clocks skip opens where they go on, one that they show twice is allowed both times.

mod opening;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;

use serde_json::Value;

use super::calendar::Zone;
use crate::limits::HOURS_WINDOWS;
use crate::loops::Mode;
use crate::time::Timestamp;
use crate::wire::{Reason, Refusal};

pub use window::{BadHours, HoursWindow};

/// The hours of an agent. Without any it may always call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hours {
    /// Whether they are kept.
    pub mode: Mode,
    /// The windows, such as `mon-fri 09:00-18:00`, `22:00-06:00` or `sat`. Shared by all agents with the same ones.
    pub windows: Arc<[HoursWindow]>,
    /// Whose clocks count.
    pub zone: Zone,
}

impl Hours {
    /// Why the windows cannot be used together.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        (self.windows.len() > HOURS_WINDOWS).then(|| format!("more than {HOURS_WINDOWS} windows"))
    }

    /// Whether calls are allowed at a moment.
    #[must_use]
    pub fn allows(&self, now: Timestamp) -> bool {
        // A moment beyond the calendar is in nobody's hours.
        self.windows.is_empty() || self.zone.clocks(now).is_some_and(|clocks| self.covers(clocks))
    }

    /// Stops a call outside the hours; says when they begin again.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.allows(now) {
            return Ok(());
        }
        let windows: Vec<String> = self.windows.iter().map(ToString::to_string).collect();
        let opening = self.opening(now);
        let again = match &opening {
            Some(opening) => format!("they begin again on {}", opening.strftime("%A, %-d %B %Y at %H:%M")),
            None => "they do not begin again".to_owned(),
        };
        let message = format!(
            "this agent may call during its allowed hours only: {} ({}); {again}",
            windows.join(", "),
            self.zone
        );
        let mut refusal = Refusal::new(Reason::OutsideAllowedHours, message)
            .with("allowed_hours", windows)
            .with("time_zone", self.zone.to_string());
        if let Some(opening) = opening {
            let wait_ms = Timestamp(opening.timestamp().as_millisecond()).since_ms(now);
            refusal = refusal.with("opens_at", Value::from(opening.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()));
            refusal.retry_after_seconds = Some(u32::try_from(wait_ms.div_ceil(1000)).unwrap_or(u32::MAX).max(1));
        }
        Err(refusal)
    }
}
