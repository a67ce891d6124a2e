//! `similar`: nearly the same prompt again, by the share of words in common.
//!
//! Prompts made from one template share most words while the work goes on. So a second signal is asked for unless the
//! rule says otherwise: the same calls or the same or a similar answer to those prompts, or tool results in between of
//! which none was new. Answers with different numbers are not similar: "item 17 done" is not "item 18 done".

mod merge;
mod past;

use std::borrow::Cow;

use self::past::{Answered, Asked, Past, mode_of};
use super::bounded::push_bounded;
use super::packed::{Kept, Reader, narrow, put_piece};
use super::prompt::{Answer, Prompt};
use super::simhash::{hamming, similarity_hash};
use super::words::{WordSet, numbers};
use super::{Detector, Finding, Mode, Proof, ProofStep, SimilarRule};
use crate::limits::{SIMILAR_PROMPTS, SIMILAR_RESULTS};
use crate::time::Timestamp;

/// Answers closer than this are similar.
const CLOSE_BITS: u32 = 3;

/// The last prompts by their words, packed. Nothing where it is off.
#[derive(Clone, Debug, Default)]
pub(super) struct Similar(Kept);

impl Similar {
    /// What was seen in another mode is no evidence.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        if mode == Mode::Off {
            self.0 = Kept::default();
        } else if mode_of(self.0.bytes()) != mode {
            self.0.set(&Past { mode, ..Past::default() }.pack());
        }
    }

    /// Notes the results of a turn.
    pub(super) fn note_results(&mut self, results: impl Iterator<Item = u64>) {
        let mut past = self.past();
        for result in results.map(|result| narrow(result) as u16) {
            past.has_results = true;
            if past.results.contains(&result) {
                continue;
            }
            past.has_new_results = true;
            push_bounded(&mut past.results, result, SIMILAR_RESULTS);
        }
        let bytes = past.pack();
        self.0.set(&bytes);
    }

    /// Looks at a prompt of the user, and keeps it. `prompt` is None where the request repeats the prompt before.
    pub(super) fn look(
        &mut self,
        step: u32,
        now: Timestamp,
        prompt: Option<&Prompt<'_>>,
        rule: &SimilarRule,
    ) -> Option<Finding> {
        let mut past = self.past();
        let words = match prompt {
            Some(prompt) => WordSet::new(&prompt.text),
            None => WordSet::unpack(&past.prompts.last()?.words),
        };
        let is_evidence = !words.is_empty() && !prompt.is_some_and(|prompt| prompt.is_short);
        let finding = is_evidence.then(|| past.compare(step, now, &words, rule)).flatten();
        let second = u32::try_from(now.0 / 1000).unwrap_or(0);
        let most = (rule.common.window.requests as usize).clamp(1, SIMILAR_PROMPTS);
        past.prompts.drain(..past.prompts.len().saturating_sub(most));
        let asked = Asked { step, second, answer: None, words: Cow::Owned(words.pack()) };
        push_bounded(&mut past.prompts, asked, most);
        (past.has_results, past.has_new_results) = (false, false);
        let bytes = past.pack();
        self.0.set(&bytes);
        finding
    }

    /// The latest prompt is tried again as another step.
    pub(super) fn retry(&mut self, step: u32) {
        let mut past = self.past();
        if let Some(latest) = past.prompts.last_mut().filter(|latest| latest.answer.is_none()) {
            latest.step = step;
            let bytes = past.pack();
            self.0.set(&bytes);
        }
    }

    /// Notes an answer.
    pub(super) fn answer(&mut self, step: u32, text: &str, answer: &Answer) {
        let mut past = self.past();
        if let Some(asked) = past.prompts.iter_mut().rev().find(|asked| asked.step == step) {
            let simhash = similarity_hash(text);
            let or_none = |hash: u64| if hash == 0 { 0 } else { narrow(hash).max(1) };
            asked.answer = Some(Answered {
                exact: or_none(answer.exact),
                calls: or_none(answer.calls),
                simhash: [simhash as u32, (simhash >> 32) as u32],
                numbers: narrow(numbers(text)),
            });
            let bytes = past.pack();
            self.0.set(&bytes);
        }
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        put_piece(bytes, self.0.bytes());
    }

    /// Reads what was written; None where it holds more than is ever kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Similar> {
        let mut similar = Similar::default();
        let piece = reader.piece();
        if !piece.is_empty() {
            let mut past = Past::unpack(piece);
            for asked in &mut past.prompts {
                asked.words = Cow::Owned(WordSet::unpack(&asked.words).pack());
            }
            if past.results.len() > SIMILAR_RESULTS || past.prompts.len() > SIMILAR_PROMPTS {
                return None;
            }
            similar.0.set(&past.pack());
        }
        Some(similar)
    }

    fn past(&self) -> Past<'_> {
        Past::unpack(self.0.bytes())
    }
}

impl Past<'_> {
    fn compare(&self, step: u32, now: Timestamp, words: &WordSet, rule: &SimilarRule) -> Option<Finding> {
        let mut alike: Vec<&Asked<'_>> = Vec::new();
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

    fn has_second_signal(&self, alike: &[&Asked<'_>]) -> bool {
        let answers: Vec<Answered> = alike.iter().filter_map(|asked| asked.answer).collect();
        let has_same_answers = answers.windows(2).any(|pair| pair[0].is_like(&pair[1]));
        has_same_answers || self.has_results && !self.has_new_results
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
        similar.set_mode(Mode::Enforce);
        let mut rule = Rules::default().similar;
        rule.common.window.requests = SIMILAR_PROMPTS as u32;
        for step in 0..=SIMILAR_PROMPTS as u32 {
            let turn = Turn { user_text: "a few words".into(), ..Turn::default() };
            similar.look(step, Timestamp(0), Prompt::read(&turn, PromptScope::Turn).as_ref(), &rule);
            let first = step.saturating_sub(SIMILAR_PROMPTS as u32 - 1);
            assert_eq!(similar.past().prompts[0].step, first);
        }
        let mut has_new = |results: &[u64]| {
            similar.look(9, Timestamp(0), None, &rule);
            similar.note_results(results.iter().copied());
            similar.past().has_new_results
        };
        let all: Vec<u64> = (0..SIMILAR_RESULTS as u64).collect();
        assert!(has_new(&all) && !has_new(&[0]), "at the bound all are known");
        assert!(has_new(&[u64::MAX]) && has_new(&[0]), "past it the oldest is new again");
        assert_eq!(similar.past().results.len(), SIMILAR_RESULTS);
    }
}
