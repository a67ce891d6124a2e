//! How many of an agent's latest calls failed, in a sliding window of ten parts.

use super::rule::ErrorRate;
use crate::time::Timestamp;

const PARTS: u64 = 10;

/// Calls and failures of the latest parts of the window.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedCalls {
    /// Number of the part since the epoch, calls, failures.
    parts: [(u64, u32, u32); PARTS as usize],
}

impl FailedCalls {
    pub(super) fn note(&mut self, rate: &ErrorRate, now: Timestamp, is_failed: bool) {
        let number = part(rate, now);
        let slot = &mut self.parts[(number % PARTS) as usize];
        if slot.0 != number {
            *slot = (number, 0, 0);
        }
        slot.1 = slot.1.saturating_add(1);
        slot.2 = slot.2.saturating_add(u32::from(is_failed));
    }

    /// Calls and failures in the window.
    pub(super) fn counts(&self, rate: &ErrorRate, now: Timestamp) -> (u64, u64) {
        let newest = part(rate, now);
        let recent = self.parts.iter().filter(|(number, ..)| newest.saturating_sub(*number) < PARTS);
        recent.fold((0, 0), |(calls, failed), part| (calls + u64::from(part.1), failed + u64::from(part.2)))
    }
}

/// Whether so many failures are too many.
pub(super) fn is_too_high(rate: &ErrorRate, (calls, failed): (u64, u64)) -> bool {
    calls >= u64::from(rate.min_requests).max(1) && failed * 100 >= calls * u64::from(rate.percent)
}

/// Whether calls are known to be well again. No calls say nothing, and few do only once they were counted for a whole
/// window: after a restart the first one that succeeds is no proof.
pub(super) fn is_well(rate: &ErrorRate, (calls, failed): (u64, u64), is_whole: bool) -> bool {
    let is_enough = is_whole || calls >= u64::from(rate.min_requests).max(1);
    calls > 0 && is_enough && failed * 100 < calls * u64::from(rate.percent)
}

fn part(rate: &ErrorRate, now: Timestamp) -> u64 {
    u64::try_from(now.0).unwrap_or(0) / (rate.window_ms / PARTS).max(1)
}
