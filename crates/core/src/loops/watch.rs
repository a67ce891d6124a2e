//! What detection keeps of a run and of an agent, and the two moments at which it looks: a request arrives, an answer
//! is over.

mod merge;
mod travel;

use super::attempts::Outcome;
use super::prompt::{Answer, Prompt, results_with_calls};
use super::score::ScoreWindow;
use super::seen_steps::SeenSteps;
use super::similar::Similar;
use super::trail::{Since, Trail, unbroken};
use super::velocity::Velocity;
use super::{
    Attempts, Common, Detector, Finding, Mode, PromptScope, Rules, RunKind, StepEvidence, Strikes, Tally, Turn, exact,
    oscillation, progress,
};
use crate::limits::RUN_PROMPTS;
use crate::money::NanoUsd;
use crate::time::Timestamp;
use crate::wire::Reply;

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its number in its run; 1 for the first.
    pub step: u32,
    /// When.
    pub now: Timestamp,
    /// A hash of the whole conversation that it carries; None where it carries none.
    pub end: Option<u64>,
    /// What is new in it.
    pub turn: &'a Turn<'a>,
    /// The caller named the run.
    pub is_declared: bool,
}

/// An answer that is over.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// The number of its request in its run.
    pub step: u32,
    /// When.
    pub now: Timestamp,
    /// The answer, as far as it came.
    pub reply: &'a Reply,
    /// It was a whole answer with a good status.
    pub is_answered: bool,
    /// What it cost, if that is known.
    pub cost: Option<NanoUsd>,
    /// Tokens it used.
    pub tokens: u64,
}

/// What the detectors saw in a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Those that tripped.
    pub findings: Vec<Finding>,
    /// How near `progress` is to its threshold, which is 1; absent where it had nothing to judge.
    pub level: Option<f32>,
    /// What `progress` saw, to be kept on record.
    pub evidence: Option<StepEvidence>,
}

/// The detectors' record of one run.
#[derive(Clone, Debug, Default)]
pub struct RunWatch {
    attempts: Attempts,
    progress: progress::State,
    prompts: PromptWatch,
    is_retry: bool,
    strikes: Strikes,
    /// How often the past was forgotten: what another node still knows of before is no evidence either.
    forgotten: u32,
    /// The steps that were heard of, where several nodes work on the run.
    shared: Option<SeenSteps>,
}

/// What `exact`, `similar` and `oscillation` keep of a run.
#[derive(Clone, Debug, Default)]
struct PromptWatch {
    trail: Trail,
    exact_since: Since,
    oscillation_since: Since,
    similar: Similar,
    /// Answers to compare are asked for.
    wants_answers: bool,
    wants_similar_answers: bool,
}

/// The detectors' record of one agent, over all its runs.
#[derive(Clone, Debug, Default)]
pub struct AgentWatch {
    score: ScoreWindow,
    tally: Tally,
    velocity: Velocity,
    /// How often `score` forgot.
    forgotten: u32,
}

impl RunWatch {
    /// Looks at a request before it is forwarded.
    pub fn arrive(&mut self, arrival: &Arrival<'_>, rules: &Rules) -> Look {
        let before = arrival.end.and_then(|end| self.attempts.arrive(arrival.step, end));
        // The same again while, or because, there is no answer: several at once, or a retry.
        self.is_retry = matches!(before, Some(Outcome::Open | Outcome::Failed));
        let mut look = Look::default();
        let mode = mode_for(&rules.progress.common, arrival);
        if mode != Mode::Off {
            let seen = self.progress.arrive(arrival, before, &rules.progress, self.shared.as_ref());
            look = Look { findings: seen.finding.into_iter().collect(), level: seen.level, evidence: seen.evidence };
        }
        if self.is_retry {
            self.prompts.trail.retry(arrival.step);
            self.prompts.similar.retry(arrival.step);
        } else {
            let is_waiting = self.progress.is_waiting();
            let found = self.prompts.arrive(arrival, rules, self.shared.as_ref());
            // Who sleeps and looks in turns, waits.
            let waits = |one: &Finding| is_waiting && one.detector == Detector::Oscillation && one.mode == mode;
            look.findings.extend(found.into_iter().filter(|one| !waits(one)));
        }
        look
    }

    /// Looks at an answer.
    pub fn depart(&mut self, departure: &Departure<'_>) {
        self.attempts.depart(departure.step, departure.is_answered);
        let text_hash = self.progress.depart(departure);
        if departure.is_answered {
            self.prompts.depart(departure, text_hash);
        }
    }

    /// Bytes that are kept of the run.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<RunWatch>() + self.bytes_of_parts().iter().map(|(_, bytes)| bytes).sum::<usize>()
    }

    /// Bytes that the parts of the record keep beside it.
    #[must_use]
    pub fn bytes_of_parts(&self) -> [(&'static str, usize); 4] {
        [
            ("progress", self.progress.heap_bytes()),
            ("prompts", self.prompts.heap_bytes()),
            ("attempts", self.attempts.heap_bytes()),
            ("strikes", self.strikes.heap_bytes()),
        ]
    }

    /// Whether the request that arrived last was a retry or one of several at once, and thus no evidence. To be handed
    /// to [`AgentWatch::arrive`].
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.is_retry
    }

    /// A request that arrived was refused: the same one again is not a retry, and is judged anew.
    pub fn refused(&mut self, step: u32) {
        self.attempts.withdraw(step);
    }

    /// Several nodes work on the run, and this one has this step. To be told of every step as it is opened, whether it
    /// will be looked at or not: steps that nobody tells of are under way elsewhere.
    pub fn share(&mut self, step: u32) {
        self.shared.get_or_insert_default().note(step);
    }

    /// How often the detectors struck.
    pub fn strikes(&mut self) -> &mut Strikes {
        &mut self.strikes
    }

    /// Forgets the past: what lies before is no longer evidence.
    pub fn forget(&mut self) {
        let (forgotten, shared) = (self.forgotten.saturating_add(1), self.shared);
        *self = RunWatch { forgotten, shared, ..RunWatch::default() };
    }
}

impl PromptWatch {
    fn arrive(&mut self, arrival: &Arrival<'_>, rules: &Rules, shared: Option<&SeenSteps>) -> Vec<Finding> {
        let exact_mode = mode_for(&rules.exact.common, arrival);
        let oscillation_mode = mode_for(&rules.oscillation.common, arrival);
        let similar_mode = mode_for(&rules.similar.common, arrival);
        self.trail.set_scope(rules.prompt_scope);
        self.exact_since.set_mode(exact_mode, &self.trail);
        self.oscillation_since.set_mode(oscillation_mode, &self.trail);
        self.similar.set_mode(similar_mode);
        self.wants_answers = exact_mode != Mode::Off;
        self.wants_similar_answers = similar_mode != Mode::Off && rules.similar.needs_second_signal;
        if [exact_mode, oscillation_mode, similar_mode] == [Mode::Off; 3] {
            return Vec::new();
        }

        let prompt = Prompt::read(arrival.turn, rules.prompt_scope);
        if prompt.is_none() && rules.prompt_scope == PromptScope::Turn {
            return Vec::new();
        }
        let mut findings = Vec::new();
        let most = prompts_needed(rules, exact_mode);
        if let Some(steps) = self.trail.push(arrival.step, arrival.now, prompt.as_ref(), most) {
            if exact_mode != Mode::Off
                && let Some((latest, earlier)) = self.trail.seen(&steps, &self.exact_since)
            {
                // Whoever counts them wherever they stand does not mind what lies between.
                let earlier = if rules.exact.counts_window { earlier } else { unbroken(latest, earlier, shared) };
                findings.extend(exact::look(latest, earlier, &rules.exact));
            }
            if oscillation_mode != Mode::Off
                && let Some((latest, earlier)) = self.trail.seen(&steps, &self.oscillation_since)
            {
                let earlier = unbroken(latest, earlier, shared);
                findings.extend(oscillation::look(latest, earlier, arrival.is_declared, &rules.oscillation));
            }
        }
        if similar_mode != Mode::Off {
            if self.wants_similar_answers {
                self.similar.note_results(results_with_calls(arrival.turn));
            }
            if !prompt.as_ref().is_some_and(|prompt| prompt.is_results) {
                findings.extend(self.similar.look(arrival.step, arrival.now, prompt.as_ref(), &rules.similar));
            }
        }
        findings
    }

    /// `text_hash` is that of the trimmed text, where it is known.
    fn depart(&mut self, departure: &Departure<'_>, text_hash: Option<u64>) {
        if !self.wants_answers && !self.wants_similar_answers {
            return;
        }
        let answer = Answer::of_hashed(departure.reply, text_hash);
        if self.wants_answers {
            self.trail.answer(departure.step, &answer);
        }
        if self.wants_similar_answers {
            self.similar.answer(departure.step, &departure.reply.text, &answer);
        }
    }

    /// Bytes kept beside the value itself.
    fn heap_bytes(&self) -> usize {
        self.trail.heap_bytes() + self.similar.heap_bytes()
    }
}

impl AgentWatch {
    /// Looks at a request before it is forwarded. `run` is a number that tells the agent's runs apart; `is_retry` is
    /// what [`RunWatch::is_retry`] says of the same request.
    pub fn arrive(&mut self, run: u64, is_retry: bool, arrival: &Arrival<'_>, rules: &Rules) -> Vec<Finding> {
        let mut findings = Vec::new();
        if is_retry {
            self.score.retry(run, arrival.step);
        }
        // An agent has runs of both kinds: those that are not watched must not empty the window.
        self.score.set_mode(rules.score.common.mode, rules.prompt_scope);
        if mode_for(&rules.score.common, arrival) != Mode::Off && !is_retry {
            let prompt = Prompt::read(arrival.turn, rules.prompt_scope);
            if prompt.is_some() || rules.prompt_scope == PromptScope::LastUserMessage {
                let (tally, finding) = self.score.look(run, arrival.step, arrival.now, prompt.as_ref(), &rules.score);
                self.tally = tally;
                findings.extend(finding);
            }
        }
        self.velocity.set_mode(rules.velocity.common.mode);
        if mode_for(&rules.velocity.common, arrival) != Mode::Off {
            findings.extend(self.velocity.look(arrival.now, arrival.step, &rules.velocity));
        }
        findings
    }

    /// Looks at an answer.
    pub fn depart(&mut self, run: u64, departure: &Departure<'_>, rules: &Rules) {
        if departure.is_answered && rules.score.common.mode != Mode::Off {
            let answer = Answer::of_reply(departure.reply);
            self.score.answer(run, departure.step, &departure.reply.text, &answer);
        }
        if rules.velocity.common.mode != Mode::Off {
            self.velocity.add(departure.now, departure.tokens, departure.cost, &rules.velocity);
        }
    }

    /// Forgets the requests that `score` weighs; what the agent usually uses stays known.
    pub fn forget(&mut self) {
        self.score = ScoreWindow::default();
        self.tally = Tally::default();
        self.forgotten = self.forgotten.saturating_add(1);
    }

    /// How often the latest request that `score` weighed resembles those before it: to be shown beside the threshold.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// How many prompts `exact` and `oscillation` look back on.
fn prompts_needed(rules: &Rules, exact_mode: Mode) -> usize {
    let (exact, oscillation) = (&rules.exact, &rules.oscillation);
    if exact_mode != Mode::Off && exact.counts_window {
        return RUN_PROMPTS;
    }
    let round = oscillation.longest_period.saturating_mul(oscillation.laps.max(oscillation.result_laps).max(2));
    round.max(exact.prompts).max(exact.answers.saturating_add(1)) as usize
}

/// The mode of a detector for a request: off where it does not watch such runs.
fn mode_for(common: &Common, arrival: &Arrival<'_>) -> Mode {
    if common.runs == RunKind::Declared && !arrival.is_declared { Mode::Off } else { common.mode }
}

#[cfg(test)]
mod tests;
