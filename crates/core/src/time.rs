//! A moment, as the edge read it from its clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds from `earlier` to this moment; zero when the clock went backwards.
    #[must_use]
    pub fn since_ms(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0 - earlier.0).unwrap_or(0)
    }

    /// The moment as RFC 3339 text in UTC, with milliseconds.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map(|t| t.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_utc_with_milliseconds() {
        assert_eq!(Timestamp(1_700_000_000_123).to_rfc3339(), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn a_clock_that_went_back_gives_zero() {
        assert_eq!(Timestamp(5).since_ms(Timestamp(9)), 0);
        assert_eq!(Timestamp(9).since_ms(Timestamp(5)), 4);
    }
}
