//! Rules under one name, and what is wrong with rules that somebody wrote.

use super::{
    Action, ChantRule, Common, ExactRule, Mode, OscillationRule, Preset, ProgressRule, PromptScope, RepeatRule, Rules,
    RunKind, ScoreRule, SimilarRule, VelocityRule, Window, WindowMode,
};
use crate::limits::{REPEAT_COUNT, RUN_PROMPTS, SCORE_REQUESTS, SIMILAR_PROMPTS};

/// Fewest requests that `score` may look back on.
const FEWEST_SCORE_REQUESTS: u32 = 5;
/// Thresholds that `score` may have.
const SCORE_THRESHOLDS: std::ops::RangeInclusive<f64> = 1.0..=50.0;

impl Rules {
    /// The rules of a preset.
    #[must_use]
    pub fn preset(preset: Preset) -> Rules {
        match preset {
            Preset::Balanced => balanced(),
            Preset::Strict => strict(),
            Preset::Observe => observe(),
            Preset::Agentgazer => agentgazer(),
            Preset::Fairvisor => fairvisor(),
            Preset::Agentwall => agentwall(),
        }
    }

    /// What is wrong with the rules, one sentence each; empty where all is well.
    #[must_use]
    pub fn check(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut must = |holds: bool, problem: &str| {
            if !holds {
                problems.push(problem.to_owned());
            }
        };
        let Rules { exact, similar, oscillation, score, repeat, chant, velocity, progress, .. } = self;
        must(exact.prompts >= 2, "exact: prompts must be >= 2");
        must(exact.answers >= 2, "exact: answers must be >= 2");
        must(similar.threshold > 0.0 && similar.threshold < 1.0, "similar: threshold must be between 0 and 1");
        let most_similar = SIMILAR_PROMPTS as u32;
        must(
            (1..=most_similar).contains(&similar.common.window.requests),
            &format!("similar: window in requests must be 1 to {most_similar}"),
        );
        let laps = [oscillation.laps, oscillation.result_laps];
        must(laps.iter().all(|laps| *laps >= 2), "oscillation: laps and result_laps must be >= 2");
        must(oscillation.longest_period >= 2, "oscillation: longest_period must be >= 2");
        must(
            laps.iter().all(|laps| u64::from(oscillation.longest_period) * u64::from(*laps) <= RUN_PROMPTS as u64),
            &format!("oscillation: longest_period times laps must be at most {RUN_PROMPTS}"),
        );
        let most_scored = SCORE_REQUESTS as u32;
        must(
            (FEWEST_SCORE_REQUESTS..=most_scored).contains(&score.common.window.requests),
            &format!("score: window_size must be {FEWEST_SCORE_REQUESTS} to {most_scored}"),
        );
        must(SCORE_THRESHOLDS.contains(&score.threshold), "score: threshold must be 1 to 50");
        must((1..=64).contains(&score.hamming), "score: hamming must be 1 to 64");
        let weights = [score.prompt_weight, score.answer_weight, score.call_weight];
        must(weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0), "score: weights must not be negative");
        must(repeat.threshold >= 2, "repeat: threshold_identical_requests must be >= 2");
        let Window { requests, seconds, mode } = repeat.common.window;
        must(requests > 0 || seconds > 0, "repeat: window_seconds is required");
        must(
            mode != WindowMode::Sliding || repeat.threshold as usize <= REPEAT_COUNT,
            &format!("repeat: a sliding window counts to {REPEAT_COUNT} at most"),
        );
        must(chant.repeats >= 2 && chant.bytes >= 1, "chant: repeats must be >= 2 and bytes >= 1");
        must(velocity.factor >= 0.0 && velocity.factor.is_finite(), "velocity: factor must not be negative");
        must(progress.repeats > 0.0 && progress.stall > 0.0, "progress: repeats and stall must be above 0");
        problems
    }
}

fn common(mode: Mode, action: Action) -> Common {
    Common { mode, action, ladder: Vec::new(), window: Window::default(), runs: RunKind::All }
}

fn requests(requests: u32) -> Window {
    Window { requests, ..Window::default() }
}

fn balanced() -> Rules {
    let declared = Common { runs: RunKind::Declared, ..common(Mode::Enforce, Action::KillRun) };
    Rules {
        prompt_scope: PromptScope::Turn,
        progress: ProgressRule::balanced(),
        exact: ExactRule { common: declared.clone(), prompts: 2, answers: 3, counts_window: false },
        similar: SimilarRule {
            common: Common { window: requests(3), ..declared },
            threshold: 0.85,
            needs_second_signal: true,
        },
        oscillation: OscillationRule {
            common: common(Mode::Enforce, Action::KillRun),
            longest_period: 8,
            laps: 2,
            result_laps: 3,
        },
        // The agent's Kill Switch turns it on.
        score: ScoreRule {
            common: Common { window: requests(20), ..common(Mode::Off, Action::DeactivateAgent) },
            threshold: 10.0,
            trips_at: false,
            hamming: 3,
            pairs: true,
            prompt_weight: 1.0,
            answer_weight: 2.0,
            call_weight: 1.5,
        },
        repeat: RepeatRule {
            common: Common {
                window: Window { requests: 0, seconds: 60, mode: WindowMode::Refresh },
                ..common(Mode::Off, Action::Reject)
            },
            threshold: 4,
        },
        chant: ChantRule { common: common(Mode::Enforce, Action::Reject), repeats: 20, bytes: 2000 },
        velocity: VelocityRule {
            common: common(Mode::Enforce, Action::Warn),
            factor: 10.0,
            max_tokens_per_minute: 0,
            max_nano_usd_per_minute: 0,
        },
    }
}

/// The documents' thresholds, for all runs, on what Sprag takes as the prompt.
fn strict() -> Rules {
    let mut rules = balanced();
    rules.progress = ProgressRule::strict();
    rules.exact.common.runs = RunKind::All;
    rules.similar.common.runs = RunKind::All;
    rules.similar.needs_second_signal = false;
    rules.oscillation.result_laps = 2;
    rules.score.common.mode = Mode::Enforce;
    rules.repeat.common.mode = Mode::Enforce;
    rules
}

fn observe() -> Rules {
    let mut rules = balanced();
    rules.every_common().into_iter().for_each(|common| common.mode = Mode::Shadow);
    rules
}

/// A base for one document to the letter: nothing runs, and the prompt is the last user message.
fn letter() -> Rules {
    let mut rules = balanced();
    rules.prompt_scope = PromptScope::LastUserMessage;
    for common in rules.every_common() {
        common.mode = Mode::Off;
        common.runs = RunKind::All;
    }
    rules
}

fn agentgazer() -> Rules {
    let mut rules = letter();
    rules.score.common.mode = Mode::Enforce;
    rules.score.pairs = false;
    rules
}

fn fairvisor() -> Rules {
    let mut rules = letter();
    rules.repeat.common.mode = Mode::Enforce;
    rules
}

fn agentwall() -> Rules {
    let mut rules = letter();
    rules.exact.common.mode = Mode::Enforce;
    rules.exact.counts_window = true;
    rules.exact.answers = 2;
    rules.similar.common.mode = Mode::Enforce;
    rules.similar.needs_second_signal = false;
    rules.oscillation.common.mode = Mode::Enforce;
    rules.oscillation.result_laps = 2;
    rules
}

impl Rules {
    /// What each detector has in common with the others.
    pub fn every_common(&mut self) -> [&mut Common; 8] {
        [
            &mut self.progress.common,
            &mut self.exact.common,
            &mut self.similar.common,
            &mut self.oscillation.common,
            &mut self.score.common,
            &mut self.repeat.common,
            &mut self.chant.common,
            &mut self.velocity.common,
        ]
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::preset(Preset::Balanced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Preset; 6] =
        [Preset::Balanced, Preset::Strict, Preset::Observe, Preset::Agentgazer, Preset::Fairvisor, Preset::Agentwall];

    #[test]
    fn every_preset_is_sound() {
        for preset in ALL {
            assert_eq!(Rules::preset(preset).check(), Vec::<String>::new(), "{preset:?}");
        }
    }

    #[test]
    fn each_document_runs_its_own_detectors_only() {
        let enforced = |preset| Rules::preset(preset).every_common().map(|common| common.mode == Mode::Enforce);
        assert_eq!(enforced(Preset::Balanced), [true, true, true, true, false, false, true, true]);
        assert_eq!(enforced(Preset::Strict), [true; 8]);
        assert_eq!(enforced(Preset::Agentgazer), [false, false, false, false, true, false, false, false]);
        assert_eq!(enforced(Preset::Fairvisor), [false, false, false, false, false, true, false, false]);
        assert_eq!(enforced(Preset::Agentwall), [false, true, true, true, false, false, false, false]);
        assert!(Rules::preset(Preset::Observe).every_common().iter().all(|common| common.mode == Mode::Shadow));
    }

    #[test]
    fn values_outside_their_bounds_are_named() {
        type Change = fn(&mut Rules);
        let wrong: [(Change, &str); 9] = [
            (|r| r.score.common.window.requests = 4, "score: window_size must be 5 to 100"),
            (|r| r.score.common.window.requests = 101, "score: window_size must be 5 to 100"),
            (|r| r.score.threshold = 0.99, "score: threshold must be 1 to 50"),
            (|r| r.score.threshold = 50.01, "score: threshold must be 1 to 50"),
            (|r| r.repeat.threshold = 1, "repeat: threshold_identical_requests must be >= 2"),
            (|r| r.repeat.common.window.seconds = 0, "repeat: window_seconds is required"),
            (|r| r.similar.common.window.requests = 5, "similar: window in requests must be 1 to 4"),
            (|r| r.oscillation.longest_period = 11, "oscillation: longest_period times laps must be at most 32"),
            (|r| r.score.prompt_weight = f64::NAN, "score: weights must not be negative"),
        ];
        for (change, problem) in wrong {
            let mut rules = Rules::default();
            change(&mut rules);
            assert_eq!(rules.check(), [problem]);
        }
        let right: [Change; 4] = [
            |r| r.score.common.window.requests = 5,
            |r| r.score.common.window.requests = 100,
            |r| r.score.threshold = 1.0,
            |r| r.score.threshold = 50.0,
        ];
        for change in right {
            let mut rules = Rules::default();
            change(&mut rules);
            assert!(rules.check().is_empty());
        }
    }
}
