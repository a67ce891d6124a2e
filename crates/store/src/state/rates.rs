//! What a call takes from rate limits, as told between the gateway and the state.

use sprag_core::policy::{RateExceeded, RateMeasure, RateRule};
use sprag_core::time::Timestamp;

/// What a call would take from one rule.
#[derive(Clone, Copy, Debug)]
pub struct RateAsk<'a> {
    /// The rule.
    pub rule: &'a RateRule,
    /// Which counter of the rule: a hash of the rule's id and of the values that its calls share.
    pub bucket: u64,
    /// Requests, or tokens that the call is expected to use. A rule on tokens is not asked about a call without any.
    pub amount: u64,
}

/// What came of asking. Indexes are places in the list that was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rated {
    /// The first rule in force that has no room. Then no rule counted the call.
    pub refused: Option<(usize, RateExceeded)>,
    /// The rules in shadow that have no room.
    pub would_refuse: Vec<(usize, RateExceeded)>,
    /// What is to be corrected when the call is over.
    pub taken: RatesTaken,
}

/// Tokens that were taken for a call, to be corrected by what it used. Empty where no rule counts tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatesTaken {
    pub(super) at: Timestamp,
    pub(super) tokens: Vec<TokensTaken>,
}

/// Tokens taken from one counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokensTaken {
    pub(super) place: Place,
    pub(super) measure: RateMeasure,
    pub(super) amount: u64,
}

/// Where a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The counter of one set of values.
    Own(u64),
    /// The counter that a rule has for all values which found no room for one of their own.
    Shared(u64),
}

impl RatesTaken {
    /// Nothing is to be corrected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}
