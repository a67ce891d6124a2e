//! The order of judgement: the cheapest check first, and the first stop wins.

use std::borrow::Cow;

use super::agent::{AgentStanding, DeactivatedBy};
use super::kill::{Kill, KillKind};
use super::loops::{self, Advice, Delay};
use super::policy_of_agent::Policy;
use super::run_limits::RunProgress;
use super::scope::KillScope;
use super::stop::Stop;
use crate::loops::{Decision, Mode};
use crate::time::Timestamp;
use crate::wire::{Reason, Refusal};

/// What the judge looks at, in the order in which it looks.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// When.
    pub now: Timestamp,
    /// The kill that concerns the call.
    pub kill: Option<&'a Kill>,
    /// Where the agent stands; absent for one of which nothing is remembered.
    pub standing: Option<&'a AgentStanding>,
    /// What the agent may do.
    pub policy: &'a Policy,
    /// A model is asked, whether or not the request says which.
    pub is_llm: bool,
    /// The model asked for.
    pub model: Option<&'a str>,
    /// Models that may be asked instead of it.
    pub other_models: &'a [Cow<'a, str>],
    /// The model has a price.
    pub is_priced: bool,
    /// Calls without a price are refused.
    pub blocks_unpriced: bool,
    /// Requests of the agent that are under way, this one included.
    pub agent_in_flight: u32,
    /// The most that may be.
    pub max_agent_in_flight: u32,
    /// The run of the call and those above it, nearest first.
    pub runs: &'a [RunProgress],
}

/// What a check found whose rules are some in force and some in shadow. Only those in force change anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighed {
    /// The first rule in force that stops the call.
    pub stop: Option<Stop>,
    /// What rules in shadow would have told the caller.
    pub would_stop: Vec<Refusal>,
    /// The call waits this long.
    pub delay_ms: Option<u64>,
    /// The caller is told this with the answer.
    pub warning: Option<String>,
}

/// Proof that a call was judged and may be forwarded. Only [`judge`] makes one.
#[derive(Debug)]
pub struct Permit(Advice);

/// What came of a judgement.
#[derive(Debug)]
pub struct Judgement {
    /// The permit, or the refusal with its numbers and what follows from it.
    pub verdict: Result<Permit, Stop>,
    /// What rules in shadow would have told the caller, in the order of judgement.
    pub would_stop: Vec<Refusal>,
}

impl Permit {
    /// What is to be done with the call on its way.
    #[must_use]
    pub fn advice(&self) -> &Advice {
        &self.0
    }
}

/// Judges a call. What counts, looks or sets money aside is asked only when nothing has stopped the call before: `rates`
/// counts it, `loops` lets detection look at it, `dlp` looks for secrets in it, `budgets` sets money aside for it. None where `budgets` cannot tell yet:
/// nothing is set aside, and nobody has a permit.
pub fn judge(
    facts: &Facts<'_>,
    rates: impl FnOnce() -> Weighed,
    loops: impl FnOnce() -> Decision,
    dlp: impl FnOnce() -> Option<Refusal>,
    budgets: impl FnOnce() -> Option<Weighed>,
) -> Option<Judgement> {
    let mut would_stop = Vec::new();
    let verdict = decide(facts, rates, loops, dlp, budgets, &mut would_stop).transpose()?.map(Permit);
    Some(Judgement { verdict, would_stop })
}

fn decide(
    facts: &Facts<'_>,
    rates: impl FnOnce() -> Weighed,
    loops: impl FnOnce() -> Decision,
    dlp: impl FnOnce() -> Option<Refusal>,
    budgets: impl FnOnce() -> Option<Weighed>,
    would_stop: &mut Vec<Refusal>,
) -> Result<Option<Advice>, Stop> {
    let policy = facts.policy;
    check_kill(facts)?;
    check_active(facts)?;
    by_mode(policy.hours.mode, would_stop, || Ok(policy.hours.check(facts.now)?))?;
    by_mode(policy.models.mode, would_stop, || check_models(facts))?;
    check_price(facts)?;
    check_concurrency(facts)?;
    let rated = weigh(rates(), would_stop)?;
    by_mode(policy.run_limits.mode, would_stop, || policy.run_limits.check(facts.runs))?;
    let mut advice = loops::check(&loops(), facts.runs.first().map(|run| &run.run))?;
    if let Some(refusal) = dlp() {
        return Err(refusal.into());
    }
    let Some(weighed) = budgets() else { return Ok(None) };
    let paid = weigh(weighed, would_stop)?;
    let by = |delay_ms: Option<u64>, reason| delay_ms.map(|ms| Delay { ms, reason });
    let others = [by(rated.delay_ms, Reason::RateLimited), by(paid.delay_ms, Reason::BudgetExceeded)];
    advice.delay = [advice.delay].into_iter().chain(others).flatten().max_by_key(|delay| delay.ms);
    advice.warning = paid.warning.or(rated.warning);
    Ok(Some(advice))
}

/// A check whose rule is in force, in shadow or off.
fn by_mode(mode: Mode, would_stop: &mut Vec<Refusal>, check: impl FnOnce() -> Result<(), Stop>) -> Result<(), Stop> {
    match mode {
        Mode::Off => Ok(()),
        Mode::Enforce => check(),
        Mode::Shadow => {
            would_stop.extend(check().err().map(|stop| stop.refusal));
            Ok(())
        }
    }
}

fn weigh(weighed: Weighed, would_stop: &mut Vec<Refusal>) -> Result<Weighed, Stop> {
    let Weighed { stop, would_stop: shadows, delay_ms, warning } = weighed;
    would_stop.extend(shadows);
    match stop {
        Some(stop) => Err(stop),
        None => Ok(Weighed { delay_ms, warning, ..Weighed::default() }),
    }
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
        refusal = refusal.with("proof", proof.value());
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

/// A request that is not understood may name a model all the same.
fn check_models(facts: &Facts<'_>) -> Result<(), Stop> {
    let models = &facts.policy.models;
    models.check(facts.model, facts.is_llm || facts.model.is_some())?;
    for other in facts.other_models {
        models.check(Some(other), true)?;
    }
    Ok(())
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
