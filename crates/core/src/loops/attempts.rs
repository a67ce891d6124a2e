//! Which requests of a run are attempts of one that was never answered: those are retries, not loops.

use super::bounded::push_bounded;
use crate::limits::ATTEMPTS;

/// The last requests of a run and whether they were answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Newest last.
    recent: Vec<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    step: u32,
    /// The whole conversation of the request.
    end: u64,
    outcome: Outcome,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No answer yet.
    Open,
    /// A whole answer.
    Answered,
    /// No answer, or a part of one.
    Failed,
}

impl Attempts {
    /// Notes a request. Gives what became of the latest one with the same conversation, if there was one.
    pub fn arrive(&mut self, step: u32, end: u64) -> Option<Outcome> {
        let before = self.recent.iter().rev().find(|attempt| attempt.end == end).map(|attempt| attempt.outcome);
        push_bounded(&mut self.recent, Attempt { step, end, outcome: Outcome::Open }, ATTEMPTS);
        before
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<Attempt>()
    }

    /// Forgets a request that was refused.
    pub fn withdraw(&mut self, step: u32) {
        self.recent.retain(|attempt| attempt.step != step);
    }

    /// Notes how a request ended.
    pub fn depart(&mut self, step: u32, is_answered: bool) {
        if let Some(attempt) = self.recent.iter_mut().rev().find(|attempt| attempt.step == step) {
            attempt.outcome = if is_answered { Outcome::Answered } else { Outcome::Failed };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_again_with_what_became_of_it() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.arrive(1, 7), None);
        assert_eq!(attempts.arrive(2, 7), Some(Outcome::Open), "two at once");
        attempts.depart(2, false);
        assert_eq!(attempts.arrive(3, 7), Some(Outcome::Failed), "the latest counts");
        attempts.depart(3, true);
        assert_eq!(attempts.arrive(4, 7), Some(Outcome::Answered));
        assert_eq!(attempts.arrive(5, 8), None);
    }

    #[test]
    fn a_refused_request_is_no_attempt() {
        let mut attempts = Attempts::default();
        attempts.arrive(1, 7);
        attempts.withdraw(1);
        assert_eq!(attempts.arrive(2, 7), None);
    }

    #[test]
    fn the_oldest_attempt_leaves_first() {
        let mut attempts = Attempts::default();
        let number = u32::try_from(ATTEMPTS).unwrap();
        for step in 0..number {
            attempts.arrive(step, u64::from(step));
        }
        assert_eq!(attempts.recent.len(), ATTEMPTS);
        assert_eq!(attempts.clone().arrive(number, 0), Some(Outcome::Open), "at the bound all are known");
        attempts.arrive(number, u64::MAX);
        assert_eq!(attempts.arrive(number + 1, 0), None, "past it the oldest is gone");
    }
}
