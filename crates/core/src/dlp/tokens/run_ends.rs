//! Where runs of characters end, remembered.
//!
//! Text such as `sk-sk-sk-` has a trigger every few bytes inside one run. Without memory each of them would walk to
//! the run's end again.

use super::alphabet::Alphabet;
use crate::dlp::view::{LOOK_AHEAD, View};

/// The last run of each alphabet.
#[derive(Debug, Default)]
pub(in crate::dlp) struct RunEnds {
    runs: [Option<Run>; KEPT],
    next: usize,
    /// How many bytes were walked over, for tests.
    pub(super) walked: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    of: Alphabet,
    from: usize,
    end: usize,
}

const KEPT: usize = 8;
/// Ends this far ahead are exact; a run that is longer is only known to be longer.
pub(super) const EXACT: usize = LOOK_AHEAD / 2;

impl RunEnds {
    /// Where the run that holds `at` ends; if that is more than [`EXACT`] bytes ahead, any place that far.
    pub(super) fn end(&mut self, view: &View<'_>, of: Alphabet, at: usize) -> usize {
        let known = self.runs.iter().flatten().find(|run| run.from <= at && at < run.end && run.of == of);
        if let Some(run) = known
            && (run.end - run.from < LOOK_AHEAD || run.end - at > EXACT)
        {
            return run.end;
        }
        let limit = view.text.len().min(at + LOOK_AHEAD);
        let end = view.text[at..limit].iter().position(|byte| !of.has(*byte)).map_or(limit, |length| at + length);
        self.walked += end - at + 1;
        let place = self.runs.iter().position(|run| run.is_some_and(|run| run.of == of)).unwrap_or_else(|| {
            self.next = (self.next + 1) % KEPT;
            self.next
        });
        self.runs[place] = Some(Run { of, from: at, end });
        end
    }
}
