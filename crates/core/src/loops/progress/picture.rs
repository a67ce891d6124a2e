//! Which steps of a run are alike: a loop shows as stripes.

use super::Step;
use super::evidence::RecordedStep;
use crate::limits::PICTURE_STEPS;

/// Steps against steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The numbers of the steps, ascending.
    pub steps: Vec<u32>,
    /// For each step how it resembles those up to itself: 0 not at all, 1 similar, 2 the same call or the same result,
    /// 3 the same call with the same result.
    pub rows: Vec<Vec<u8>>,
}

impl Picture {
    /// How two steps resemble each other, by their places.
    #[must_use]
    pub fn level(&self, a: usize, b: usize) -> u8 {
        self.rows.get(a.max(b)).and_then(|row| row.get(a.min(b))).copied().unwrap_or(0)
    }
}

/// Compares all steps with each other, the last ones where there are too many. Texts are similar from `likeness` on.
#[must_use]
pub fn similarity(recorded: &[RecordedStep], likeness: f64) -> Picture {
    let read = |one: &RecordedStep| one.evidence.unpack(one.request, one.at)?.0.step;
    let mut steps: Vec<Step> = recorded.iter().filter_map(read).collect();
    // A refused request that comes again finishes the same step once more.
    steps.sort_by_key(|step| step.number);
    steps.dedup_by_key(|step| step.number);
    let steps = &steps[steps.len().saturating_sub(PICTURE_STEPS)..];
    let row = |(at, step): (usize, &Step)| steps[..=at].iter().map(|old| alike(step, old, likeness)).collect();
    Picture { steps: steps.iter().map(|step| step.number).collect(), rows: steps.iter().enumerate().map(row).collect() }
}

fn alike(a: &Step, b: &Step, likeness: f64) -> u8 {
    let is_same_result = a.outcome.exact == b.outcome.exact;
    let is_same_action = a.action.exact == b.action.exact;
    if is_same_action && is_same_result {
        return 3;
    }
    if is_same_action || is_same_result && a.outcome.is_telling {
        return 2;
    }
    let is_same_failure = a.outcome.failure != 0 && a.outcome.failure == b.outcome.failure;
    let is_similar = a.action.words.likeness(&b.action.words) >= likeness
        && (is_same_failure || a.outcome.words.likeness(&b.outcome.words) >= likeness);
    u8::from(a.action.tool == b.action.tool && (is_similar || is_same_failure))
}
