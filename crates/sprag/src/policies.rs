//! The policy of every agent, put together once and read by requests without a lock: what the configuration says,
//! and above it what was set through the admin API.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use sprag_core::dlp::DlpPolicy;
use sprag_core::id::AgentName;
use sprag_core::loops::Rules;
use sprag_core::policy::{AgentStanding, KillSwitchChange, Policy};
use sprag_store::catalog::Snapshot;

use crate::config::agent_override::overridden;
use crate::config::{Policies, Problem};

/// All policies at one moment. A value: it never changes.
#[derive(Debug)]
pub struct PolicyBook {
    defaults: Arc<PolicyInForce>,
    /// Those that differ from the defaults.
    agents: HashMap<AgentName, Arc<PolicyInForce>>,
}

/// A policy, with what requests need of it worked out.
#[derive(Debug)]
pub struct PolicyInForce {
    /// The policy.
    pub policy: Policy,
    /// Its rules of detection with the kill switch in them.
    pub rules: Arc<Rules>,
    /// What is done about each kind of sensitive data; None where nothing is looked for.
    pub dlp: Option<Arc<DlpPolicy>>,
}

impl PolicyBook {
    /// Puts configuration and catalog together. `before` is the book in force: an agent for which something is set that
    /// does not go with the new configuration keeps its policy from there.
    #[must_use]
    pub fn new(configured: &Policies, catalog: &Snapshot, before: Option<&PolicyBook>) -> PolicyBook {
        let mut book = PolicyBook {
            defaults: Arc::new(PolicyInForce::new(configured.defaults.clone())),
            agents: HashMap::with_capacity(configured.agents.len()),
        };
        for name in configured.agents.keys() {
            book.put(name, configured, None, None);
        }
        for (name, standing) in catalog.agents() {
            let last = before.and_then(|book| book.agents.get(name)).cloned();
            book.put(name, configured, Some(standing), last);
        }
        book
    }

    /// The same with one agent's policy put together again. The others are shared, not made anew.
    #[must_use]
    pub fn with(&self, agent: &AgentName, configured: &Policies, standing: Option<&AgentStanding>) -> PolicyBook {
        let mut book = PolicyBook { defaults: self.defaults.clone(), agents: self.agents.clone() };
        book.put(agent, configured, standing, self.agents.get(agent).cloned());
        book
    }

    /// The policy of an agent.
    #[must_use]
    pub fn of(&self, agent: &AgentName) -> &Arc<PolicyInForce> {
        self.agents.get(agent).unwrap_or(&self.defaults)
    }

    fn put(
        &mut self,
        agent: &AgentName,
        configured: &Policies,
        standing: Option<&AgentStanding>,
        last: Option<Arc<PolicyInForce>>,
    ) {
        let base = configured.agents.get(agent);
        let set = standing.filter(|standing| is_set(standing));
        if base.is_none() && set.is_none() {
            self.agents.remove(agent);
            return;
        }
        let mut policy = base.unwrap_or(&configured.defaults).clone();
        if let Some(standing) = set {
            if let Some(value) = &standing.policy {
                policy = match overridden(&policy, agent, value) {
                    Ok(with_it) => with_it,
                    // Written by another version, or at odds with a new configuration.
                    Err(problems) => match last {
                        Some(last) => {
                            complain(agent, "everything", &problems, "the agent keeps the policy it had");
                            last.policy.clone()
                        }
                        None => as_far_as_possible(policy, agent, value),
                    },
                };
            }
            policy.kill_switch = standing.kill_switch.over(policy.kill_switch);
        }
        self.agents.insert(agent.clone(), Arc::new(PolicyInForce::new(policy)));
    }
}

impl PolicyInForce {
    fn new(policy: Policy) -> PolicyInForce {
        let dlp = (!policy.dlp.is_off()).then(|| Arc::new(policy.dlp.resolve()));
        PolicyInForce { rules: policy.rules_in_force(), dlp, policy }
    }
}

/// What is set, table by table, without those that cannot be used.
fn as_far_as_possible(configured: Policy, agent: &AgentName, set: &Value) -> Policy {
    let mut policy = configured;
    for (name, value) in set.as_object().into_iter().flatten() {
        let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        match overridden(&policy, agent, &alone) {
            Ok(with_it) => policy = with_it,
            Err(problems) => complain(agent, name, &problems, "this part is ignored, and the rest holds"),
        }
    }
    policy
}

fn complain(agent: &AgentName, part: &str, problems: &[Problem], outcome: &str) {
    tracing::error!(
        agent.name = %agent,
        part,
        problems = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        outcome,
        "what is set for this agent cannot be used"
    );
}

fn is_set(standing: &AgentStanding) -> bool {
    standing.policy.is_some() || standing.kill_switch != KillSwitchChange::default()
}

#[cfg(test)]
mod tests;
