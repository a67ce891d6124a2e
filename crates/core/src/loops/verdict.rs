//! What a detector says, and the proof that it rests on.

use serde::{Deserialize, Serialize};

use crate::limits::{PROOF_STEPS, THROTTLE_MS};

/// What each repetition adds to the wait.
const THROTTLE_STEP_MS: u64 = 100;

/// A way to see that a run is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Detector {
    /// Repeated work without new information.
    Progress,
    /// The same prompt, or the same answer, again.
    Exact,
    /// Nearly the same prompt again.
    Similar,
    /// A few prompts in turns.
    Oscillation,
    /// The weighted sum of similar prompts, similar answers and repeated calls of an agent.
    Score,
    /// The same request, byte for byte.
    Repeat,
    /// One answer that repeats itself.
    Chant,
    /// Money or tokens per minute far above the usual.
    Velocity,
}

impl Detector {
    /// Every detector.
    pub const ALL: [Detector; 8] = [
        Detector::Progress,
        Detector::Exact,
        Detector::Similar,
        Detector::Oscillation,
        Detector::Score,
        Detector::Repeat,
        Detector::Chant,
        Detector::Velocity,
    ];

    /// The name in configuration, events and errors.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Detector::Progress => "progress",
            Detector::Exact => "exact",
            Detector::Similar => "similar",
            Detector::Oscillation => "oscillation",
            Detector::Score => "score",
            Detector::Repeat => "repeat",
            Detector::Chant => "chant",
            Detector::Velocity => "velocity",
        }
    }
}

/// Whether a detector runs, and whether anything follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Mode {
    /// It does not run.
    #[default]
    Off,
    /// It runs on a state of its own and changes nothing.
    Shadow,
    /// Its action is taken.
    Enforce,
}

/// What follows from a finding; the later, the stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LoopAction))]
pub enum Action {
    /// The step is flagged.
    Warn,
    /// The model is told what it repeats.
    Nudge,
    /// The request waits.
    Throttle,
    /// This request is refused.
    Reject,
    /// The run is stopped until a person approves.
    Pause,
    /// The run is stopped.
    KillRun,
    /// The agent is set inactive.
    DeactivateAgent,
}

impl Action {
    /// The name in configuration and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Warn => "warn",
            Action::Nudge => "nudge",
            Action::Throttle => "throttle",
            Action::Reject => "reject",
            Action::Pause => "pause",
            Action::KillRun => "kill_run",
            Action::DeactivateAgent => "deactivate_agent",
        }
    }

    /// Whether the request is refused.
    #[must_use]
    pub fn stops(self) -> bool {
        self >= Action::Reject
    }
}

/// A detector that tripped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Which one.
    pub detector: Detector,
    /// Its mode at that time: shadow or enforce.
    pub mode: Mode,
    /// The kind of loop: `repeated_step`, `cycle`, `same_error`, `exact_prompt`, `oscillation` and so on.
    pub loop_type: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The value that reached the threshold: a count, or a score.
    pub score: f64,
    /// How often it happened: what a throttle multiplies.
    pub count: u32,
    /// What it rests on.
    pub proof: Proof,
}

impl Finding {
    /// The steps of the run that the proof shows to repeat each other: the same call with the same result, the same
    /// prompt, or the same result to whatever was asked. Resemblance is not enough.
    #[must_use]
    pub fn repeated_steps(&self) -> Vec<u32> {
        let is_of_run = matches!(self.detector, Detector::Progress | Detector::Exact | Detector::Oscillation);
        let is_repeat = |step: &&ProofStep| matches!(step.alike.as_str(), "exact" | "masked" | "same_result");
        let repeated = self.proof.steps.iter().filter(|_| is_of_run).filter(is_repeat);
        repeated.map(|step| step.step).collect()
    }

    /// How long a throttled request waits, in milliseconds.
    #[must_use]
    pub fn throttle_ms(&self) -> u64 {
        (u64::from(self.count) * THROTTLE_STEP_MS).min(THROTTLE_MS)
    }
}

/// The steps and values that a finding rests on: the same object in the error, the event, the alert and the page.
///
/// It holds no text of the run, only names of tools, numbers and hashes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Proof {
    /// One sentence for a person: what repeats, how often.
    pub summary: String,
    /// What was compared: `calls and results`, `prompt`, `answer`, …
    pub compared: String,
    /// What the value is held against.
    pub threshold: f64,
    /// The value found.
    pub value: f64,
    /// The window, in steps or seconds, as text: `last 24 steps`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub window: String,
    /// The steps that are alike, oldest first, bounded by [`crate::limits::PROOF_STEPS`].
    pub steps: Vec<ProofStep>,
}

/// One step of a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProofStep {
    /// Its number in the run, 1 for the first.
    pub step: u32,
    /// How it resembles the others: `exact`, `masked`, `near`, `same_error`, …
    pub alike: String,
    /// The tools that were called, where there were any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// A hash of what was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub action: String,
    /// A hash of what came back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
}

impl ProofStep {
    /// Steps that are alike in the same way; the oldest are left out where there are too many.
    #[must_use]
    pub fn all_alike(steps: &[u32], alike: &str) -> Vec<ProofStep> {
        let kept = &steps[steps.len().saturating_sub(PROOF_STEPS)..];
        kept.iter().map(|step| ProofStep { step: *step, alike: alike.into(), ..ProofStep::default() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttle_waits_longer_each_time_up_to_its_bound() {
        let wait = |count| {
            let (mode, loop_type, proof) = (Mode::Enforce, String::new(), Proof::default());
            Finding { detector: Detector::Repeat, mode, loop_type, confidence: 1.0, score: 0.0, count, proof }
                .throttle_ms()
        };
        assert_eq!([6, 300, 301, u32::MAX].map(wait), [600, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn a_proof_names_a_bounded_number_of_steps() {
        let steps: Vec<u32> = (1..=PROOF_STEPS as u32 + 1).collect();
        let first = |number: usize| ProofStep::all_alike(&steps[..number], "exact")[0].step;
        assert_eq!((first(PROOF_STEPS), first(PROOF_STEPS + 1)), (1, 2));
        assert_eq!(ProofStep::all_alike(&steps, "exact").len(), PROOF_STEPS);
    }
}
