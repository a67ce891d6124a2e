//! What becomes of a call while Redis is away: the controls that it depends on say.

use sprag_core::loops::{Mode, Rules};
use sprag_core::policy::Policy;
use sprag_core::wire::{Reason, Refusal};
use sprag_store::shared::Away;
use sprag_store::state::RateAsk;

use crate::config::file::{OnStateLoss, StateLoss};
use crate::gateway::spending::Spending;

/// Asking again sooner is of no use: the link is tried once a second.
const RETRY_SECONDS: u32 = 1;

/// Redis is away for a call.
pub(super) struct Lost<'a> {
    pub(super) away: &'a Away,
    pub(super) on_loss: OnStateLoss,
    pub(super) has_run: bool,
}

impl Lost<'_> {
    /// The refusal of a call that depends on a control which is closed.
    pub(super) fn refusal(
        &self,
        policy: &Policy,
        rules: &Rules,
        asks: &[RateAsk<'_>],
        spending: &Spending,
    ) -> Option<Refusal> {
        let limits = &policy.run_limits;
        let has_run_limits = limits.mode == Mode::Enforce && (limits.max_steps > 0 || limits.timeout_seconds > 0);
        let on = self.on_loss;
        let controls = [
            ("kills", on.kills, true),
            ("rate_limits", on.rate_limits, asks.iter().any(|ask| ask.rule.mode == Mode::Enforce)),
            ("run_limits", on.run_limits, self.has_run && has_run_limits),
            ("detection", on.detection, self.has_run && rules.is_enforced()),
            ("budgets", on.budgets, spending.is_limited()),
        ];
        let closed = controls.into_iter().find(|(_, on, is_needed)| *on == StateLoss::Closed && *is_needed);
        closed.map(|(control, ..)| refusal(control, self.away))
    }
}

/// How a call is refused that depends on what cannot be reached.
pub(crate) fn refusal(control: &str, away: &Away) -> Refusal {
    let message = format!(
        "{away}, and `{control}` is not judged without what the Sprags share there; try again in a moment, or see that \
         Redis runs. `state.on_state_loss.{control} = \"open\"` lets such calls pass by what one Sprag knows alone"
    );
    let refusal = Refusal::new(Reason::StateUnavailable, message).with("store", "redis").with("control", control);
    Refusal { retry_after_seconds: Some(RETRY_SECONDS), ..refusal }
}
