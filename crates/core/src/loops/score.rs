//! `score`: an agent's last requests, weighed: similar prompts, similar answers, repeated calls.
//!
//! Calls are the calls that were made, answers are compared by what they say and call. Where the rule pairs them, an
//! answer or call counts only if it came of a similar prompt: "same question, same answer, still asking". Otherwise
//! every classifier that says yes and every agent that polls would score.

mod travel;

use super::prompt::{Answer, Prompt};
use super::simhash::{hamming, similarity_hash};
use super::{Detector, Finding, Mode, PromptScope, Proof, ProofStep, ScoreRule};
use crate::limits::SCORE_REQUESTS;
use crate::time::Timestamp;

/// The last requests of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct ScoreWindow {
    mode: Mode,
    scope: PromptScope,
    /// Newest last.
    requests: Vec<Request>,
}

/// How often a request resembles those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Similar prompts.
    pub prompts: u32,
    /// Similar answers.
    pub answers: u32,
    /// Repeated calls.
    pub calls: u32,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    run: u64,
    at: Timestamp,
    prompt: u64,
    /// The calls that the model had made before.
    asked: u64,
    /// SimHash of the answer's text and the calls in it, once it is there.
    answer: Option<(u64, u64)>,
    step: u32,
    is_results: bool,
    is_short: bool,
}

impl Tally {
    /// The weighted sum.
    #[must_use]
    pub fn score(&self, rule: &ScoreRule) -> f64 {
        f64::from(self.prompts) * rule.prompt_weight
            + f64::from(self.answers) * rule.answer_weight
            + f64::from(self.calls) * rule.call_weight
    }
}

impl ScoreRule {
    /// Whether a score is too high.
    #[must_use]
    pub fn trips(&self, score: f64) -> bool {
        score > self.threshold || self.trips_at && score >= self.threshold
    }
}

impl ScoreWindow {
    /// What was seen in another mode, or under another meaning of "prompt", is no evidence.
    pub(super) fn set_mode(&mut self, mode: Mode, scope: PromptScope) {
        if self.mode != mode || self.scope != scope {
            *self = ScoreWindow { mode, scope, ..ScoreWindow::default() };
        }
    }

    /// Weighs a request, and keeps it. `prompt` is None where the request repeats the prompt before it in its run.
    pub(super) fn look(
        &mut self,
        run: u64,
        step: u32,
        now: Timestamp,
        prompt: Option<&Prompt<'_>>,
        rule: &ScoreRule,
    ) -> (Tally, Option<Finding>) {
        let before = self.requests.iter().rev().find(|request| request.run == run);
        let Some(request) = Request::new(run, step, now, prompt, before) else { return (Tally::default(), None) };
        let most = (rule.common.window.requests as usize).clamp(1, SCORE_REQUESTS);
        let surplus = self.requests.len().saturating_sub(most);
        self.requests.drain(..surplus);
        let tally = self.weigh(&request, rule);
        let score = tally.score(rule);
        let finding = rule.trips(score).then(|| self.finding(&request, tally, score, rule));
        if self.requests.len() == most {
            self.requests.remove(0);
        }
        self.requests.push(request);
        (tally, finding)
    }

    /// The run's latest request is tried again as another step: the answer will come under that number.
    pub(super) fn retry(&mut self, run: u64, step: u32) {
        let latest = self.requests.iter_mut().rev().find(|request| request.run == run);
        if let Some(latest) = latest.filter(|latest| latest.answer.is_none()) {
            latest.step = step;
        }
    }

    /// The requests of both.
    pub(super) fn merge(&self, theirs: &ScoreWindow) -> ScoreWindow {
        if (self.mode, self.scope) != (theirs.mode, theirs.scope) {
            return if self.mode == Mode::Off { theirs.clone() } else { self.clone() };
        }
        let mut merged = self.clone();
        let known = merged.requests.len();
        for one in &theirs.requests {
            // One that is tried again keeps its moment.
            let is_it = |known: &&mut Request| (known.run, known.at, known.prompt) == (one.run, one.at, one.prompt);
            match merged.requests.iter_mut().take(known).find(is_it) {
                Some(known) => {
                    known.step = known.step.max(one.step);
                    known.answer = known.answer.or(one.answer);
                }
                None => merged.requests.push(*one),
            }
        }
        if merged.requests.len() > known {
            merged.requests.sort_by_key(|request| request.at);
            let surplus = merged.requests.len().saturating_sub(SCORE_REQUESTS);
            merged.requests.drain(..surplus);
        }
        merged
    }

    /// Notes an answer.
    pub(super) fn answer(&mut self, run: u64, step: u32, text: &str, answer: &Answer) {
        let is_it = |request: &&mut Request| request.run == run && request.step == step;
        if let Some(request) = self.requests.iter_mut().rev().find(is_it) {
            request.answer = (answer.exact != 0).then(|| (similarity_hash(text), answer.calls));
        }
    }

    fn weigh(&self, latest: &Request, rule: &ScoreRule) -> Tally {
        let mut tally = Tally::default();
        let reaches = |request: &&Request| rule.common.window.reaches(latest.at, latest.at, request.at);
        let answered = self.requests.iter().rev().find(|request| request.answer.is_some());
        for request in self.requests.iter().filter(reaches) {
            let is_similar = request.is_similar(latest, rule.hamming);
            let is_repeated = latest.asked != 0 && request.asked == latest.asked;
            let is_answered_alike = answered.is_some_and(|answered| {
                !std::ptr::eq(answered, request)
                    && request.is_answered_like(answered, rule.hamming)
                    && (!rule.pairs || request.is_similar(answered, rule.hamming))
            });
            // A short prompt is no evidence alone.
            tally.prompts += u32::from(is_similar && (!latest.is_short || is_repeated || is_answered_alike));
            tally.calls += u32::from(is_repeated && (is_similar || !rule.pairs));
            tally.answers += u32::from(is_answered_alike);
        }
        tally
    }

    fn finding(&self, latest: &Request, tally: Tally, score: f64, rule: &ScoreRule) -> Finding {
        let alike = self.requests.iter().filter(|request| request.is_similar(latest, rule.hamming));
        let steps: Vec<u32> = alike.map(|request| request.step).chain([latest.step]).collect();
        let Tally { prompts, answers, calls } = tally;
        Finding {
            detector: Detector::Score,
            mode: rule.common.mode,
            loop_type: "similar_requests".into(),
            confidence: (1.0 - rule.threshold / (2.0 * score)).clamp(0.0, 1.0),
            score,
            count: prompts.max(answers).max(calls),
            proof: Proof {
                summary: format!(
                    "Loop score {score:.1}: {prompts} similar prompts, {answers} similar answers, {calls} repeated tool calls"
                ),
                compared: "prompts, answers and calls of the agent".into(),
                threshold: rule.threshold,
                value: score,
                window: rule.common.window.describe("requests"),
                steps: ProofStep::all_alike(&steps, "near"),
            },
        }
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.requests.capacity() * size_of::<Request>()
    }
}

impl Request {
    fn new(
        run: u64,
        step: u32,
        at: Timestamp,
        prompt: Option<&Prompt<'_>>,
        before: Option<&Request>,
    ) -> Option<Request> {
        let Some(prompt) = prompt else {
            let (_, asked) = before?.answer.unwrap_or_default();
            return Some(Request { at, step, asked, answer: None, ..*before? });
        };
        // Where the provider keeps the history, the calls are those of the answer before.
        let asked = match prompt.calls {
            0 if prompt.is_results => before.and_then(|before| before.answer).map_or(0, |(_, calls)| calls),
            calls => calls,
        };
        Some(Request {
            run,
            at,
            prompt: similarity_hash(&prompt.text),
            asked,
            answer: None,
            step,
            is_results: prompt.is_results,
            is_short: prompt.is_short,
        })
    }

    /// Results are similar only as results of the same calls.
    fn is_similar(&self, other: &Request, bits: u32) -> bool {
        self.is_results == other.is_results
            && (!self.is_results || self.asked == other.asked)
            && hamming(self.prompt, other.prompt) < bits
    }

    fn is_answered_like(&self, other: &Request, bits: u32) -> bool {
        match (self.answer, other.answer) {
            (Some((text, calls)), Some((other_text, other_calls))) => {
                calls == other_calls && hamming(text, other_text) < bits
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
