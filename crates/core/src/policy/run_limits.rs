//! How many steps a run may take, and how long.

use serde_json::Value;

use super::stop::{Consequence, Stop};
use crate::id::RunId;
use crate::loops::{Mode, Proof, RunKind};
use crate::wire::{Reason, Refusal};

/// The limits of an agent's runs. Steps and time of a run cover the runs that are a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Whether they are kept.
    pub mode: Mode,
    /// Most steps; 0 is no limit.
    pub max_steps: u32,
    /// Longest time from the first call to the last that may begin; 0 is no limit.
    pub timeout_seconds: u32,
    /// Which runs have them.
    pub applies_to: RunKind,
}

/// A run as its limits see it. What lies before a resume does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// The run.
    pub run: RunId,
    /// Steps of the run and of those that are a part of it, this one included.
    pub steps: u32,
    /// Since its first call.
    pub age_ms: u64,
    /// The caller named it.
    pub is_declared: bool,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits { mode: Mode::Enforce, max_steps: 30, timeout_seconds: 120, applies_to: RunKind::Declared }
    }
}

impl RunLimits {
    /// No limits.
    pub const NONE: RunLimits =
        RunLimits { mode: Mode::Off, max_steps: 0, timeout_seconds: 0, applies_to: RunKind::All };

    /// Stops a call that its run, or one above it, has no room for.
    pub(super) fn check(&self, runs: &[RunProgress]) -> Result<(), Stop> {
        runs.iter().try_for_each(|run| self.check_one(run))
    }

    fn check_one(&self, run: &RunProgress) -> Result<(), Stop> {
        if self.applies_to == RunKind::Declared && !run.is_declared {
            return Ok(());
        }
        if self.max_steps > 0 && run.steps > self.max_steps {
            let steps = if self.max_steps == 1 { "only step".to_owned() } else { format!("{} steps", self.max_steps) };
            let what = format!("run `{}` has taken its {steps}", run.run);
            return Err(stop(run, "max_steps", "step_limit", what, self.max_steps, f64::from(run.steps)));
        }
        let age_seconds = run.age_ms as f64 / 1000.0;
        if self.timeout_seconds > 0 && age_seconds > f64::from(self.timeout_seconds) {
            let what = format!("run `{}` has had its {} seconds", run.run, self.timeout_seconds);
            return Err(stop(run, "timeout_seconds", "timeout", what, self.timeout_seconds, age_seconds));
        }
        Ok(())
    }
}

fn stop(run: &RunProgress, key: &str, reason: &str, what: String, limit: u32, value: f64) -> Stop {
    let proof = Proof {
        summary: what.clone(),
        compared: key.to_owned(),
        threshold: f64::from(limit),
        value,
        ..Proof::default()
    };
    let proof = serde_json::to_value(proof).unwrap_or(Value::Null);
    let message = format!(
        "{what} and was stopped; begin a new run, resume this one on the dashboard or with `sprag resume`, or raise \
         `run_limits.{key}`"
    );
    let refusal = Refusal::new(Reason::RunLimitExceeded, message)
        .with("exceeded_limit", key)
        .with("limit", limit)
        .with("current", if value.fract() == 0.0 { Value::from(value as u64) } else { Value::from(value) })
        .with("kill_reason", reason)
        .with("killed_run", run.run.as_str())
        .with("proof", proof.clone());
    Stop::with(refusal, Consequence::KillRun { run: run.run.clone(), reason: reason.to_owned(), proof: Some(proof) })
}
