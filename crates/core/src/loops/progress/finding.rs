//! The words and steps of a proof.

use super::judge::{Cause, Stuck};
use super::tool_names::ToolNames;
use super::{Kind, Step};
use crate::limits::PROOF_STEPS;
use crate::loops::{Detector, Finding, ProgressRule, Proof, ProofStep};

/// Steps without anything new.
pub(super) fn stuck(found: &Stuck, steps: &[&Step], tool_names: &ToolNames, rule: &ProgressRule) -> Finding {
    let evidence = &steps[steps.len().saturating_sub(found.steps)..];
    let name = |step: &Step| step.tool_name.and_then(|at| tool_names.get(at));
    let (first, last) = (evidence.first().map_or(0, |step| step.number), evidence.last().map_or(0, |step| step.number));
    let times = found.count + 1;
    let last_step = evidence.last();
    let tool = last_step.and_then(|step| name(step));
    let has_failed = last_step.is_some_and(|step| step.outcome.failure != 0);
    let came_back = if has_failed { "error" } else { "result" };
    let (loop_type, what) = match (found.cause, tool) {
        (Cause::Cycle(1), Some(tool)) => (
            "repeated_step",
            format!("`{tool}` was called {times} times with the same arguments and gave the same {came_back}"),
        ),
        (Cause::Cycle(1), None) => {
            ("same_answer", format!("the same answer was given {times} times and got the same reply"))
        }
        (Cause::Cycle(lag), _) => {
            ("cycle", format!("the same {lag} steps were repeated, {} steps in all", found.count))
        }
        (Cause::SameResult, _) if has_failed => {
            ("same_error", format!("{times} different steps in a row got the same error"))
        }
        (Cause::SameResult, _) => ("stalled", format!("{times} different steps in a row got the same result")),
        (Cause::Stall, _) => stalled(evidence, found.count),
    };
    let of_cause = |step: &Step| match found.cause {
        Cause::Stall => step.kind.as_str(),
        Cause::SameResult => "same_result",
        Cause::Cycle(_) if matches!(step.kind, Kind::Masked | Kind::Waiting) => step.kind.as_str(),
        Cause::Cycle(_) => "exact",
    };
    let proof_step = |step: &&Step| ProofStep {
        step: step.number,
        alike: of_cause(step).to_owned(),
        tools: name(step).map(str::to_owned).into_iter().collect(),
        action: short(step.action.exact),
        result: short(step.outcome.exact),
    };
    let skipped = evidence.len().saturating_sub(PROOF_STEPS);
    Finding {
        detector: Detector::Progress,
        mode: rule.common.mode,
        loop_type: loop_type.to_owned(),
        confidence: confidence(found),
        score: found.value,
        count: u32::try_from(found.count).unwrap_or(u32::MAX),
        proof: Proof {
            summary: format!("step {first} to {last}: {what}"),
            compared: "calls and results".to_owned(),
            threshold: found.threshold,
            value: found.value,
            window: window(rule),
            steps: evidence[skipped..].iter().map(proof_step).collect(),
        },
    }
}

/// One conversation asked again and again.
pub(super) fn asked_again(times: u32, step: u32, rule: &ProgressRule) -> Finding {
    let summary = format!("up to step {step}: the same conversation was answered and asked again {times} times");
    simple("same_answer", times, rule.asked_again, summary, "conversation", rule)
}

/// A history rewritten again and again.
pub(super) fn compacted(times: u32, step: u32, rule: &ProgressRule) -> Finding {
    let summary = format!("up to step {step}: the history was rewritten {times} times without new work in between");
    simple("compaction_churn", times, rule.compactions, summary, "beginning of the history", rule)
}

fn simple(
    loop_type: &str,
    times: u32,
    threshold: u32,
    summary: String,
    compared: &str,
    rule: &ProgressRule,
) -> Finding {
    let (value, threshold) = (f64::from(times), f64::from(threshold));
    Finding {
        detector: Detector::Progress,
        mode: rule.common.mode,
        loop_type: loop_type.to_owned(),
        confidence: 0.8,
        score: value,
        count: times,
        proof: Proof {
            summary,
            compared: compared.to_owned(),
            threshold,
            value,
            window: window(rule),
            steps: Vec::new(),
        },
    }
}

fn stalled(evidence: &[&Step], count: usize) -> (&'static str, String) {
    let share = |is: fn(Kind) -> bool| evidence.iter().filter(|step| is(step.kind)).count() * 2 >= count.max(1);
    let failed = evidence.iter().filter(|step| step.outcome.failure != 0).count();
    if failed * 3 >= evidence.len() * 2 {
        ("same_error", format!("{count} of {} steps failed as earlier ones did", evidence.len()))
    } else if share(|kind| matches!(kind, Kind::SmallTalk | Kind::Stale)) {
        ("same_answer", format!("{count} of {} answers said what had been said before", evidence.len()))
    } else {
        ("stalled", format!("{count} of {} steps resemble earlier ones and brought nothing new", evidence.len()))
    }
}

/// A repetition is sure; a resemblance is less so.
fn confidence(found: &Stuck) -> f64 {
    match found.cause {
        Cause::Cycle(_) => 0.98,
        Cause::SameResult => 0.95,
        Cause::Stall => 0.85,
    }
}

fn window(rule: &ProgressRule) -> String {
    format!("last {} steps", rule.common.window.requests)
}

fn short(hash: u32) -> String {
    format!("{hash:08x}")
}
