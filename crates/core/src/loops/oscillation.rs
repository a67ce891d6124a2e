//! `oscillation`: a few prompts in turns, A→B→A→B, or longer rounds as many times.
//!
//! Turns of tool results take part together with the calls that they answer: an agent that alternates between two
//! tools and gets something new each time does not oscillate. Rounds with such turns have a count of their own: agents
//! that look at two things twice and then go on are common, people who ask for two things in turns are not.

use super::trail::Footprint;
use super::{Detector, Finding, OscillationRule, Proof, ProofStep, Window, WindowMode};

/// Looks at the latest prompt beside the earlier ones, oldest first.
///
/// Turns of tool results, and runs that the caller did not name, get another lap: a working agent may go back to where
/// it was, and a person may ask two things again.
pub(super) fn look(
    latest: &Footprint,
    earlier: &[Footprint],
    is_declared: bool,
    rule: &OscillationRule,
) -> Option<Finding> {
    let earlier = rule.common.window.last_of(earlier);
    let most = earlier.len() + 1;
    (2..=(rule.longest_period as usize).min(most / 2)).find_map(|period| {
        let last_lap = &earlier[most - period..];
        let is_weak = !is_declared || latest.is_results || last_lap.iter().any(|f| f.is_results);
        let laps = if is_weak { rule.result_laps } else { rule.laps };
        let mut rounds = earlier[most.checked_sub(period * laps.max(2) as usize)?..].to_vec();
        rounds.push(*latest);
        let is_loop = goes_round(&rounds, period) && is_in_time(&rounds, &rule.common.window);
        is_loop.then(|| finding(&rounds, period, rule))
    })
}

fn goes_round(rounds: &[Footprint], period: usize) -> bool {
    rounds.iter().skip(period).zip(rounds).all(|(after, before)| after.is_same(before))
        && rounds[1..period].iter().any(|other| !other.is_same(&rounds[0]))
        && rounds[..period].iter().any(|prompt| !prompt.is_short)
}

fn is_in_time(rounds: &[Footprint], window: &Window) -> bool {
    let [first, .., last] = rounds else { return false };
    match window.mode {
        WindowMode::Refresh => rounds.windows(2).all(|pair| window.reaches(pair[1].at, pair[1].at, pair[0].at)),
        WindowMode::Sliding | WindowMode::Fixed => window.reaches(last.at, last.at, first.at),
    }
}

fn finding(rounds: &[Footprint], period: usize, rule: &OscillationRule) -> Finding {
    let steps: Vec<u32> = rounds.iter().map(|footprint| footprint.step).collect();
    let laps = rounds.len() / period;
    let of_results = rounds.iter().any(|footprint| footprint.is_results);
    Finding {
        detector: Detector::Oscillation,
        mode: rule.common.mode,
        loop_type: "oscillation".into(),
        confidence: 0.95,
        score: laps as f64,
        count: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
        proof: Proof {
            summary: format!("Oscillation detected: {period} prompts in turns, {laps} times"),
            compared: if of_results { "calls and results" } else { "prompt" }.into(),
            threshold: laps as f64,
            value: laps as f64,
            window: rule.common.window.describe("requests"),
            steps: ProofStep::all_alike(&steps, "exact"),
        },
    }
}
