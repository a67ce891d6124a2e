//! Two trails of one run, put together.

use super::{Footprint, Since, Trail};
use crate::limits::RUN_PROMPTS;
use crate::loops::Mode;
use crate::loops::attempts::Steps;

/// A prompt of one trail or both, and for which detectors it is evidence; None where it was seen in another mode.
struct Known<const N: usize> {
    footprint: Footprint,
    is_evidence: [Option<bool>; N],
    is_with_both: bool,
}

impl Trail {
    /// The prompts of both, and from where on they are evidence for each of some detectors, given what each node says
    /// of its own.
    pub(in crate::loops) fn merge<const N: usize>(
        &self,
        since: [Since; N],
        theirs: &Trail,
        their_since: [Since; N],
        steps: &Steps,
    ) -> (Trail, [Since; N]) {
        if theirs.count == 0 || self.count > 0 && self.scope != theirs.scope {
            return (self.clone(), since);
        }
        let mut modes = since.map(|since| since.mode);
        for (mode, other) in modes.iter_mut().zip(&their_since).filter(|(mode, _)| **mode == Mode::Off) {
            *mode = other.mode;
        }
        let mut all: Vec<Known<N>> = self.known(&since, &modes).collect();
        for other in theirs.known(&their_since, &modes) {
            match all.iter_mut().find(|own| !own.is_with_both && own.footprint.is_one_with(&other.footprint)) {
                Some(own) => own.meet(&other),
                None => all.push(other),
            }
        }
        let is_grown = all.len() > usize::from(self.count);
        if is_grown {
            all.retain(|one| steps.counts(one.footprint.step, one.is_with_both));
            all.sort_by_key(|one| (one.footprint.step, one.footprint.at));
            all.drain(..all.len().saturating_sub(RUN_PROMPTS));
        }
        let footprints: Vec<Footprint> = all.iter().map(|one| one.footprint).collect();
        let mut trail = Trail { scope: theirs.scope, gone: if is_grown { 0 } else { self.gone }, ..Trail::default() };
        trail.pack(&footprints);
        let mut merged = since;
        for (at, since) in merged.iter_mut().enumerate().filter(|_| is_grown) {
            let none = all.iter().rposition(|one| one.is_evidence[at] != Some(true));
            *since = Since { mode: modes[at], from: none.map_or(0, |last| last as u32 + 1) };
        }
        (trail, merged)
    }

    fn known<const N: usize>(&self, since: &[Since; N], modes: &[Mode; N]) -> impl Iterator<Item = Known<N>> {
        self.unpack().into_iter().zip(self.gone..).map(|(footprint, number)| {
            let is_evidence =
                std::array::from_fn(|at| (since[at].mode == modes[at]).then_some(since[at].from <= number));
            Known { footprint, is_evidence, is_with_both: false }
        })
    }
}

impl<const N: usize> Known<N> {
    fn meet(&mut self, other: &Known<N>) {
        let (own, theirs) = (&mut self.footprint, &other.footprint);
        own.step = own.step.max(theirs.step);
        if own.answer == 0 {
            (own.answer, own.is_short_answer) = (theirs.answer, theirs.is_short_answer);
        }
        for (own, theirs) in self.is_evidence.iter_mut().zip(other.is_evidence) {
            *own = match (*own, theirs) {
                (Some(own), Some(theirs)) => Some(own && theirs),
                (own, theirs) => own.or(theirs),
            };
        }
        self.is_with_both = true;
    }
}

impl Footprint {
    /// Whether both are the same one, as two nodes know it. One that is tried again keeps its moment.
    fn is_one_with(&self, other: &Footprint) -> bool {
        // To the second: so it is kept.
        let told = |one: &Footprint| (one.at.0.div_euclid(1000), one.prompt, one.is_results);
        told(self) == told(other)
    }
}
