//! `[defaults]` and `[agents.NAME]`: one whole policy for each, made key by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use sprag_core::dlp::DlpRules;
use sprag_core::id::AgentName;
use sprag_core::loops::{Rules, RunKind};
use sprag_core::policy::{Budget, KillSwitch, KillSwitchChange, Policy, RunLimits};

use super::{budget, detection, dlp, hours, models, place, rate_limit};
use crate::config::agent_override::written;
use crate::config::file::{Agent, AgentBudget, AgentDlp, AgentRunLimits, Defaults, File, LimitedRuns};
use crate::config::problem::Problem;
use crate::config::settings::{GlobalBudget, Policies};

/// The policies of all agents.
pub(super) fn resolve_all(file: &File, problems: &mut Vec<Problem>) -> Policies {
    let rules = detection::rules(&file.detection);
    let own =
        Arc::new(DlpRules { own: file.dlp.patterns.iter().map(|own| own.id.clone()).collect(), ..DlpRules::default() });
    complain("detection", &rules, problems);
    let mut policies = Policies {
        defaults: defaults(&file.defaults, rules, &own, problems),
        agents: BTreeMap::new(),
        written: BTreeMap::new(),
    };
    for (name, agent) in &file.agents {
        match AgentName::parse(name) {
            Ok(name) => {
                policies.written.insert(name.clone(), written(agent));
                let policy = over(&policies.defaults, agent, &format!("agents.{name}"), problems);
                policies.agents.insert(name, policy);
            }
            Err(error) => problems.push(Problem::name(format!("agents.{name}"), error.to_string())),
        }
    }
    policies
}

/// What everybody together may spend.
pub(super) fn global_budget(file: &File, problems: &mut Vec<Problem>) -> GlobalBudget {
    GlobalBudget {
        budget: budget::over(&Budget::default(), &AgentBudget::from(&file.budget), "budget", problems),
        zone: hours::zone("budget.time_zone", &file.budget.time_zone, problems),
    }
}

/// A policy with what is written for one agent; `key` is where that stands.
pub(crate) fn over(base: &Policy, file: &Agent, key: &str, problems: &mut Vec<Problem>) -> Policy {
    let switch = &file.kill_switch;
    let change =
        KillSwitchChange { enabled: switch.enabled, window_size: switch.window_size, threshold: switch.threshold };
    let rules = detection::agent_rules(&base.rules, &file.detection);
    complain(&place(key, "detection"), &rules, problems);
    Policy {
        run_limits: run_limits(base.run_limits, &file.run_limits),
        kill_switch: change.over(base.kill_switch),
        // Thousands of agents share what they have in common.
        rules: if rules == *base.rules { base.rules.clone() } else { Arc::new(rules) },
        hours: hours::over(&base.hours, &file.hours, &place(key, "hours"), problems),
        models: models::over(&base.models, &file.models, &place(key, "models"), problems),
        rate_limits: match &file.rate_limits {
            Some(limits) => rate_limit::resolve_all(&place(key, "rate_limits"), limits, problems),
            None => base.rate_limits.clone(),
        },
        budget: budget::over(&base.budget, &file.budget, &place(key, "budget"), problems),
        dlp: dlp::over(&base.dlp, &file.dlp, &place(key, "dlp"), problems),
    }
}

/// The schema knows the bounds of single keys; this is what does not go together.
fn complain(key: &str, rules: &Rules, problems: &mut Vec<Problem>) {
    problems.extend(rules.check().into_iter().map(|problem| Problem::value(key, problem)));
}

fn defaults(file: &Defaults, rules: Rules, own: &Arc<DlpRules>, problems: &mut Vec<Problem>) -> Policy {
    let (limits, switch) = (&file.run_limits, &file.kill_switch);
    Policy {
        run_limits: RunLimits {
            mode: limits.mode.into(),
            max_steps: limits.max_steps,
            timeout_seconds: limits.timeout_seconds,
            applies_to: run_kind(limits.applies_to),
        },
        kill_switch: KillSwitch {
            enabled: switch.enabled,
            window_size: switch.window_size,
            threshold: switch.threshold,
        },
        rules: Arc::new(rules),
        hours: hours::defaults(&file.hours, "defaults.hours", problems),
        models: models::defaults(&file.models, "defaults.models", problems),
        rate_limits: rate_limit::resolve_all("defaults.rate_limits", &file.rate_limits, problems),
        budget: budget::over(&Budget::default(), &AgentBudget::from(&file.budget), "defaults.budget", problems),
        dlp: dlp::over(own, &AgentDlp::from(&file.dlp), "defaults.dlp", problems),
    }
}

fn run_limits(base: RunLimits, written: &AgentRunLimits) -> RunLimits {
    RunLimits {
        mode: written.mode.map_or(base.mode, Into::into),
        max_steps: written.max_steps.unwrap_or(base.max_steps),
        timeout_seconds: written.timeout_seconds.unwrap_or(base.timeout_seconds),
        applies_to: written.applies_to.map_or(base.applies_to, run_kind),
    }
}

fn run_kind(runs: LimitedRuns) -> RunKind {
    match runs {
        LimitedRuns::Declared => RunKind::Declared,
        LimitedRuns::All => RunKind::All,
    }
}

#[cfg(test)]
mod tests;
