//! How a shortfall is told: what was spent, what is set aside, and what to do.

use serde_json::Value;

use super::ledger::{Denied, Shortfall};
use super::{Holder, Level, Window};
use crate::id::RunId;
use crate::loops::Proof;
use crate::money::NanoUsd;
use crate::policy::stop::{Consequence, Stop};
use crate::time::Timestamp;
use crate::wire::{Reason, Refusal};

/// Why a run is killed that has spent its limit.
const KILL_REASON: &str = "budget_exceeded";

/// The stop of a call for which nothing could be set aside. `kills` says that a run out of money is killed.
#[must_use]
pub fn denied_refusal(denied: &Denied, kills: bool, now: Timestamp) -> Stop {
    match denied {
        Denied::Short(shortfall) => shortfall_refusal(shortfall, kills, now),
        Denied::LedgerFull => {
            let message = "every budget that fits into memory has calls under way; try again when some are over";
            Refusal { retry_after_seconds: Some(1), ..Refusal::new(Reason::Overloaded, message) }.into()
        }
        Denied::Unseeded(_) => unknown_refusal().into(),
    }
}

/// The refusal of a call of which nobody can say now what its budgets have left.
#[must_use]
pub fn unknown_refusal() -> Refusal {
    let message = "what was spent cannot be read now, and there are limits to it; try again in a moment";
    Refusal { retry_after_seconds: Some(1), ..Refusal::new(Reason::Overloaded, message) }
}

/// The stop of a call for which an account has no room. `kills` says that a run out of money is killed.
#[must_use]
pub fn shortfall_refusal(shortfall: &Shortfall, kills: bool, now: Timestamp) -> Stop {
    let Shortfall { draw, account, amount, .. } = shortfall;
    let killed = killed_run(shortfall).filter(|_| kills);
    let mut refusal = Refusal::new(Reason::BudgetExceeded, message(shortfall, killed.is_some()))
        .with("exceeded_limit", draw.id.window.as_str())
        .with("level", draw.level.as_str())
        .with("current_cost", account.settled.as_usd())
        .with("limit", draw.limit.as_usd())
        .with("reserved", account.reserved.as_usd())
        .with("requested", amount.as_usd());
    refusal.retry_after_seconds = retry_after_seconds(shortfall, now);
    let Some(run) = killed else { return refusal.into() };
    let proof = serde_json::to_value(proof(shortfall, run)).unwrap_or(Value::Null);
    let refusal =
        refusal.with("kill_reason", KILL_REASON).with("killed_run", run.as_str()).with("proof", proof.clone());
    let (run, reason, proof) = (run.clone(), KILL_REASON.to_owned(), Some(proof));
    Stop::with(refusal, Consequence::KillRun { run, reason, proof })
}

/// The run whose money is spent. One that has spent nothing yet met a call that is too large for it: it may go on with
/// a smaller one.
fn killed_run(shortfall: &Shortfall) -> Option<&RunId> {
    match &shortfall.draw.id.holder {
        Holder::Run(_, run) if !shortfall.may_pass() && shortfall.account.settled > NanoUsd::ZERO => Some(run),
        Holder::Run(..) | Holder::Key(_) | Holder::Agent(_) | Holder::Everything => None,
    }
}

fn retry_after_seconds(shortfall: &Shortfall, now: Timestamp) -> Option<u32> {
    if shortfall.may_pass() {
        return Some(1);
    }
    match shortfall.draw.id.window {
        Window::Day | Window::Month if !is_too_large(shortfall) => {
            let left_ms = shortfall.draw.span.end.since_ms(now);
            Some(u32::try_from(left_ms.div_ceil(1000)).unwrap_or(u32::MAX))
        }
        Window::Run | Window::Day | Window::Month => None,
    }
}

/// The call does not fit, whatever else is spent.
fn is_too_large(shortfall: &Shortfall) -> bool {
    shortfall.least > shortfall.draw.limit
}

fn message(shortfall: &Shortfall, is_killed: bool) -> String {
    let Shortfall { draw, account, amount, .. } = shortfall;
    let limit = draw.limit;
    let what = match draw.id.window {
        Window::Run => "Run cost limit".to_owned(),
        Window::Day => format!("Daily budget of {}", told(&draw.id.holder)),
        Window::Month => format!("Monthly budget of {}", told(&draw.id.holder)),
    };
    let who = match &draw.id.holder {
        Holder::Run(_, run) => format!("run `{run}` has spent"),
        Holder::Key(_) | Holder::Agent(_) | Holder::Everything => "spent is".to_owned(),
    };
    let under_way = match account.reserved {
        NanoUsd::ZERO => String::new(),
        reserved => format!(", calls under way hold ${reserved}"),
    };
    let spent = account.settled;
    let advice = advice(shortfall, is_killed);
    format!("Budget exceeded: {what} (${limit}): {who} ${spent}{under_way}, and this call needs ${amount}; {advice}")
}

fn advice(shortfall: &Shortfall, is_killed: bool) -> String {
    let draw = &shortfall.draw;
    let raise = raise(shortfall);
    if shortfall.may_pass() {
        return format!("try again when those calls are over, or raise {raise}");
    }
    if is_too_large(shortfall) {
        return format!("ask for a shorter answer, or raise {raise}");
    }
    match draw.id.window {
        Window::Run if is_killed => {
            format!("begin a new run, resume this one on the dashboard or with `sprag resume`, or raise {raise}")
        }
        Window::Run => format!("begin a new run, or raise {raise}"),
        Window::Day | Window::Month => {
            let until = draw.span.end.to_rfc3339();
            format!("wait until {until}, raise {raise}, or correct what was spent with `sprag budgets adjust`")
        }
    }
}

/// What is to be raised.
fn raise(shortfall: &Shortfall) -> String {
    let key = match shortfall.draw.id.window {
        Window::Run => "max_run_cost",
        Window::Day => "daily_limit",
        Window::Month => "monthly_limit",
    };
    match (shortfall.draw.level, &shortfall.draw.id.holder) {
        (Level::Key, _) => format!("`{key}` of the key"),
        (Level::Agent, Holder::Run(agent, _) | Holder::Agent(agent)) => format!("`budget.{key}` of agent `{agent}`"),
        (Level::Agent | Level::Everything, _) => format!("`budget.{key}`"),
    }
}

fn told(holder: &Holder) -> String {
    match holder {
        Holder::Run(_, run) => format!("run `{run}`"),
        Holder::Key(key) => format!("key `{key}`"),
        Holder::Agent(agent) => format!("agent `{agent}`"),
        Holder::Everything => "everything".to_owned(),
    }
}

fn proof(shortfall: &Shortfall, run: &RunId) -> Proof {
    let Shortfall { draw, account, amount, .. } = shortfall;
    let (spent, limit) = (account.settled, draw.limit);
    Proof {
        summary: format!("run `{run}` has spent ${spent} of ${limit}, and a call needed ${amount}"),
        compared: "max_run_cost".to_owned(),
        threshold: limit.as_usd(),
        value: (account.settled + account.reserved + *amount).as_usd(),
        ..Proof::default()
    }
}

#[cfg(test)]
mod tests;
