//! The order of judgement: the cheapest check first, and the first stop wins.

use super::agent::{AgentStanding, DeactivatedBy};
use super::kill::{Kill, KillKind};
use super::loops::{self, Advice};
use super::run_limits::{RunLimits, RunProgress};
use super::scope::KillScope;
use super::stop::Stop;
use crate::loops::Decision;
use crate::wire::{Reason, Refusal};

/// What the judge looks at, in the order in which it looks.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The kill that concerns the call.
    pub kill: Option<&'a Kill>,
    /// Where the agent stands; absent for one of which nothing is remembered.
    pub standing: Option<&'a AgentStanding>,
    /// Requests of the agent that are under way, this one included.
    pub agent_in_flight: u32,
    /// The most that may be.
    pub max_agent_in_flight: u32,
    /// The run of the call and those above it, nearest first.
    pub runs: &'a [RunProgress],
    /// What they may come to.
    pub run_limits: RunLimits,
    /// The model asked for.
    pub model: Option<&'a str>,
    /// The model has a price.
    pub is_priced: bool,
    /// Calls without a price are refused.
    pub blocks_unpriced: bool,
}

/// Proof that a call was judged and may be forwarded. Only [`judge`] makes one.
#[derive(Debug)]
pub struct Permit(Advice);

impl Permit {
    /// What is to be done with the call on its way.
    #[must_use]
    pub fn advice(&self) -> &Advice {
        &self.0
    }
}

/// Judges a call. `loops` lets detection look at it, when nothing has stopped it before.
///
/// # Errors
/// The refusal, with its numbers, and what follows from it.
pub fn judge(facts: &Facts<'_>, loops: impl FnOnce() -> Decision) -> Result<Permit, Stop> {
    check_kill(facts)?;
    check_active(facts)?;
    check_price(facts)?;
    check_concurrency(facts)?;
    facts.run_limits.check(facts.runs)?;
    let advice = loops::check(&loops(), facts.runs.first().map(|run| &run.run))?;
    Ok(Permit(advice))
}

/// How a kill is told to a call that it stops, at its beginning or in the middle.
#[must_use]
pub fn killed(kill: &Kill) -> Refusal {
    let (reason, was) = match kill.kind {
        KillKind::Kill => (Reason::RunKilled, "was killed"),
        KillKind::Pause => (Reason::RunPaused, "is paused"),
    };
    let what = told(&kill.scope);
    let id = &kill.id;
    let advice = match (kill.kind, &kill.scope) {
        (KillKind::Pause, KillScope::Run { .. }) => {
            "it goes on when somebody approves it on the dashboard or with `sprag approve`".to_owned()
        }
        (KillKind::Kill, KillScope::Run { .. }) => {
            "begin a new run, or resume this one on the dashboard or with `sprag resume`".to_owned()
        }
        // Only runs can be approved.
        (KillKind::Pause, _) => {
            format!("it goes on when somebody lifts the pause on the dashboard or with `sprag kills lift {id}`")
        }
        (KillKind::Kill, _) => format!("the kill can be lifted on the dashboard or with `sprag kills lift {id}`"),
    };
    let mut refusal = Refusal::new(reason, format!("{what} {was} by {}: {}; {advice}", kill.by, kill.reason))
        .with("kill_reason", kill.reason.as_str())
        .with("killed_by", kill.by.as_str())
        .with("killed_at", kill.at.to_rfc3339())
        .with("killed_scope", kill.scope.to_string());
    if let Some(proof) = &kill.proof {
        refusal = refusal.with("proof", proof.clone());
    }
    refusal
}

fn told(scope: &KillScope) -> String {
    match scope {
        KillScope::Everything => "everything".to_owned(),
        KillScope::Agent(agent) => format!("agent `{agent}`"),
        KillScope::Run { run, .. } => format!("run `{run}`"),
        KillScope::Key(_) => "this credential".to_owned(),
        KillScope::Carrying { .. } => format!("every call with `{scope}`"),
        KillScope::On { route, scope } => format!("{} on `{route}`", told(scope)),
    }
}

fn check_kill(facts: &Facts<'_>) -> Result<(), Refusal> {
    facts.kill.map_or(Ok(()), |kill| Err(killed(kill)))
}

fn check_active(facts: &Facts<'_>) -> Result<(), Refusal> {
    let Some(standing) = facts.standing.filter(|standing| !standing.active) else { return Ok(()) };
    let by = match standing.deactivated_by {
        Some(DeactivatedBy::KillSwitch) => "its Kill Switch",
        Some(DeactivatedBy::Manual) | None => "hand",
    };
    let message = format!(
        "this agent was deactivated by {by}; activate it on the dashboard or with `sprag agents activate` to go on"
    );
    let mut refusal = Refusal::new(Reason::AgentInactive, message);
    if let Some(by) = standing.deactivated_by {
        refusal = refusal.with("deactivated_by", serde_json::to_value(by).unwrap_or_default());
    }
    if let Some(reason) = &standing.reason {
        refusal = refusal.with("kill_reason", reason.as_str());
    }
    if let Some(proof) = &standing.proof {
        refusal = refusal.with("proof", proof.clone());
    }
    Err(refusal)
}

fn check_concurrency(facts: &Facts<'_>) -> Result<(), Refusal> {
    if facts.agent_in_flight <= facts.max_agent_in_flight {
        return Ok(());
    }
    let message = format!(
        "the agent has {} requests under way and {} are allowed at once; wait for some to finish, or raise \
         `proxy.max_requests_per_agent`",
        facts.agent_in_flight - 1,
        facts.max_agent_in_flight
    );
    let mut refusal = Refusal::new(Reason::RateLimited, message).with("limit", facts.max_agent_in_flight);
    refusal.retry_after_seconds = Some(1);
    Err(refusal)
}

fn check_price(facts: &Facts<'_>) -> Result<(), Refusal> {
    match facts.model {
        Some(model) if facts.blocks_unpriced && !facts.is_priced => {
            let message = format!(
                "model `{model}` has no price and `prices.unpriced` is \"block\"; add a `[[price]]` for it, or set \
                 `unpriced = \"allow\"`"
            );
            Err(Refusal::new(Reason::ModelNotAllowed, message).with("model", model))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
