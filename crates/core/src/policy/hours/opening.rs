//! When the hours begin again.

use jiff::civil::{Date, DateTime};
use jiff::tz::AmbiguousOffset;
use jiff::{Timestamp as Instant, Zoned};

use super::Hours;
use crate::time::Timestamp;

/// A week, and one more for a window that the clocks skip in the first.
const DAYS: usize = 15;
const MINUTES_OF_HOUR: u16 = 60;

impl Hours {
    /// Whether the clocks of the zone show a time in one of the windows.
    pub(super) fn covers(&self, clocks: DateTime) -> bool {
        let weekday = clocks.weekday().to_monday_zero_offset();
        let minute =
            u16::from(clocks.hour().unsigned_abs()) * MINUTES_OF_HOUR + u16::from(clocks.minute().unsigned_abs());
        self.windows.iter().any(|window| window.covers(weekday.unsigned_abs(), minute))
    }

    /// The first moment after `now` at which calls are allowed.
    pub(super) fn opening(&self, now: Timestamp) -> Option<Zoned> {
        let local = self.zone.local(now)?;
        let zone = local.time_zone();
        let opens = |at: &Zoned| at.timestamp() > local.timestamp() && self.covers(at.datetime());
        // Where the clocks jump, a window opens in its middle.
        let jump = zone.following(local.timestamp()).take(2).map(|jump| jump.timestamp().to_zoned(zone.clone()));
        let jump = jump.into_iter().find(|at| opens(at));
        let mut days = local.date().series(jiff::ToSpan::days(1)).take(DAYS);
        let begin = days.find_map(|day| {
            let begins = self.windows.iter().flat_map(|window| instants(zone, day, window.from));
            begins.map(|at| at.to_zoned(zone.clone())).filter(opens).min()
        });
        [jump, begin].into_iter().flatten().min()
    }
}

/// When the clocks show a time on a day: once, twice, or never.
fn instants(zone: &jiff::tz::TimeZone, day: Date, minute: u16) -> impl Iterator<Item = Instant> + use<> {
    let at = |minute: u16| day.at((minute / 60) as i8, (minute % 60) as i8, 0, 0);
    let civil = at(minute);
    let offsets = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => [Some(offset), None],
        AmbiguousOffset::Fold { before, after } => [Some(before), Some(after)],
        AmbiguousOffset::Gap { .. } => [None, None],
    };
    offsets.into_iter().flatten().filter_map(move |offset| offset.to_timestamp(civil).ok())
}
