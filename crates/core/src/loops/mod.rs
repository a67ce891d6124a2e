//! Loop detection: what a run adds at each step, and whether it still adds anything.
//!
//! A request is read once as a [`Turn`]: what is new since the model last spoke. [`RunWatch`] keeps a bounded record of
//! the steps of one run and [`AgentWatch`] of one agent; both take values and give [`Finding`]s. What follows from a
//! finding is policy and not decided here.

mod attempts;
mod bounded;
mod canonical;
mod chant;
mod decide;
mod evidence;
mod exact;
mod normalize;
mod oscillation;
mod packed;
mod presets;
mod progress;
mod prompt;
mod repeat;
mod rules;
mod score;
mod seen_steps;
mod simhash;
mod similar;
mod trail;
mod turn;
mod velocity;
mod verdict;
mod watch;
mod window;
mod words;

pub use attempts::Attempts;
pub use chant::Chant;
pub use decide::{Decision, Strikes, Verdict, decide};
pub use normalize::normalize;
pub use progress::{Picture, RecordedStep, RuleStop, StepEvidence, StepFacts, Trial, similarity, try_rule};
pub use repeat::{RepeatCounters, fingerprint};
pub use rules::{
    ChantRule, Common, ExactRule, OscillationRule, Preset, ProgressRule, PromptScope, RepeatRule, Rules, RunKind,
    ScoreRule, SimilarRule, VelocityRule, Window, WindowMode,
};
pub use score::Tally;
pub use simhash::{hamming, simhash, similarity_hash};
pub use turn::{KnownHash, Said, ToolResult, ToolUse, Turn, read_turn};
pub use verdict::{Action, Detector, Finding, Mode, Proof, ProofStep};
pub use watch::{AgentWatch, Arrival, Departure, Look, RunWatch};
