//! Budgets of which nobody can say now what all Sprags have spent: no call has drawn on them yet, and the history that they share
//! is away.
//!
//! Closed, which is how budgets are unless set otherwise, such a call is refused. Open, it passes as long as this Sprag's own record leaves
//! room, and draws on nothing there: an account that began with a part of what was spent would stay too low for its whole
//! time. It is opened with everything, this call included, when the history is back.

use sprag_core::policy::{Account, Draw, Shortfall, shortfall_refusal};
use sprag_core::wire::{Reason, Refusal};

use super::Spending;
use crate::app::App;
use crate::config::file::StateLoss;
use crate::gateway::seeding::Unknown;

/// A server that did not answer is left alone for as long.
const RETRY_SECONDS: u32 = 1;

impl Spending {
    /// Goes on without these accounts.
    ///
    /// # Errors
    /// When budgets are closed without what nodes share, or what this Sprag itself has spent leaves no room.
    pub(super) fn go_without(&mut self, app: &App, unknown: &[Unknown]) -> Result<(), Refusal> {
        if unknown.is_empty() {
            return Ok(());
        }
        if app.settings.load().state.on_loss.budgets == StateLoss::Closed {
            return Err(closed_refusal());
        }
        let (amount, least) = self.wanted();
        for Unknown { place, spent_here } in unknown {
            let Some(draw) = self.draws.enforced.get(*place) else { continue };
            let left = draw.limit - *spent_here;
            if left < least || left.0 <= 0 {
                let account = Account { settled: *spent_here, span: draw.span, ..Account::default() };
                let shortfall = Shortfall { draw: draw.clone(), account, amount, least };
                return Err(shortfall_refusal(&shortfall, false, app.common_now()).refusal);
            }
        }
        leave_out(&mut self.draws.enforced, unknown);
        Ok(())
    }
}

/// Takes draws out.
pub(super) fn leave_out(draws: &mut Vec<Draw>, unknown: &[Unknown]) {
    let mut place = 0;
    draws.retain(|_| {
        let stays = unknown.iter().all(|account| account.place != place);
        place += 1;
        stays
    });
}

fn closed_refusal() -> Refusal {
    let message = "what was spent from a budget that no call has drawn on yet stands in the history that the Sprags share, \
                   and ClickHouse cannot be read; try again in a moment, or see that it runs. \
                   `state.on_state_loss.budgets = \"open\"` lets such calls pass by what one Sprag has on record itself";
    let refusal =
        Refusal::new(Reason::StateUnavailable, message).with("store", "clickhouse").with("control", "budgets");
    Refusal { retry_after_seconds: Some(RETRY_SECONDS), ..refusal }
}
