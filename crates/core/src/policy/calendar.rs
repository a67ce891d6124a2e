//! Civil days and months in a time zone, over daylight-saving changes.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A time zone by its IANA name. The zones are compiled in: nothing is read.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A name that is no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone; expected a name such as UTC, Europe/Berlin or America/New_York")]
pub struct BadZone(String);

/// From a moment up to, and not including, another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
}

impl Default for Zone {
    fn default() -> Zone {
        Zone(TimeZone::UTC)
    }
}

impl PartialEq for Zone {
    /// By the names: all changes of the clocks since ever need not be compared.
    fn eq(&self, other: &Zone) -> bool {
        self.0.iana_name() == other.0.iana_name()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl Zone {
    /// The zone of a name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Zone, BadZone> {
        TimeZone::get(name).map(Zone).map_err(|_| BadZone(name.to_owned()))
    }

    /// The civil day that a moment lies in.
    #[must_use]
    pub fn day(&self, now: Timestamp) -> Span {
        self.span(now, |local| local.start_of_day(), |start| start.checked_add(1.day()))
    }

    /// The civil month that a moment lies in.
    #[must_use]
    pub fn month(&self, now: Timestamp) -> Span {
        self.span(now, |local| local.first_of_month()?.start_of_day(), |start| start.checked_add(1.month()))
    }

    /// What the clocks of the zone show at a moment.
    pub(super) fn clocks(&self, now: Timestamp) -> Option<DateTime> {
        jiff::Timestamp::from_millisecond(now.0).ok().map(|at| self.0.to_datetime(at))
    }

    /// The moment on the clocks of the zone.
    pub(super) fn local(&self, now: Timestamp) -> Option<Zoned> {
        jiff::Timestamp::from_millisecond(now.0).ok().map(|at| at.to_zoned(self.0.clone()))
    }

    fn span(
        &self,
        now: Timestamp,
        start: impl Fn(&Zoned) -> Result<Zoned, jiff::Error>,
        end: impl Fn(&Zoned) -> Result<Zoned, jiff::Error>,
    ) -> Span {
        let ends = || {
            let start = start(&self.local(now)?).ok()?;
            // Where midnight does not exist, the day after begins later too.
            let end = end(&start).ok()?.start_of_day().ok()?;
            Some(Span { start: moment(&start), end: moment(&end) })
        };
        // Only moments beyond the calendar have none: they are in a day of their own.
        ends().unwrap_or(Span { start: now, end: Timestamp(i64::MAX) })
    }
}

impl Span {
    /// Whether a moment lies in it.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        self.start <= now && now < self.end
    }
}

fn moment(at: &Zoned) -> Timestamp {
    Timestamp(at.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests;
