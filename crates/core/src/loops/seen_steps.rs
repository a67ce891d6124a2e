//! Which of a run's last steps a node has heard of, where several nodes work on the run.
//!
//! Steps are counted for all nodes together. One that is under way elsewhere is a prompt that nobody here knows: what
//! lies on both sides of it does not follow one upon the other.

use super::packed::{Reader, put_number};

/// Steps back that are known one by one.
const REACH: u32 = u64::BITS;

/// The latest step, and which of those up to it were heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenSteps {
    latest: u32,
    /// The latest lowest.
    bits: u64,
}

impl SeenSteps {
    /// Notes a step.
    pub(super) fn note(&mut self, step: u32) {
        if step > self.latest {
            self.bits = self.bits.checked_shl(step - self.latest).unwrap_or(0);
            self.latest = step;
        }
        self.bits |= 1_u64.checked_shl(self.latest - step).unwrap_or(0);
    }

    /// Whether all steps between two are known.
    pub(super) fn has_all_between(&self, first: u32, last: u32) -> bool {
        let is_known = |step: u32| {
            let back = self.latest.checked_sub(step).filter(|back| *back < REACH);
            back.is_some_and(|back| self.bits >> back & 1 == 1)
        };
        // Farther back nothing is known.
        last.saturating_sub(first) <= REACH && (first.saturating_add(1)..last).all(is_known)
    }

    /// Whether all steps before one are known, as far back as they are known one by one.
    pub(super) fn has_all_before(&self, last: u32) -> bool {
        self.has_all_between(last.saturating_sub(REACH), last)
    }

    /// What two nodes have heard of.
    pub(super) fn merge(&self, other: &SeenSteps) -> SeenSteps {
        let latest = self.latest.max(other.latest);
        let moved = |seen: &SeenSteps| seen.bits.checked_shl(latest - seen.latest).unwrap_or(0);
        SeenSteps { latest, bits: moved(self) | moved(other) }
    }

    /// Writes it down for another node. Few steps are not known.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        put_number(bytes, u64::from(self.latest));
        put_number(bytes, !self.bits & self.mask());
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<SeenSteps> {
        let seen = SeenSteps { latest: reader.small()?, bits: 0 };
        let unknown = reader.number();
        Some(SeenSteps { bits: !unknown & seen.mask(), ..seen })
    }

    /// The bits of steps that there are: the first is 1.
    fn mask(&self) -> u64 {
        if self.latest >= REACH { u64::MAX } else { (1 << self.latest) - 1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(steps: &[u32]) -> SeenSteps {
        let mut seen = SeenSteps::default();
        steps.iter().for_each(|step| seen.note(*step));
        seen
    }

    #[test]
    fn a_step_that_is_missing_is_known_to_be() {
        let known = seen(&[1, 2, 4]);
        assert!(known.has_all_between(1, 2) && known.has_all_between(1, 3), "3 lies behind");
        assert!(!known.has_all_between(2, 4) && !known.has_all_between(1, 5));
        assert!(seen(&[1, 2, 4, 3]).has_all_between(1, 4), "it came late");
        assert!(known.merge(&seen(&[3])).has_all_between(1, 4), "another node has it");
        assert_eq!(known.merge(&seen(&[9])), seen(&[9, 1, 2, 4]));
    }

    #[test]
    fn steps_are_known_up_to_the_reach() {
        let all: Vec<u32> = (1..=REACH + 1).collect();
        let known = seen(&all);
        assert!(known.has_all_between(1, REACH + 1), "at the bound");
        assert!(!known.has_all_between(0, REACH + 1), "past it");
        assert!(known.has_all_before(REACH + 1) && !seen(&all[1..]).has_all_before(REACH));
        assert!(!seen(&[1, u32::MAX]).has_all_between(1, u32::MAX));
    }

    proptest! {
        #[test]
        fn it_comes_back_as_it_was(steps in prop::collection::vec(1..200_u32, 0..100)) {
            let seen = seen(&steps);
            let mut bytes = Vec::new();
            seen.write(&mut bytes);
            prop_assert_eq!(SeenSteps::read(&mut Reader::new(&bytes)), Some(seen));
        }
    }
}
