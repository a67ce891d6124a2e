//! The settings of a command: those of the configuration, with the limits on the command line and the addresses that the
//! environment names.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{Mode, Rules, RunKind};
use sprag_core::policy::{Policy, RunLimits};

use super::asked::Asked;
use super::variables::{Kept, keep_upstreams};
use crate::config::file::LogCalls;
use crate::config::{Environment, Settings};

/// How long answers under way may take once the command is gone.
const DRAIN: Duration = Duration::from_secs(2);

/// What the command is run with.
pub(super) struct Prepared {
    /// The settings in force.
    pub(super) settings: Settings,
    /// The settings as configured, for the data directory.
    pub(super) main: Settings,
    pub(super) agent: AgentName,
    pub(super) command: RunId,
    /// Addresses that the environment named.
    pub(super) kept: Vec<Kept>,
    /// What the user should know before it starts.
    pub(super) warnings: Vec<String>,
}

/// Puts the settings together.
///
/// # Errors
/// When an address in the environment cannot be one.
pub(super) fn prepare(asked: &Asked, main: Settings, environment: &Environment, command: RunId) -> Result<Prepared> {
    let mut settings = main.clone();
    let kept = keep_upstreams(&mut settings, environment)?;
    let policies = settings.policies.agents.values_mut().chain([&mut settings.policies.defaults]);
    policies.for_each(|policy| limit(policy, asked));
    settings.runs.command = Some(command.clone());
    settings.proxy.drain = DRAIN;
    settings.log.calls = LogCalls::Off;
    // Its events are handed over, and whoever keeps the record sends them: sent by both they would be counted by both.
    settings.events.clickhouse = None;
    // They are signed by whoever keeps the record, and about kills that only this process knows.
    settings.alerts.link_ms = 0;
    // Somebody above adds the object already, and an answer has room for one.
    settings.responses.metadata &= environment.get("SPRAG_RUN").is_none();
    let agent = asked.agent.clone().unwrap_or_default();
    let mut warnings = Vec::new();
    if let Some(name) = overridden_by_file(&main, asked) {
        warnings.push(format!("{name} on the command line takes the place of the one in the configuration"));
    }
    Ok(Prepared { settings, main, agent, command, kept, warnings })
}

/// What the command line says holds for the command as a whole. Its parts can only have less, so the same limit may hold
/// for them.
fn limit(policy: &mut Policy, asked: &Asked) {
    if let Some(budget) = asked.budget {
        policy.budget.mode = Mode::Enforce;
        policy.budget.max_run_cost = Some(budget);
        policy.budget.kill_run = true;
    }
    if let Some(max_steps) = asked.max_steps {
        policy.run_limits = RunLimits { mode: Mode::Enforce, max_steps, timeout_seconds: 0, applies_to: RunKind::All };
    }
    if let Some(preset) = asked.preset {
        policy.rules = Arc::new(Rules::preset(preset));
    }
}

fn overridden_by_file(main: &Settings, asked: &Asked) -> Option<&'static str> {
    let agent = asked.agent.clone().unwrap_or_default();
    let configured = main.policies.of(&agent).budget.max_run_cost;
    let is_wider = asked.budget.zip(configured).is_some_and(|(asked, configured)| asked > configured);
    is_wider.then_some("--budget")
}
