//! Repeated work without new information.
//!
//! A step is what the model asked for and what came back. Each finished step is compared with the earlier ones of its
//! conversation, and the run is stuck when
//! - the last steps repeat the ones before them, once or in a cycle ([`cycle`]);
//! - the same failure, reply or data came back again and again, whatever was asked for;
//! - too many of the last steps resemble earlier ones ([`Kind`]), with too little that is new in between;
//! - one conversation was asked again and again though it was answered;
//! - the history was rewritten again and again without new work in between.
//!
//! A repeated attempt at a request that was not answered is no evidence. Nor is a result that grows or says that
//! something is under way: somebody waits. Nor is the same short word of success to different calls, nor a report that
//! counts fewer failures than before: somebody works.

mod evidence;
mod finding;
mod judge;
mod log;
mod picture;
mod state;
mod tool_names;
mod trial;

pub use self::evidence::{RecordedStep, StepEvidence, StepFacts};
pub use self::picture::{Picture, similarity};
pub(crate) use self::state::State;
pub use self::trial::{RuleStop, Trial, try_rule};

use super::Finding;
use super::evidence::{Action, Outcome};
use crate::limits::LEVEL;
use crate::time::Timestamp;

/// What the detector saw in one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) finding: Option<Finding>,
    /// The share of its threshold that the account nearest to it has reached; absent where there was nothing to judge.
    pub(crate) level: Option<f32>,
    pub(crate) evidence: Option<StepEvidence>,
}

impl Seen {
    fn new(finding: Option<Finding>, level: f64) -> Seen {
        // Thresholds may be as low as somebody likes.
        let level = if level.is_finite() { level.min(LEVEL) } else { LEVEL };
        Seen { finding, level: Some(level as f32), evidence: None }
    }
}

/// One finished step.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The number of the request whose answer made the action.
    number: u32,
    /// When what came back was seen.
    at: Timestamp,
    /// Its conversation.
    thread: u32,
    action: Action,
    outcome: Outcome,
    kind: Kind,
    /// The place of the tool's name.
    tool_name: Option<u8>,
    /// Its words are known; those of older steps are not kept.
    has_words: bool,
}

impl Step {
    /// Something is under way, or the agent lets time pass on purpose.
    fn is_waiting(&self) -> bool {
        self.outcome.is_waiting || self.action.is_wait && self.outcome.failure == 0
    }
}

/// How a step resembles the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Not at all.
    New,
    /// Something is under way.
    Waiting,
    /// The same action with the same result.
    Exact,
    /// The same, but for digits.
    Masked,
    /// A failure of the same kind, or the same result to something else.
    SameError,
    /// Nearly the same action with nearly the same result.
    Near,
    /// The same action, and only words that were said before came back.
    Stale,
    /// Words on both sides that were said before.
    SmallTalk,
}

impl Kind {
    /// In the order of their numbers.
    const ALL: [Kind; 8] = [
        Kind::New,
        Kind::Waiting,
        Kind::Exact,
        Kind::Masked,
        Kind::SameError,
        Kind::Near,
        Kind::Stale,
        Kind::SmallTalk,
    ];

    /// What a step of this kind adds to the account of steps that bring nothing new. A plain repetition adds little:
    /// it is counted as such, and going back to something once is no fault.
    fn weight(self) -> f64 {
        match self {
            Kind::New | Kind::Waiting => 0.0,
            Kind::Exact => 0.5,
            Kind::SameError | Kind::Stale => 0.75,
            Kind::Near => 1.0,
            Kind::SmallTalk => 1.5,
            Kind::Masked => 2.25,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Kind::New => "new",
            Kind::Waiting => "waiting",
            Kind::Exact => "exact",
            Kind::Masked => "masked",
            Kind::SameError => "same_error",
            Kind::Near => "near",
            Kind::Stale => "stale",
            Kind::SmallTalk => "small_talk",
        }
    }
}

#[cfg(test)]
mod tests;
