//! What follows from findings: which action is taken, strike by strike.

use serde::{Deserialize, Serialize};

use super::packed::{Reader, bits, put_number};
use super::{Action, Common, Detector, Finding, Mode, Rules};
use crate::limits::STRIKE_STEPS;

/// How often each detector struck in a run. What a detector does may grow stronger with each strike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strikes {
    /// Few runs are ever struck.
    of: Option<Box<[Strike; Detector::ALL.len()]>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Strike {
    number: u16,
    /// The step of the last one.
    step: u32,
    /// The mode it was counted in: what shadow counted is nothing to the enforced rule.
    mode: Mode,
}

/// A finding and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// What follows, or in shadow mode would follow.
    pub action: Action,
    /// 1 for the first time in this run.
    pub strike: u16,
    /// When the rule's window will have passed, where it has one in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<u32>,
}

/// What all findings of one request come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The strongest verdict that is enforced.
    pub enforced: Option<Verdict>,
    /// The strongest verdict in shadow: nothing follows from it.
    pub shadow: Option<Verdict>,
}

impl Decision {
    /// Whether the request is refused.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.enforced.as_ref().is_some_and(|verdict| verdict.action.stops())
    }
}

/// Decides what follows from the findings of one request.
pub fn decide(findings: Vec<Finding>, rules: &Rules, strikes: &mut Strikes, step: u32) -> Decision {
    let mut decision = Decision::default();
    for finding in findings {
        let verdict = strikes.strike(finding, rules, step);
        let place = match verdict.finding.mode {
            Mode::Off => continue,
            Mode::Shadow => &mut decision.shadow,
            Mode::Enforce => &mut decision.enforced,
        };
        // Of two that are equally strong the first stays: it is the one that explains more.
        if place.as_ref().is_none_or(|known| known.action < verdict.action) {
            *place = Some(verdict);
        }
    }
    decision
}

impl Strikes {
    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.of.as_ref().map_or(0, |of| size_of_val(&**of))
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let of = self.of.as_deref().copied().unwrap_or_default();
        bytes.push(bits(of.map(|strike| strike != Strike::default())));
        for Strike { number, step, mode } in of.into_iter().filter(|strike| *strike != Strike::default()) {
            bytes.push(mode as u8);
            put_number(bytes, u64::from(number));
            put_number(bytes, u64::from(step));
        }
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Strikes> {
        let mut strikes = Strikes::default();
        let struck = reader.byte();
        for detector in (0..Detector::ALL.len()).filter(|detector| struck >> detector & 1 == 1) {
            let mode = reader.mode()?;
            let number = u16::try_from(reader.number()).ok()?;
            strikes.of.get_or_insert_default()[detector] = Strike { number, step: reader.small()?, mode };
        }
        Some(strikes)
    }

    /// What both have counted. What was counted twice is not added: how much of it both know of cannot be told.
    pub(super) fn merge(&self, theirs: &Strikes) -> Strikes {
        let mut merged = self.clone();
        for (place, other) in theirs.of.iter().flat_map(|of| of.iter().enumerate()) {
            let own = &mut merged.of.get_or_insert_default()[place];
            if own.mode == Mode::Off {
                *own = *other;
            } else if own.mode == other.mode {
                (own.number, own.step) = (own.number.max(other.number), own.step.max(other.step));
            }
        }
        merged
    }

    fn strike(&mut self, finding: Finding, rules: &Rules, step: u32) -> Verdict {
        let common = rules.common(finding.detector);
        let own = &mut self.of.get_or_insert_default()[finding.detector as usize];
        if own.mode != finding.mode {
            *own = Strike { mode: finding.mode, ..Strike::default() };
        }
        // A run that was warned gets a few steps to show that it heard.
        let is_new = own.number == 0 || step >= own.step.saturating_add(STRIKE_STEPS) || common.ladder.is_empty();
        if is_new {
            own.number = own.number.saturating_add(1);
            own.step = step;
        }
        let action = match common.ladder.as_slice() {
            [] => common.action,
            ladder => match ladder[usize::from(own.number - 1).min(ladder.len() - 1)] {
                rung if is_new || rung.stops() => rung,
                _ => Action::Warn,
            },
        };
        let seconds = common.window.seconds;
        Verdict { finding, action, strike: own.number, retry_seconds: (seconds > 0).then_some(seconds) }
    }
}

impl Rules {
    /// The same rules with the kill switch of an agent on: `score` watches it, and unless told otherwise deactivates it.
    ///
    /// Where `score` runs in shadow it stays there: a person who only wants to look has said so.
    #[must_use]
    pub fn with_kill_switch(&self, window_size: u32, threshold: f64) -> Rules {
        let mut rules = self.clone();
        if rules.score.common.mode == Mode::Off {
            rules.score.common.mode = Mode::Enforce;
        }
        rules.score.common.window.requests = window_size;
        rules.score.threshold = threshold;
        rules
    }

    /// Whether any detector watches agents as a whole.
    #[must_use]
    pub fn watches_agents(&self) -> bool {
        [&self.score.common, &self.velocity.common].iter().any(|common| common.mode != Mode::Off)
    }

    /// Whether any detector that looks at requests can stop one.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        let commons = [&self.progress.common, &self.exact.common, &self.similar.common, &self.oscillation.common];
        let others = [&self.score.common, &self.repeat.common, &self.velocity.common];
        commons.into_iter().chain(others).any(|common| common.mode == Mode::Enforce)
    }

    /// What a detector has in common with the others.
    #[must_use]
    pub fn common(&self, detector: Detector) -> &Common {
        match detector {
            Detector::Progress => &self.progress.common,
            Detector::Exact => &self.exact.common,
            Detector::Similar => &self.similar.common,
            Detector::Oscillation => &self.oscillation.common,
            Detector::Score => &self.score.common,
            Detector::Repeat => &self.repeat.common,
            Detector::Chant => &self.chant.common,
            Detector::Velocity => &self.velocity.common,
        }
    }

    /// The same, to be changed.
    pub fn common_mut(&mut self, detector: Detector) -> &mut Common {
        match detector {
            Detector::Progress => &mut self.progress.common,
            Detector::Exact => &mut self.exact.common,
            Detector::Similar => &mut self.similar.common,
            Detector::Oscillation => &mut self.oscillation.common,
            Detector::Score => &mut self.score.common,
            Detector::Repeat => &mut self.repeat.common,
            Detector::Chant => &mut self.chant.common,
            Detector::Velocity => &mut self.velocity.common,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{Preset, Proof};

    fn finding(detector: Detector, mode: Mode) -> Finding {
        let proof = Proof::default();
        Finding { detector, mode, loop_type: "x".into(), confidence: 1.0, score: 4.0, count: 4, proof }
    }

    fn rules(ladder: &[Action]) -> Rules {
        let mut rules = Rules::preset(Preset::Balanced);
        rules.progress.common.ladder = ladder.to_vec();
        rules
    }

    fn action(rules: &Rules, strikes: &mut Strikes, step: u32) -> Action {
        decide(vec![finding(Detector::Progress, Mode::Enforce)], rules, strikes, step).enforced.unwrap().action
    }

    #[test]
    fn without_a_ladder_the_action_is_taken_at_once() {
        assert_eq!(action(&rules(&[]), &mut Strikes::default(), 5), Action::KillRun);
    }

    #[test]
    fn a_ladder_is_climbed_strike_by_strike() {
        let rules = rules(&[Action::Nudge, Action::Pause, Action::KillRun]);
        let mut strikes = Strikes::default();
        assert_eq!(action(&rules, &mut strikes, 5), Action::Nudge);
        assert_eq!(action(&rules, &mut strikes, 6), Action::Warn, "it gets time to show that it heard");
        assert_eq!(action(&rules, &mut strikes, 5 + STRIKE_STEPS), Action::Pause);
        assert_eq!(action(&rules, &mut strikes, 5 + 2 * STRIKE_STEPS), Action::KillRun);
        assert_eq!(action(&rules, &mut strikes, 5 + 3 * STRIKE_STEPS), Action::KillRun, "the last rung stays");
    }

    #[test]
    fn a_rung_that_refuses_refuses_until_the_next() {
        let rules = rules(&[Action::Reject, Action::KillRun]);
        let mut strikes = Strikes::default();
        let actions: Vec<Action> = (5..9).map(|step| action(&rules, &mut strikes, step)).collect();
        assert_eq!(actions, [Action::Reject, Action::Reject, Action::Reject, Action::KillRun]);
    }

    #[test]
    fn the_strongest_action_wins_and_shadow_stays_apart() {
        let mut rules = rules(&[]);
        rules.velocity.common.action = Action::Warn;
        let findings = vec![
            finding(Detector::Velocity, Mode::Enforce),
            finding(Detector::Progress, Mode::Enforce),
            finding(Detector::Exact, Mode::Shadow),
        ];
        let decision = decide(findings, &rules, &mut Strikes::default(), 9);
        assert_eq!(decision.enforced.as_ref().unwrap().finding.detector, Detector::Progress);
        assert_eq!(decision.shadow.as_ref().unwrap().finding.detector, Detector::Exact);
        assert!(decision.stops());
        let only_shadow = decide(vec![finding(Detector::Progress, Mode::Shadow)], &rules, &mut Strikes::default(), 9);
        assert!(!only_shadow.stops());
    }

    #[test]
    fn strikes_in_shadow_are_nothing_to_the_enforced_rule() {
        let rules = rules(&[Action::Nudge, Action::KillRun]);
        let mut strikes = Strikes::default();
        for step in 0..20 {
            decide(vec![finding(Detector::Progress, Mode::Shadow)], &rules, &mut strikes, step);
        }
        assert_eq!(action(&rules, &mut strikes, 21), Action::Nudge);
    }
}
