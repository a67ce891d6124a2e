//! What two nodes keep for `similar`, put together.

use super::Similar;
use super::past::{Asked, Past};
use crate::limits::{SIMILAR_PROMPTS, SIMILAR_RESULTS};
use crate::loops::Mode;
use crate::loops::attempts::Steps;
use crate::loops::bounded::push_bounded;

impl Similar {
    /// The prompts and results of both.
    pub(in crate::loops) fn merge(&self, theirs: &Similar, steps: &Steps) -> Similar {
        let (mut past, other) = (self.past(), theirs.past());
        if past.mode != other.mode {
            return if past.mode == Mode::Off { theirs.clone() } else { self.clone() };
        }
        if past.mode == Mode::Off {
            return Similar::default();
        }
        let results = [note_of(&past), note_of(&other)];
        past.has_new_results |= other.has_new_results;
        for result in other.results {
            if !past.results.contains(&result) {
                push_bounded(&mut past.results, result, SIMILAR_RESULTS);
            }
        }
        let known = past.prompts.len();
        let mut met = vec![false; known];
        for asked in other.prompts {
            let is_it = |own: &Asked<'_>| own.second == asked.second && own.words == asked.words;
            let Some(at) = past.prompts[..known].iter().position(is_it) else {
                past.prompts.push(asked);
                continue;
            };
            let own = &mut past.prompts[at];
            own.step = own.step.max(asked.step);
            own.answer = own.answer.or(asked.answer);
            met[at] = true;
        }
        if past.prompts.len() > known {
            let mut met = met.into_iter();
            past.prompts.retain(|asked| steps.counts(asked.step, met.next() == Some(true)));
            past.prompts.sort_by_key(|asked| (asked.step, asked.second));
            past.prompts.drain(..past.prompts.len().saturating_sub(SIMILAR_PROMPTS));
        }
        // Only what came after the latest prompt counts, and what was new to one of them was new.
        let (latest, _) = note_of(&past);
        past.has_results = past.has_new_results || results.contains(&(latest, true));
        let mut merged = Similar::default();
        merged.0.set(&past.pack());
        merged
    }
}

/// Whether there were results since the latest prompt, and when that was.
fn note_of(past: &Past<'_>) -> (Option<u32>, bool) {
    (past.prompts.last().map(|asked| asked.second), past.has_results)
}
