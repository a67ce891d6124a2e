//! The civil day and month of this moment, worked out once for many calls.

use std::sync::Arc;

use arc_swap::ArcSwap;
use sprag_core::policy::{Span, Zone};
use sprag_core::time::Timestamp;

/// The windows of budgets.
#[derive(Debug, Default)]
pub struct Windows {
    known: ArcSwap<Known>,
}

#[derive(Debug, Default)]
struct Known {
    zone: Zone,
    day: Span,
    month: Span,
}

impl Windows {
    /// The day and the month that a moment lies in.
    #[must_use]
    pub fn at(&self, zone: &Zone, now: Timestamp) -> (Span, Span) {
        let known = self.known.load();
        if known.day.contains(now) && known.month.contains(now) && known.zone == *zone {
            return (known.day, known.month);
        }
        let (day, month) = (zone.day(now), zone.month(now));
        self.known.store(Arc::new(Known { zone: zone.clone(), day, month }));
        (day, month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_and_another_zone_are_noticed() {
        let windows = Windows::default();
        let midnight = Timestamp(1_700_006_400_000);
        let before = Timestamp(midnight.0 - 1);
        assert_eq!(windows.at(&Zone::default(), before).0.end, midnight);
        assert_eq!(windows.at(&Zone::default(), midnight).0.start, midnight);
        assert_eq!(windows.at(&Zone::default(), before).0.end, midnight, "a clock that went back");
        let tokyo = Zone::named("Asia/Tokyo").unwrap();
        assert_eq!(windows.at(&tokyo, midnight).0.start.0, midnight.0 - 9 * 3_600_000);
    }
}
