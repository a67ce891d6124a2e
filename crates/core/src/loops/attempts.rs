//! Which requests of a run are attempts of one that was never answered: those are retries, not loops.

use super::packed::{Kept, Reader, narrow, put_piece, put_signed};
use crate::limits::ATTEMPTS;

/// The last requests of a run and whether they were answered. They lie packed: some five bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(Kept);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    step: u32,
    /// The whole conversation of the request.
    end: u32,
    outcome: Outcome,
}

/// The bits of an outcome, below those of the step.
const OUTCOME_BITS: u32 = 2;

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

/// What two nodes know together of the steps of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// They ask for no more than a later one: a request that was tried again, or that two nodes had at once.
    repeated: Vec<u32>,
    /// Both nodes have seen them.
    shared: Vec<u32>,
}

impl Steps {
    /// Whether a step's prompt counts, given whether both nodes have it. Where only one has it though both have seen
    /// the step, the other has let it go.
    pub(super) fn counts(&self, step: u32, is_with_both: bool) -> bool {
        !self.repeated.contains(&step) && (is_with_both || !self.shared.contains(&step))
    }
}

impl Attempts {
    /// Notes a request. Gives what became of the latest one with the same conversation, if there was one.
    pub fn arrive(&mut self, step: u32, end: u64) -> Option<Outcome> {
        let end = narrow(end);
        let attempt = Attempt { step, end, outcome: Outcome::Open };
        // Most runs begin with one and end with it.
        if self.0.bytes().is_empty() {
            self.pack(&[attempt]);
            return None;
        }
        let mut recent = self.unpack();
        let before = recent.iter().rev().find(|attempt| attempt.end == end).map(|attempt| attempt.outcome);
        if recent.len() >= ATTEMPTS {
            leave(&mut recent);
        }
        recent.push(attempt);
        self.pack(&recent);
        before
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// Forgets a request that was refused.
    pub fn withdraw(&mut self, step: u32) {
        let mut recent = self.unpack();
        recent.retain(|attempt| attempt.step != step);
        self.pack(&recent);
    }

    /// Notes how a request ended.
    pub fn depart(&mut self, step: u32, is_answered: bool) {
        let mut recent = self.unpack();
        if let Some(attempt) = recent.iter_mut().rev().find(|attempt| attempt.step == step) {
            attempt.outcome = if is_answered { Outcome::Answered } else { Outcome::Failed };
            self.pack(&recent);
        }
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        put_piece(bytes, self.0.bytes());
    }

    /// Reads what was written; None where it holds more than is ever kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Attempts> {
        let mut attempts = Attempts::default();
        attempts.0.set(reader.piece());
        let recent = attempts.unpack();
        attempts.pack(&recent);
        (recent.len() <= ATTEMPTS).then_some(attempts)
    }

    /// The requests of both, and what is known of their steps.
    pub(super) fn merge(&self, theirs: &Attempts) -> (Attempts, Steps) {
        let (mine, theirs) = (self.unpack(), theirs.unpack());
        let is_in = |list: &[Attempt], one: &Attempt| list.iter().any(|other| one.is_same(other));
        let mut all = mine.clone();
        for one in &theirs {
            match all.iter_mut().find(|known| known.is_same(one)) {
                Some(known) => known.outcome = known.outcome.or_later(one.outcome),
                None => all.push(*one),
            }
        }
        all.sort_by_key(|attempt| attempt.step);
        let is_shared = |one: &Attempt| is_in(&mine, one) && is_in(&theirs, one);
        let is_at_once = |one: &Attempt, later: &Attempt| {
            !is_shared(one) && !is_shared(later) && is_in(&mine, one) != is_in(&mine, later)
        };
        let is_repeated = |one: &&Attempt| {
            let mut later = all.iter().filter(|later| later.step > one.step && later.end == one.end);
            later.any(|later| one.outcome != Outcome::Answered || is_at_once(one, later))
        };
        let steps = Steps {
            repeated: all.iter().filter(is_repeated).map(|attempt| attempt.step).collect(),
            shared: all.iter().filter(|one| is_shared(one)).map(|attempt| attempt.step).collect(),
        };
        while all.len() > ATTEMPTS {
            leave(&mut all);
        }
        let mut merged = Attempts::default();
        merged.pack(&all);
        (merged, steps)
    }

    /// Newest last.
    fn unpack(&self) -> Vec<Attempt> {
        let mut recent = Vec::with_capacity(ATTEMPTS + 1);
        let mut reader = Reader::new(self.0.bytes());
        let mut step = 0_i64;
        while !reader.is_at_end() {
            let end = reader.four();
            let number = reader.signed();
            step = step.saturating_add(number >> OUTCOME_BITS);
            let outcome = match number & ((1 << OUTCOME_BITS) - 1) {
                0 => Outcome::Open,
                1 => Outcome::Answered,
                _ => Outcome::Failed,
            };
            recent.push(Attempt { step: u32::try_from(step).unwrap_or(0), end, outcome });
        }
        recent
    }

    fn pack(&mut self, recent: &[Attempt]) {
        let mut bytes = Vec::with_capacity(6 * recent.len());
        let mut before = 0;
        for attempt in recent {
            let step = i64::from(attempt.step);
            bytes.extend(attempt.end.to_le_bytes());
            put_signed(&mut bytes, (step - before) << OUTCOME_BITS | attempt.outcome as i64);
            before = step;
        }
        self.0.set(&bytes);
    }
}

impl Attempt {
    /// The same request. The number alone does not tell: nodes that do not hear of each other count for themselves.
    fn is_same(&self, other: &Attempt) -> bool {
        self.step == other.step && self.end == other.end
    }
}

impl Outcome {
    /// What one node knows and another does not know yet. One that has failed is no evidence, in doubt.
    fn or_later(self, other: Outcome) -> Outcome {
        match (self, other) {
            (Outcome::Open, later) | (later, Outcome::Open) => later,
            (Outcome::Answered, Outcome::Answered) => Outcome::Answered,
            _ => Outcome::Failed,
        }
    }
}

/// Lets one go. Those that may be tried again stay longest.
fn leave(recent: &mut Vec<Attempt>) {
    let answered = recent.iter().position(|attempt| attempt.outcome == Outcome::Answered);
    recent.remove(answered.unwrap_or(0));
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
        assert_eq!(attempts.unpack().len(), ATTEMPTS);
        assert_eq!(attempts.clone().arrive(number, 0), Some(Outcome::Open), "at the bound all are known");
        attempts.arrive(number, u64::MAX);
        assert_eq!(attempts.arrive(number + 1, 0), None, "past it the oldest is gone");
        attempts.depart(number, true);
        attempts.arrive(number + 2, 7);
        assert_eq!(attempts.clone().arrive(number + 3, u64::MAX), None, "an answered one before all others");
        assert_eq!(attempts.arrive(number + 3, 2), Some(Outcome::Open));
    }
}
