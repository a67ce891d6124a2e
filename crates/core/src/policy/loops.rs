//! What a loop means for the call that showed it.

use serde_json::Value;

use super::stop::{Consequence, Stop};
use crate::id::RunId;
use crate::loops::{Action, Decision, Finding, Verdict};
use crate::wire::{Reason, Refusal};

/// What is to be done with a call that may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// It waits before it is sent.
    pub delay: Option<Delay>,
    /// The model is told this.
    pub note: Option<String>,
    /// The caller is told this with the answer.
    pub warning: Option<String>,
}

/// How long a call waits, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Milliseconds.
    pub ms: u64,
    /// What it would be refused for, were there no room to wait: a loop, a rate or a budget.
    pub reason: Reason,
}

/// Seconds after which a refused request may be tried again, where the rule has no window of its own.
const RETRY_SECONDS: u32 = 60;

/// Stops a call that a detector with a stopping action found stuck; `run` is the call's own.
pub(super) fn check(decision: &Decision, run: Option<&RunId>) -> Result<Advice, Stop> {
    let Some(verdict) = &decision.enforced else { return Ok(Advice::default()) };
    let finding = &verdict.finding;
    let proof = serde_json::to_value(&finding.proof).ok();
    let reason = Reason::LoopDetected.as_str().to_owned();
    let summary = &finding.proof.summary;
    match (verdict.action, run) {
        (Action::Warn | Action::Nudge | Action::Throttle, _) => Ok(advice(verdict)),
        (Action::Pause, Some(run)) => {
            let message = format!(
                "Loop detected: {summary}. The run is paused; it goes on when somebody approves it on the dashboard \
                 or with `sprag approve`"
            );
            let refusal = told(Refusal::new(Reason::RunPaused, message).with("kill_reason", reason.as_str()), finding);
            Err(Stop::with(refusal, Consequence::PauseRun { run: run.clone(), reason, proof }))
        }
        (Action::KillRun, Some(run)) => {
            let message = format!(
                "Loop detected: {summary}. The run was stopped; begin a new one, or resume this one on the dashboard \
                 or with `sprag resume`"
            );
            let refusal = told(Refusal::new(Reason::LoopDetected, message), finding);
            Err(Stop::with(refusal, Consequence::KillRun { run: run.clone(), reason, proof }))
        }
        (Action::DeactivateAgent, _) => {
            let message = format!(
                "This agent was deactivated by its Kill Switch: {summary}. Activate it on the dashboard or with \
                 `sprag agents activate` to go on"
            );
            let refusal = Refusal::new(Reason::AgentInactive, message).with("deactivated_by", "kill_switch");
            Err(Stop::with(told(refusal, finding), Consequence::DeactivateAgent { reason, proof }))
        }
        (Action::Reject | Action::Pause | Action::KillRun, _) => {
            let message = format!("Loop detected: {summary}. Try something else, or wait until the window has passed");
            let mut refusal = told(Refusal::new(Reason::LoopDetected, message), finding);
            refusal.retry_after_seconds = Some(verdict.retry_seconds.unwrap_or(RETRY_SECONDS));
            Err(refusal.into())
        }
    }
}

/// A refusal that ends an answer which repeats itself.
#[must_use]
pub fn chanting(finding: &Finding) -> Refusal {
    let message = format!("Loop detected: {}. The answer was cut off", finding.proof.summary);
    told(Refusal::new(Reason::LoopDetected, message), finding)
}

/// What a caller is told whose call passed although it repeats itself.
#[must_use]
pub fn loop_warning(verdict: &Verdict) -> String {
    let finding = &verdict.finding;
    format!("loop detected by `{}`: {}", finding.detector.as_str(), finding.proof.summary)
}

fn advice(verdict: &Verdict) -> Advice {
    let finding = &verdict.finding;
    let summary = &finding.proof.summary;
    let delay = Delay { ms: finding.throttle_ms(), reason: Reason::LoopDetected };
    let delay = (verdict.action == Action::Throttle).then_some(delay);
    let note = (verdict.action == Action::Nudge).then(|| {
        format!(
            "[sprag] You are repeating yourself: {summary}. Doing the same again will not give another result. \
             Try something else, or say what is missing and stop."
        )
    });
    Advice { delay, note, warning: None }
}

fn told(refusal: Refusal, finding: &Finding) -> Refusal {
    refusal
        .with("loop_type", finding.loop_type.as_str())
        .with("detector", finding.detector.as_str())
        .with("confidence", finding.confidence)
        .with("score", finding.score)
        .with("proof", serde_json::to_value(&finding.proof).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{Detector, Mode, Proof};

    fn decision(action: Action) -> Decision {
        let proof = Proof { summary: "step 1 to 4 are the same".into(), value: 4.0, ..Proof::default() };
        let finding = Finding {
            detector: Detector::Progress,
            mode: Mode::Enforce,
            loop_type: "repeated_step".into(),
            confidence: 0.9,
            score: 4.0,
            count: 4,
            proof,
        };
        let verdict = Verdict { finding, action, strike: 1, retry_seconds: Some(45) };
        Decision { enforced: Some(verdict), shadow: None }
    }

    fn run() -> RunId {
        RunId::parse("r1").unwrap()
    }

    #[test]
    fn what_stops_says_why_and_what_follows() {
        let kill = check(&decision(Action::KillRun), Some(&run())).unwrap_err();
        assert_eq!(kill.refusal.reason, Reason::LoopDetected);
        assert_eq!(kill.refusal.fields["proof"]["summary"], "step 1 to 4 are the same");
        assert_eq!(kill.refusal.fields["loop_type"], "repeated_step");
        assert!(matches!(kill.consequence.as_deref(), Some(Consequence::KillRun { run: id, .. }) if *id == run()));

        let pause = check(&decision(Action::Pause), Some(&run())).unwrap_err();
        assert_eq!(pause.refusal.reason, Reason::RunPaused);
        assert!(matches!(pause.consequence.as_deref(), Some(Consequence::PauseRun { .. })));

        let switch = check(&decision(Action::DeactivateAgent), None).unwrap_err();
        assert_eq!((switch.refusal.reason, switch.refusal.status), (Reason::AgentInactive, 200));
        assert!(matches!(switch.consequence.as_deref(), Some(Consequence::DeactivateAgent { .. })));

        let reject = check(&decision(Action::Reject), Some(&run())).unwrap_err();
        assert_eq!((reject.refusal.retry_after_seconds, reject.consequence), (Some(45), None));
    }

    #[test]
    fn without_a_run_there_is_nothing_to_kill() {
        let stop = check(&decision(Action::KillRun), None).unwrap_err();
        assert_eq!((stop.refusal.reason, stop.consequence), (Reason::LoopDetected, None));
    }

    #[test]
    fn what_passes_is_advised() {
        assert_eq!(check(&Decision::default(), None), Ok(Advice::default()));
        let throttle = check(&decision(Action::Throttle), None).unwrap();
        let delay = Delay { ms: 400, reason: Reason::LoopDetected };
        assert_eq!((throttle.delay, throttle.note), (Some(delay), None));
        let nudge = check(&decision(Action::Nudge), None).unwrap();
        assert!(nudge.note.unwrap().contains("step 1 to 4 are the same"));
        let warn = check(&decision(Action::Warn), None).unwrap();
        assert_eq!((warn.delay, warn.note.is_none()), (None, true));
        assert!(loop_warning(decision(Action::Warn).enforced.as_ref().unwrap()).contains("`progress`"));
    }
}
