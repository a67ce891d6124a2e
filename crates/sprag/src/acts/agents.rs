//! What is done about agents: setting them active or inactive, and what they may do.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value};
use sprag_core::event::{Act, ActKind, EventKind};
use sprag_core::id::AgentName;
use sprag_core::policy::{AgentStanding, DeactivatedBy, KillScope, KillSwitch, KillSwitchChange, bounded_reason};
use sprag_store::StoreError;

use super::hash_of;
use crate::app::App;
use crate::config::Problems;
use crate::config::agent_override::{merged, overridden};

/// Why a policy was not set.
#[derive(Debug, thiserror::Error)]
pub enum PolicyRefused {
    /// It makes no sense. Keys are relative to the agent: `budget.daily_limit`.
    #[error(transparent)]
    Invalid(Problems),
    /// An agent that was to be made is known already.
    #[error("an agent of this name is known already")]
    Known,
    /// It was to follow on something that no longer holds.
    #[error("what is set for the agent is no longer what the change is based on")]
    Overtaken,
    /// It could not be put on record.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a change of a policy was thought out on. Another state of it refuses the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Based {
    /// On whatever there is.
    #[default]
    OnAnything,
    /// On one of these versions, as `version_of` gives them.
    On(Vec<String>),
}

impl App {
    /// Lets an agent call again; what it did so far is no longer held against it.
    ///
    /// # Errors
    /// When it cannot be written; then it stays inactive.
    pub async fn activate(self: &Arc<Self>, agent: AgentName, by: String) -> Result<Arc<AgentStanding>, StoreError> {
        self.blocking(move |app| {
            let now = app.clock.now();
            // Before anybody sees it active: its first call must not meet what it did before.
            app.state.forget_agent(&agent);
            app.share_forgotten_agent(&agent);
            let standing = app.catalog.set_agent(&agent, |standing| standing.activated(now))?;
            app.record_agent_act(EventKind::Admin, &agent, ActKind::Activate, by, &standing, None);
            Ok(standing)
        })
        .await
    }

    /// Refuses an agent's calls from now on. Those under way end as they would.
    ///
    /// # Errors
    /// When it cannot be written; then it holds until the process ends.
    pub async fn deactivate(
        self: &Arc<Self>,
        agent: AgentName,
        by: String,
        reason: String,
    ) -> Result<Arc<AgentStanding>, StoreError> {
        self.blocking(move |app| app.deactivate_now(&agent, DeactivatedBy::Manual, by, &reason, None)).await
    }

    /// Changes an agent's kill switch, above what the configuration says.
    ///
    /// # Errors
    /// When it cannot be written; then nothing changes.
    pub async fn set_kill_switch(
        self: &Arc<Self>,
        agent: AgentName,
        change: KillSwitchChange,
        by: String,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        self.set_kill_switch_if(agent, change, by, Based::OnAnything).await
    }

    /// The same where what is set is what the change is based on.
    ///
    /// # Errors
    /// When it is not, or when it cannot be written; then nothing changes.
    pub async fn set_kill_switch_if(
        self: &Arc<Self>,
        agent: AgentName,
        change: KillSwitchChange,
        by: String,
        based: Based,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        self.blocking(move |app| {
            let set = |standing: &AgentStanding| AgentStanding {
                kill_switch: change.after(standing.kill_switch),
                ..standing.clone()
            };
            let standing = app.change_policy(&agent, || {
                app.check_base(&agent, &based)?;
                app.catalog.set_agent(&agent, set).map_err(PolicyRefused::from)
            })?;
            let detail = serde_json::to_value(change).ok();
            app.record_agent_act(EventKind::Admin, &agent, ActKind::SetKillSwitch, by, &standing, detail);
            Ok(standing)
        })
        .await
    }

    /// Changes what is set for an agent over the configuration, by a merge patch in the form of `[agents.NAME]`. Effective
    /// from the next request on.
    ///
    /// # Errors
    /// When the outcome makes no sense or cannot be written; then nothing changes.
    pub async fn set_policy(
        self: &Arc<Self>,
        agent: AgentName,
        patch: Value,
        by: String,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        self.set_policy_if(agent, patch, by, Based::OnAnything).await
    }

    /// The same where what is set is what the patch is based on.
    ///
    /// # Errors
    /// When it is not, and those of [`App::set_policy`]; then nothing changes.
    pub async fn set_policy_if(
        self: &Arc<Self>,
        agent: AgentName,
        patch: Value,
        by: String,
        based: Based,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        self.blocking(move |app| app.set_policy_now(&agent, patch, by, false, &based)).await
    }

    /// Makes an agent ahead of its first call, with what is set for it.
    ///
    /// # Errors
    /// When it is known already, or when what is set makes no sense or cannot be written; then nothing changes.
    pub async fn create_agent(
        self: &Arc<Self>,
        agent: AgentName,
        policy: Value,
        by: String,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        self.blocking(move |app| app.set_policy_now(&agent, policy, by, true, &Based::OnAnything)).await
    }

    /// The kill switch of an agent, as configuration and catalog have it together.
    #[must_use]
    pub fn kill_switch(&self, agent: &AgentName) -> KillSwitch {
        self.policy(agent).policy.kill_switch
    }

    fn set_policy_now(
        &self,
        agent: &AgentName,
        patch: Value,
        by: String,
        is_new: bool,
        based: &Based,
    ) -> Result<Arc<AgentStanding>, PolicyRefused> {
        let change = || {
            self.check_base(agent, based)?;
            let settings = self.settings.load();
            let snapshot = self.catalog.snapshot();
            let known = snapshot.agent(agent);
            if is_new && (known.is_some() || settings.policies.agents.contains_key(agent)) {
                return Err(PolicyRefused::Known);
            }
            let set = merged(&known.map(|standing| set_for(standing)).unwrap_or_default(), &patch);
            overridden(settings.policies.of(agent), agent, &set)
                .map_err(|problems| PolicyRefused::Invalid(Problems(problems)))?;
            let (kill_switch, policy) = kept_apart(set);
            let write = |standing: &AgentStanding| AgentStanding { kill_switch, policy, ..standing.clone() };
            Ok(self.catalog.set_agent(agent, write)?)
        };
        let standing = self.change_policy(agent, change)?;
        self.record_agent_act(EventKind::Admin, agent, ActKind::SetPolicy, by, &standing, Some(patch));
        Ok(standing)
    }

    /// Sets an agent inactive that a command's kill switch stopped. That is on record already.
    pub(crate) fn adopt_deactivation(&self, agent: &AgentName, act: &Act) {
        let (reason, proof, now) = (bounded_reason(&act.reason), act.proof.clone(), self.clock.now());
        let change = |standing: &AgentStanding| standing.deactivated(DeactivatedBy::KillSwitch, reason, proof, now);
        if let Err(error) = self.catalog.set_agent(agent, change) {
            tracing::error!(%error, %agent, "an agent could not be set inactive");
        }
    }

    /// Whether a change still follows on what it is based on. Only in `change_policy` nothing can come in between.
    pub(crate) fn check_base(&self, agent: &AgentName, based: &Based) -> Result<(), PolicyRefused> {
        let Based::On(versions) = based else { return Ok(()) };
        let snapshot = self.catalog.snapshot();
        let now = version_of(
            &snapshot.agent(agent).map_or_else(|| set_for(&AgentStanding::default()), |standing| set_for(standing)),
        );
        if versions.contains(&now) { Ok(()) } else { Err(PolicyRefused::Overtaken) }
    }

    pub(super) fn deactivate_now(
        &self,
        agent: &AgentName,
        switch: DeactivatedBy,
        by: String,
        reason: &str,
        proof: Option<Value>,
    ) -> Result<Arc<AgentStanding>, StoreError> {
        let now = self.clock.now();
        let reason = bounded_reason(reason);
        let change = |standing: &AgentStanding| standing.deactivated(switch, reason, proof, now);
        let set = self.catalog.set_agent(agent, change);
        // What the disk refused holds too.
        let snapshot = self.catalog.snapshot();
        let in_force = set.as_ref().ok().or_else(|| snapshot.agent(agent)).filter(|standing| !standing.active);
        if let Some(standing) = in_force {
            let kind = if switch == DeactivatedBy::KillSwitch { EventKind::KillSwitch } else { EventKind::Admin };
            self.record_agent_act(kind, agent, ActKind::Deactivate, by, standing, None);
        }
        set
    }

    fn record_agent_act(
        &self,
        kind: EventKind,
        agent: &AgentName,
        what: ActKind,
        by: String,
        standing: &AgentStanding,
        detail: Option<Value>,
    ) {
        let scope = KillScope::Agent(agent.clone());
        let act = Act {
            what,
            by,
            target: scope.to_string(),
            reason: standing.reason.clone().unwrap_or_default(),
            proof: standing.proof.clone(),
            expires_at: None,
            detail,
        };
        self.record_act(kind, None, act, &scope);
    }
}

/// Everything that is set for an agent, its kill switch included, in the form of `[agents.NAME]`.
pub(crate) fn set_for(standing: &AgentStanding) -> Value {
    let switch = serde_json::to_value(standing.kill_switch).unwrap_or_default();
    let policy = standing.policy.clone().unwrap_or_else(|| Value::Object(Map::new()));
    merged(&policy, &serde_json::json!({ "kill_switch": switch }))
}

/// The version of what is set for an agent: the same for the same, and another for anything else.
pub(crate) fn version_of(set: &Value) -> String {
    fingerprint(&set.to_string())
}

/// A short text that stands for one of any length.
pub(crate) fn fingerprint(text: &str) -> String {
    hash_of(text.as_bytes()).iter().take(16).fold(String::new(), |mut print, byte| {
        let _ = write!(print, "{byte:02x}");
        print
    })
}

/// The kill switch has a place of its own on record.
fn kept_apart(mut set: Value) -> (KillSwitchChange, Option<Value>) {
    let map = set.as_object_mut();
    let switch = map.and_then(|map| map.remove("kill_switch"));
    let switch = switch.and_then(|switch| serde_json::from_value(switch).ok()).unwrap_or_default();
    let is_empty = set.as_object().is_none_or(Map::is_empty);
    (switch, (!is_empty).then_some(set))
}
