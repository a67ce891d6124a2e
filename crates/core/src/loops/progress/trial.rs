//! What would have happened to a run under other rules.

use super::evidence::RecordedStep;
use super::state::State;
use crate::loops::{Finding, ProgressRule};

/// How a run would have gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Where it would have been stopped; None where it would not.
    pub stop: Option<RuleStop>,
    /// The level at each request that was looked at, up to the stop.
    pub levels: Vec<(u32, f32)>,
}

/// Where a rule stops a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleStop {
    /// The request that would have been refused.
    pub step: u32,
    /// Why.
    pub finding: Finding,
}

/// Judges the recorded requests of a run, oldest first, by a rule: the detector itself looks at them again. Requests
/// without evidence are passed over, and nothing is known of what a run that was stopped would have done next.
#[must_use]
pub fn try_rule(recorded: &[RecordedStep], rule: &ProgressRule) -> Trial {
    let mut state = State::default();
    let mut trial = Trial::default();
    for RecordedStep { request, at, evidence } in recorded {
        let Some((mut observation, name)) = evidence.unpack(*request, *at) else { continue };
        if let Some(step) = &mut observation.step {
            step.tool_name = name.and_then(|name| state.place_tool(name));
        }
        let seen = state.weigh(&mut observation, *request, rule);
        trial.levels.extend(seen.level.map(|level| (*request, level)));
        if let Some(finding) = seen.finding {
            trial.stop = Some(RuleStop { step: *request, finding });
            break;
        }
    }
    trial
}
