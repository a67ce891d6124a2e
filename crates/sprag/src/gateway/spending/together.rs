//! Money of all nodes together: asked for with the call itself, or in a second round trip where something had to be
//! found out first. This node's own accounts follow, so that it can go on alone.

use sprag_core::id::RunId;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Denied, Draw, Epoch, Reservation, Seed, Weighed, Window, denied_refusal};
use sprag_core::time::Timestamp;
use sprag_core::wire::Refusal;
use sprag_store::shared::{AskedPurse, Money, MoneyAsk, Purse, Reserved};
use sprag_store::state::RunPlace;

use super::raise::Raising;
use super::{Payer, Spending};
use crate::app::App;
use crate::config::file::StateLoss;
use crate::gateway::seeding::Unseeded;
use crate::gateway::share::{Held, corrections, lost_refusal};
use crate::gateway::ticket::Ticket;

/// What all nodes together say of a call's money.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Told, and not used yet.
    told: Option<Money>,
    pub(super) raising: Raising,
}

impl Spending {
    /// The money is to be asked for where nodes meet. What this node knows of the accounts goes along.
    pub(crate) fn ask_together(&mut self, app: &App) {
        if self.draws.is_empty() {
            return;
        }
        self.together = Some(Together::default());
        for draw in self.draws.enforced.iter_mut().chain(&mut self.draws.shadow) {
            // What was done alone is told by itself, and must not be in it too.
            let untold = app.link.as_ref().map_or(NanoUsd::ZERO, |link| link.untold(&draw.id, draw.span));
            let spent = app.state.spent(draw).map(|spent| (spent - untold).max(NanoUsd::ZERO));
            draw.seed = spent.map(Seed::from);
        }
    }

    /// What is asked for. None where there is nothing to ask, or not yet.
    pub(crate) fn money_ask<'a>(&'a self, run_corrections: &'a [(RunId, NanoUsd)]) -> Option<MoneyAsk<'a>> {
        if self.together.is_none() || self.is_behind {
            return None;
        }
        let ask = |draws: &'a [Draw], reserved: &Option<Reservation>| match reserved {
            Some(_) => AskedPurse::default(),
            None => purse(draws),
        };
        let (amount, least) = self.wanted();
        Some(MoneyAsk {
            enforced: ask(&self.draws.enforced, &self.reserved),
            shadow: ask(&self.draws.shadow, &self.reserved_in_shadow),
            amount,
            least,
            run_corrections,
        })
    }

    /// What came of asking.
    pub(crate) fn told(&mut self, money: Option<Money>) {
        if let Some(together) = &mut self.together {
            together.told = money;
        }
    }

    /// The runs of the call are known now.
    pub(crate) fn draw_on(&mut self, app: &App, payer: &Payer<'_>, ticket: &Ticket) {
        let mut draws = payer.draws(app, ticket, ticket.event().at);
        for draw in draws.enforced.iter_mut().chain(&mut draws.shadow) {
            let known = self.draws.enforced.iter().chain(&self.draws.shadow).find(|known| known.id == draw.id);
            draw.seed = known.and_then(|known| known.seed);
        }
        self.draws = draws;
        if self.is_behind {
            // Other nodes may have seen such calls before.
            let event = ticket.event();
            self.expect(app.state.habits(&event.agent, event.model.as_deref().unwrap_or_default()));
            self.is_behind = self.is_first && !self.draws.enforced.is_empty();
        }
    }

    /// Takes what all nodes together have granted. None where something must be [waited for](Spending::wait) first.
    pub(super) fn take_granted(&mut self, app: &App) -> Option<Weighed> {
        let Money { enforced, shadow } = self.together.as_mut()?.told.take()?;
        let mut weighed = Weighed::default();
        let (kills, now) = (self.draws.kills_run, app.common_now());
        match enforced {
            Purse::Nothing => {}
            Purse::Reserved(reserved) => self.reserved = Some(follow(app, &self.draws.enforced, &reserved, now)),
            Purse::Short(shortfall) => {
                weighed.stop = Some(denied_refusal(&Denied::Short(shortfall), kills, now));
                return Some(weighed);
            }
            Purse::Unseeded(places) => {
                self.unseeded[0] = unseeded(&self.draws.enforced, &places);
                return None;
            }
        }
        match shadow {
            Purse::Nothing => {}
            Purse::Reserved(reserved) => {
                self.reserved_in_shadow = Some(follow(app, &self.draws.shadow, &reserved, now));
            }
            Purse::Short(shortfall) => {
                let denied = denied_refusal(&Denied::Short(shortfall), false, now);
                weighed.would_stop.push(denied.refusal);
            }
            Purse::Unseeded(places) => {
                self.unseeded[1] = unseeded(&self.draws.shadow, &places);
                return None;
            }
        }
        self.weigh_stages(&mut weighed);
        Some(weighed)
    }

    /// Asks in a round trip of its own, now that it is known what was missing.
    ///
    /// # Errors
    /// When Redis is away, and budgets are closed then.
    pub(super) async fn ask_again(&mut self, app: &App, tree: &[RunPlace], ticket: &mut Ticket) -> Result<(), Refusal> {
        let corrections = match self.together {
            Some(_) => corrections(app, &ticket.event().agent, tree.iter().map(|place| &place.id)),
            None => return Ok(()),
        };
        let (Some(link), Some(ask)) = (&app.link, self.money_ask(&corrections)) else { return Ok(()) };
        let Some(call) = ticket.shared().and_then(Held::call_mut) else {
            self.together = None;
            return Ok(());
        };
        match link.shared.reserve(call, &ask).await {
            Ok(money) => self.told(Some(money)),
            Err(away) => {
                let on_loss = app.settings.load().state.on_loss;
                if on_loss.budgets == StateLoss::Closed && self.is_limited() {
                    return Err(lost_refusal("budgets", &away));
                }
                self.together = None;
            }
        }
        Ok(())
    }
}

/// Accounts as they are asked for: one limit of runs, and all others.
fn purse(draws: &[Draw]) -> AskedPurse<'_> {
    let (runs, draws) = draws.split_at(runs(draws));
    AskedPurse { of_runs: runs.first(), draws }
}

/// How many draws are of runs: those come first.
fn runs(draws: &[Draw]) -> usize {
    draws.iter().take_while(|draw| draw.id.window == Window::Run).count()
}

/// Places of draws as they were asked for, among all draws of the call. What is read for them is of this moment.
fn unseeded(draws: &[Draw], places: &[usize]) -> Unseeded {
    places.iter().map(|place| (place + runs(draws), Epoch::default())).collect()
}

/// Lets this node's own accounts follow what was granted.
fn follow(app: &App, draws: &[Draw], reserved: &Reserved, now: Timestamp) -> Reservation {
    for account in &reserved.accounts {
        app.state.follow_account(&account.draw, account.settled, now);
    }
    app.state.hold_granted(draws, reserved.amount, now)
}
