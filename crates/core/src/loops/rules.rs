//! The rules of detection: what configuration sets, with nothing left optional.

use super::{Action, Mode};

/// A set of rules under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// The default.
    #[default]
    Balanced,
    /// The thresholds of the documents that Sprag comes from.
    Strict,
    /// Everything in shadow.
    Observe,
    /// A document to the letter: similarity score per agent.
    Agentgazer,
    /// A document to the letter: identical requests.
    Fairvisor,
    /// A document to the letter: exact, similar and alternating prompts.
    Agentwall,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 6] =
        [Preset::Balanced, Preset::Strict, Preset::Observe, Preset::Agentgazer, Preset::Fairvisor, Preset::Agentwall];

    /// The name in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Preset::Balanced => "balanced",
            Preset::Strict => "strict",
            Preset::Observe => "observe",
            Preset::Agentgazer => "agentgazer",
            Preset::Fairvisor => "fairvisor",
            Preset::Agentwall => "agentwall",
        }
    }
}

/// All detectors' rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// What "the prompt" is for `exact`, `similar`, `oscillation` and `score`.
    pub prompt_scope: PromptScope,
    /// `progress`
    pub progress: ProgressRule,
    /// `exact`
    pub exact: ExactRule,
    /// `similar`
    pub similar: SimilarRule,
    /// `oscillation`
    pub oscillation: OscillationRule,
    /// `score`
    pub score: ScoreRule,
    /// `repeat`
    pub repeat: RepeatRule,
    /// `chant`
    pub chant: ChantRule,
    /// `velocity`
    pub velocity: VelocityRule,
}

/// What all detectors have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// Whether it runs.
    pub mode: Mode,
    /// What follows, where there is no ladder.
    pub action: Action,
    /// What follows, strike by strike; the last stays. Empty: `action` at once.
    pub ladder: Vec<Action>,
    /// How far back it looks.
    pub window: Window,
    /// Which runs it watches.
    pub runs: RunKind,
}

/// How far back a detector looks: both bounds hold where both are set; 0 is no bound beyond the state's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Requests.
    pub requests: u32,
    /// Seconds.
    pub seconds: u32,
    /// How the seconds are counted.
    pub mode: WindowMode,
}

/// How a window in seconds is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowMode {
    /// What happened in the last seconds.
    #[default]
    Sliding,
    /// Each hit begins the seconds anew for what it counts.
    Refresh,
    /// Windows follow one another; each begins empty.
    Fixed,
}

/// Which runs a detector watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// All of them.
    #[default]
    All,
    /// Those that the caller named.
    Declared,
}

/// What "the prompt" is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PromptScope {
    /// What is new since the model last spoke.
    #[default]
    Turn,
    /// The last user message, also while tools work on it.
    LastUserMessage,
}

/// Repeated work without new information.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressRule {
    /// Mode, action; the window's requests are the steps that are looked at.
    pub common: Common,
    /// Repetitions of a step, or of the steps of a cycle, that are too many.
    pub repeats: f64,
    /// Repetitions beyond one lap that a long cycle needs.
    pub cycle_extra: f64,
    /// Repetitions that count as seen already where the whole answers are the same, word for word.
    pub same_answer_credit: f64,
    /// The same where nothing is said beside the call.
    pub bare_answer_credit: f64,
    /// The same result this often in a row is too often, whatever was asked for.
    pub same_results: f64,
    /// The account of steps without anything new that is too much.
    pub stall: f64,
    /// What a step with something new leaves of that account.
    pub stall_decay: f64,
    /// Share of common words from which texts are nearly the same.
    pub likeness: f64,
    /// One conversation answered and asked again this often, without another in between, is too often.
    pub asked_again: u32,
    /// Rewritings of the history without new work in between that are too many.
    pub compactions: u32,
}

impl ProgressRule {
    /// What the default preset uses.
    #[must_use]
    pub fn balanced() -> ProgressRule {
        ProgressRule {
            common: Common {
                mode: Mode::Enforce,
                action: Action::KillRun,
                ladder: Vec::new(),
                window: Window { requests: 24, seconds: 0, mode: WindowMode::Sliding },
                runs: RunKind::All,
            },
            repeats: 5.0,
            cycle_extra: 1.0,
            same_answer_credit: 2.0,
            bare_answer_credit: 1.0,
            same_results: 6.0,
            stall: 9.0,
            stall_decay: 0.7,
            likeness: 0.85,
            asked_again: 12,
            compactions: 4,
        }
    }

    /// Sooner, at the price of a healthy run now and then.
    #[must_use]
    pub fn strict() -> ProgressRule {
        ProgressRule {
            repeats: 3.0,
            cycle_extra: 0.0,
            same_answer_credit: 1.0,
            bare_answer_credit: 0.0,
            same_results: 4.0,
            stall: 7.0,
            asked_again: 6,
            compactions: 3,
            ..ProgressRule::balanced()
        }
    }
}

/// The same prompt or answer again.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactRule {
    /// Mode, action, window.
    pub common: Common,
    /// Occurrences of a prompt that are too many.
    pub prompts: u32,
    /// Occurrences of an answer that are too many.
    pub answers: u32,
    /// Any earlier occurrence in the window counts, not only those right before.
    pub counts_window: bool,
}

/// Nearly the same prompt again.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarRule {
    /// Mode, action, window.
    pub common: Common,
    /// Jaccard similarity of word sets above which prompts are similar.
    pub threshold: f64,
    /// Stops only together with a second signal: the same call, the same or a similar answer, no new result.
    pub needs_second_signal: bool,
}

/// Prompts in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct OscillationRule {
    /// Mode, action, window.
    pub common: Common,
    /// Longest period.
    pub longest_period: u32,
    /// Laps that are too many.
    pub laps: u32,
    /// The same where turns of tool results are among them, and in runs that the caller did not name.
    pub result_laps: u32,
}

/// The weighted sum of an agent's similar prompts and answers and repeated calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRule {
    /// Mode, action; the window's requests are N.
    pub common: Common,
    /// Trips above it; or at it, where `trips_at`.
    pub threshold: f64,
    /// A score equal to the threshold trips.
    pub trips_at: bool,
    /// Texts are similar below this Hamming distance.
    pub hamming: u32,
    /// Similar answers and repeated calls count only between similar prompts: the same answer to another question is
    /// no sign of a loop.
    pub pairs: bool,
    /// Weight of a similar prompt.
    pub prompt_weight: f64,
    /// Weight of a similar answer.
    pub answer_weight: f64,
    /// Weight of a repeated call.
    pub call_weight: f64,
}

/// The same request again.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatRule {
    /// Mode, action, window.
    pub common: Common,
    /// Identical requests that are too many.
    pub threshold: u32,
}

/// One answer that repeats itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ChantRule {
    /// Mode; the action is always to cut the stream. A window has no meaning inside one answer.
    pub common: Common,
    /// Repetitions of one passage that are too many.
    pub repeats: u32,
    /// Bytes that the repetition must cover.
    pub bytes: u32,
}

/// Money or tokens per minute.
#[derive(Clone, Debug, PartialEq)]
pub struct VelocityRule {
    /// Mode, action; the window's seconds are how long is measured, 0 is a minute.
    pub common: Common,
    /// How many times the agent's own baseline is too much.
    pub factor: f64,
    /// Tokens per minute that are too many; 0 is no cap.
    pub max_tokens_per_minute: u64,
    /// Nano-dollars per minute that are too many; 0 is no cap.
    pub max_nano_usd_per_minute: u64,
}
