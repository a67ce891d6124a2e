//! How often: requests or tokens per window, or a bucket that fills at a rate.
//!
//! A rule says what is counted and whose calls are counted together; a [`RateCounter`] counts for one set of values.
//! Where counters are kept, and how a call takes from several at once, is the store's.

mod counter;
mod limit_key;
mod refusal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::scope::Descriptor;
use crate::loops::Mode;

pub use counter::{RateCounter, RateExceeded};
pub use limit_key::{BadLimitKey, LimitKey};

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRule {
    /// What refusals call it.
    pub name: Arc<str>,
    /// Whether it is kept.
    pub mode: Mode,
    /// Whose calls are counted together: those with the same values of all of these. None for all calls together.
    pub limit_keys: Vec<LimitKey>,
    /// What is counted.
    pub measure: RateMeasure,
    /// Tells the counters of this rule from those of others: a rule that changes begins anew.
    pub id: u64,
}

/// What is counted, and how much of it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateMeasure {
    /// Requests in any span of this length.
    Requests {
        /// The most, up to [`RATE_LIMIT_MOST`](crate::limits::RATE_LIMIT_MOST).
        limit: u64,
        /// The length.
        window_ms: u64,
    },
    /// Tokens in any span of this length: what calls are expected to use, then what they used.
    Tokens {
        /// The most, up to [`RATE_LIMIT_MOST`](crate::limits::RATE_LIMIT_MOST).
        limit: u64,
        /// The length.
        window_ms: u64,
    },
    /// A bucket of `burst` requests that fills at `rps` a second.
    Bucket {
        /// Requests a second.
        rps: f64,
        /// Requests that it holds.
        burst: f64,
    },
}

impl RateRule {
    /// Its counters are told apart by claims of tokens.
    #[must_use]
    pub fn uses_claims(&self) -> bool {
        self.limit_keys.iter().any(|key| matches!(key, LimitKey::Carried(Descriptor::Jwt(_))))
    }
}

impl RateMeasure {
    /// The most that may be counted.
    #[must_use]
    pub fn limit(&self) -> f64 {
        match *self {
            RateMeasure::Requests { limit, .. } | RateMeasure::Tokens { limit, .. } => limit as f64,
            RateMeasure::Bucket { burst, .. } => burst,
        }
    }

    /// Tokens are counted, and corrected when the call is over.
    #[must_use]
    pub fn counts_tokens(&self) -> bool {
        matches!(self, RateMeasure::Tokens { .. })
    }
}
