//! `similar`: nearly the same prompt again, by the share of words in common.
//!
//! Prompts made from one template share most words while the work goes on. So a second signal is asked for unless the
//! rule says otherwise: the same calls or the same or a similar answer to those prompts, or tool results in between of
//! which none was new. Answers with different numbers are not similar: "item 17 done" is not "item 18 done".

use super::bounded::push_bounded;
use super::packed::narrow;
use super::prompt::{Answer, Prompt};
use super::simhash::{hamming, similarity_hash};
use super::words::{WordSet, numbers};
use super::{Detector, Finding, Mode, Proof, ProofStep, SimilarRule};
use crate::limits::{SIMILAR_PROMPTS, SIMILAR_RESULTS};
use crate::time::Timestamp;

/// Answers closer than this are similar.
const CLOSE_BITS: u32 = 3;

/// The last prompts by their words.
#[derive(Clone, Debug, Default)]
pub(super) struct Similar {
    mode: Mode,
    /// Newest last.
    prompts: Vec<Asked>,
    /// Results seen, newest last.
    results: Vec<u16>,
    results_since: u32,
    new_results_since: u32,
}

#[derive(Clone, Debug)]
struct Asked {
    step: u32,
    /// Since the epoch.
    second: u32,
    /// Packed.
    words: Box<[u8]>,
    answer: Option<Answered>,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    exact: u32,
    calls: u32,
    /// Its lower and its upper half.
    simhash: [u32; 2],
    numbers: u32,
}

impl Similar {
    /// What was seen in another mode is no evidence.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        if self.mode != mode {
            *self = Similar { mode, ..Similar::default() };
        }
    }

    /// Notes the results of a turn.
    pub(super) fn note_results(&mut self, results: impl Iterator<Item = u64>) {
        for result in results.map(|result| narrow(result) as u16) {
            self.results_since += 1;
            if self.results.contains(&result) {
                continue;
            }
            self.new_results_since += 1;
            push_bounded(&mut self.results, result, SIMILAR_RESULTS);
        }
    }

    /// Looks at a prompt of the user, and keeps it. `prompt` is None where the request repeats the prompt before.
    pub(super) fn look(
        &mut self,
        step: u32,
        now: Timestamp,
        prompt: Option<&Prompt<'_>>,
        rule: &SimilarRule,
    ) -> Option<Finding> {
        let words = match prompt {
            Some(prompt) => WordSet::new(&prompt.text),
            None => WordSet::unpack(&self.prompts.last()?.words),
        };
        let is_evidence = !words.is_empty() && !prompt.is_some_and(|prompt| prompt.is_short);
        let finding = is_evidence.then(|| self.compare(step, now, &words, rule)).flatten();
        let second = u32::try_from(now.0 / 1000).unwrap_or(0);
        let most = (rule.common.window.requests as usize).clamp(1, SIMILAR_PROMPTS);
        self.prompts.drain(..self.prompts.len().saturating_sub(most));
        push_bounded(&mut self.prompts, Asked { step, second, words: words.pack(), answer: None }, most);
        (self.results_since, self.new_results_since) = (0, 0);
        finding
    }

    /// The latest prompt is tried again as another step.
    pub(super) fn retry(&mut self, step: u32) {
        if let Some(latest) = self.prompts.last_mut().filter(|latest| latest.answer.is_none()) {
            latest.step = step;
        }
    }

    /// Notes an answer.
    pub(super) fn answer(&mut self, step: u32, text: &str, answer: &Answer) {
        if let Some(asked) = self.prompts.iter_mut().rev().find(|asked| asked.step == step) {
            let simhash = similarity_hash(text);
            let or_none = |hash: u64| if hash == 0 { 0 } else { narrow(hash).max(1) };
            asked.answer = Some(Answered {
                exact: or_none(answer.exact),
                calls: or_none(answer.calls),
                simhash: [simhash as u32, (simhash >> 32) as u32],
                numbers: narrow(numbers(text)),
            });
        }
    }

    fn compare(&self, step: u32, now: Timestamp, words: &WordSet, rule: &SimilarRule) -> Option<Finding> {
        let mut alike: Vec<&Asked> = Vec::new();
        let mut closest = 0.0_f64;
        let mut hit = now;
        for asked in rule.common.window.last_of(&self.prompts).iter().rev() {
            let jaccard = words.jaccard_above(&WordSet::unpack(&asked.words), rule.threshold);
            let at = Timestamp(i64::from(asked.second) * 1000);
            if jaccard > rule.threshold && rule.common.window.reaches(now, hit, at) {
                hit = at;
                closest = closest.max(jaccard);
                alike.push(asked);
            }
        }
        if alike.is_empty() || rule.needs_second_signal && !self.has_second_signal(&alike) {
            return None;
        }
        let steps: Vec<u32> = alike.iter().rev().map(|asked| asked.step).chain([step]).collect();
        Some(Finding {
            detector: Detector::Similar,
            mode: rule.common.mode,
            loop_type: "similar_prompt".into(),
            confidence: closest,
            score: closest,
            count: u32::try_from(steps.len()).unwrap_or(u32::MAX),
            proof: Proof {
                summary: "Similar prompt repetition detected".into(),
                compared: "words of the prompt".into(),
                threshold: rule.threshold,
                value: closest,
                window: rule.common.window.describe("requests"),
                steps: ProofStep::all_alike(&steps, "near"),
            },
        })
    }

    fn has_second_signal(&self, alike: &[&Asked]) -> bool {
        let answers: Vec<Answered> = alike.iter().filter_map(|asked| asked.answer).collect();
        let has_same_answers = answers.windows(2).any(|pair| pair[0].is_like(&pair[1]));
        has_same_answers || self.results_since > 0 && self.new_results_since == 0
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let words: usize = self.prompts.iter().map(|asked| asked.words.len()).sum();
        words + self.prompts.capacity() * size_of::<Asked>() + self.results.capacity() * size_of::<u16>()
    }
}

impl Answered {
    /// The same calls, or the same or a similar text.
    fn is_like(&self, other: &Answered) -> bool {
        if self.calls != other.calls || self.exact == 0 {
            return false;
        }
        let whole = |[low, high]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
        self.calls != 0
            || self.exact == other.exact
            || self.numbers == other.numbers && hamming(whole(self.simhash), whole(other.simhash)) < CLOSE_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{PromptScope, Rules, Turn};

    #[test]
    fn the_oldest_prompts_and_results_leave_first() {
        let mut similar = Similar::default();
        let mut rule = Rules::default().similar;
        rule.common.window.requests = SIMILAR_PROMPTS as u32;
        for step in 0..=SIMILAR_PROMPTS as u32 {
            let turn = Turn { user_text: "a few words".into(), ..Turn::default() };
            similar.look(step, Timestamp(0), Prompt::read(&turn, PromptScope::Turn).as_ref(), &rule);
            let first = step.saturating_sub(SIMILAR_PROMPTS as u32 - 1);
            assert_eq!(similar.prompts[0].step, first);
        }
        similar.note_results(0..SIMILAR_RESULTS as u64);
        similar.note_results([0].into_iter());
        assert_eq!(similar.new_results_since as usize, SIMILAR_RESULTS, "at the bound all are known");
        similar.note_results([u64::MAX, 0].into_iter());
        assert_eq!(similar.new_results_since as usize, SIMILAR_RESULTS + 2, "past it the oldest is new again");
        assert_eq!(similar.results.len(), SIMILAR_RESULTS);
    }
}
