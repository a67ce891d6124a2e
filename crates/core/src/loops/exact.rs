//! `exact`: the same prompt again right after itself, or the same answer again and again.
//!
//! Answers count from the requests before, since an answer that is on its way cannot be refused. Short answers ("yes",
//! a bare JSON object) count only where the same was asked. Tool results and answers with tool calls are left to
//! `progress`, which knows whether anything new came of them.

use super::trail::Footprint;
use super::{Detector, ExactRule, Finding, Proof, ProofStep};

/// Looks at the latest prompt beside the earlier ones, oldest first.
pub(super) fn look(latest: &Footprint, earlier: &[Footprint], rule: &ExactRule) -> Option<Finding> {
    let earlier = rule.common.window.last_of(earlier);
    same_prompts(latest, earlier, rule).or_else(|| same_answers(latest, earlier, rule))
}

fn same_prompts(latest: &Footprint, earlier: &[Footprint], rule: &ExactRule) -> Option<Finding> {
    if latest.is_results || latest.is_short {
        return None;
    }
    let mut steps = vec![latest.step];
    let mut hit = latest.at;
    for before in earlier.iter().rev() {
        if before.is_same(latest) && rule.common.window.reaches(latest.at, hit, before.at) {
            steps.push(before.step);
            hit = before.at;
        } else if !rule.counts_window {
            break;
        }
    }
    finding(steps, rule.prompts, "prompt", rule)
}

fn same_answers(latest: &Footprint, earlier: &[Footprint], rule: &ExactRule) -> Option<Finding> {
    let mut answered = earlier.iter().rev().filter(|before| before.answer != 0);
    let last = answered.next()?;
    let mut steps = vec![last.step];
    let mut hit = last.at;
    for before in answered {
        let is_same = before.answer == last.answer && (!last.is_short_answer || before.is_same(last));
        if is_same && rule.common.window.reaches(latest.at, hit, before.at) {
            steps.push(before.step);
            hit = before.at;
        } else if !rule.counts_window {
            break;
        }
    }
    finding(steps, rule.answers, "response", rule)
}

/// `steps` come newest first.
fn finding(mut steps: Vec<u32>, threshold: u32, what: &str, rule: &ExactRule) -> Option<Finding> {
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if count < threshold.max(2) {
        return None;
    }
    steps.reverse();
    Some(Finding {
        detector: Detector::Exact,
        mode: rule.common.mode,
        loop_type: format!("exact_{what}"),
        confidence: 1.0,
        score: f64::from(count),
        count,
        proof: Proof {
            summary: format!("Exact {what} repetition detected"),
            compared: if what == "prompt" { "prompt" } else { "answer" }.into(),
            threshold: f64::from(threshold),
            value: f64::from(count),
            window: rule.common.window.describe("requests"),
            steps: ProofStep::all_alike(&steps, "exact"),
        },
    })
}
