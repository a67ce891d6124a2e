//! `[defaults]` and `[agents.NAME]`: one whole policy for each, made key by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::loops::{Rules, RunKind};
use sprag_core::policy::{KillSwitch, KillSwitchChange, RunLimits};

use super::detection;
use crate::config::file::{Agent, Defaults, File, LimitedRuns};
use crate::config::problem::Problem;
use crate::config::settings::{AgentPolicy, Policies};

/// The policies of all agents.
pub(super) fn resolve_all(file: &File, problems: &mut Vec<Problem>) -> Policies {
    let rules = detection::rules(&file.detection);
    complain("detection", &rules, problems);
    let defaults = defaults(&file.defaults, rules);
    let mut agents = BTreeMap::new();
    for (name, agent) in &file.agents {
        match AgentName::parse(name) {
            Ok(name) => {
                let policy = overridden(&defaults, agent);
                complain(&format!("agents.{name}.detection"), &policy.rules, problems);
                agents.insert(name, policy);
            }
            Err(error) => problems.push(Problem::name(format!("agents.{name}"), error.to_string())),
        }
    }
    Policies { defaults, agents }
}

/// The schema knows the bounds of single keys; this is what does not go together.
fn complain(key: &str, rules: &Rules, problems: &mut Vec<Problem>) {
    problems.extend(rules.check().into_iter().map(|problem| Problem::value(key, problem)));
}

fn defaults(file: &Defaults, rules: Rules) -> AgentPolicy {
    let (limits, switch) = (&file.run_limits, &file.kill_switch);
    AgentPolicy {
        run_limits: RunLimits {
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
    }
}

fn overridden(base: &AgentPolicy, file: &Agent) -> AgentPolicy {
    let (limits, switch) = (&file.run_limits, &file.kill_switch);
    let change =
        KillSwitchChange { enabled: switch.enabled, window_size: switch.window_size, threshold: switch.threshold };
    AgentPolicy {
        run_limits: RunLimits {
            max_steps: limits.max_steps.unwrap_or(base.run_limits.max_steps),
            timeout_seconds: limits.timeout_seconds.unwrap_or(base.run_limits.timeout_seconds),
            applies_to: limits.applies_to.map_or(base.run_limits.applies_to, run_kind),
        },
        kill_switch: change.over(base.kill_switch),
        rules: Arc::new(detection::agent_rules(&base.rules, &file.detection)),
    }
}

fn run_kind(runs: LimitedRuns) -> RunKind {
    match runs {
        LimitedRuns::Declared => RunKind::Declared,
        LimitedRuns::All => RunKind::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sandbox::Sandbox;

    #[test]
    fn an_agent_overrides_the_defaults_key_by_key() {
        let text = "[defaults.run_limits]\nmax_steps = 50\n[defaults.kill_switch]\nthreshold = 7\n\
             [agents.bot.run_limits]\ntimeout_seconds = 0\napplies_to = \"all\"\n[agents.\"team:b\".kill_switch]\nenabled = true";
        let policies = Sandbox::new(text).load().unwrap().settings.policies;
        let limits = |max_steps, timeout_seconds, applies_to| RunLimits { max_steps, timeout_seconds, applies_to };
        let named = |name: &str| policies.of(&AgentName::parse(name).unwrap()).clone();
        assert_eq!(named("other").run_limits, limits(50, 120, RunKind::Declared));
        assert_eq!(named("bot").run_limits, limits(50, 0, RunKind::All));
        let switch = |enabled| KillSwitch { enabled, window_size: 20, threshold: 7.0 };
        assert_eq!((named("bot").kill_switch, named("team:b").kill_switch), (switch(false), switch(true)));
        let default = Sandbox::new("").load().unwrap().settings.policies.defaults;
        assert_eq!((default.run_limits, default.kill_switch), (RunLimits::default(), KillSwitch::default()));
    }

    #[test]
    fn says_what_cannot_be_used() {
        for (text, expected) in [
            ("[agents.\"a b\".kill_switch]\nenabled = true", "an agent name has 1 to 64"),
            ("[defaults.kill_switch]\nwindow_size = 4", "expected 5 to 100"),
            ("[agents.bot.kill_switch]\nthreshold = 50.5", "expected 1 to 50"),
            ("[defaults.kill_switch]\nthreshold = \"x\"", "expected a number, found a string"),
            ("[defaults.run_limits]\napplies_to = \"none\"", "expected \"declared\" or \"all\""),
            ("[defaults.run_limits]\nmax_step = 1", "did you mean `max_steps`?"),
        ] {
            let complaint = Sandbox::new(text).complaint();
            assert!(complaint.contains(expected), "{text}\n---\n{complaint}");
        }
    }

    #[test]
    fn the_environment_reaches_them_too() {
        let env = [
            ("SPRAG_DEFAULTS_KILL_SWITCH_THRESHOLD", "12.5"),
            ("SPRAG_AGENTS_MY_BOT_RUN_LIMITS_MAX_STEPS", "7"),
            ("SPRAG_DEFAULTS_RUN_LIMITS_APPLIES_TO", "all"),
        ];
        let text = "[agents.my-bot.kill_switch]\nenabled = true";
        let policies = Sandbox::new(text).with_env(&env).load().unwrap().settings.policies;
        let bot = policies.of(&AgentName::parse("my-bot").unwrap());
        assert_eq!((bot.run_limits.max_steps, bot.run_limits.applies_to), (7, RunKind::All));
        assert_eq!(bot.kill_switch, KillSwitch { enabled: true, window_size: 20, threshold: 12.5 });
        let complaint = Sandbox::new("").with_env(&[("SPRAG_DEFAULTS_KILL_SWITCH_THRESHOLD", "much")]).complaint();
        assert!(complaint.contains("expected a number"), "{complaint}");
    }
}
