//! What is stopped, why, and how far anything may go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sprag_core::policy::{KeptProof, Kill, KillKind};
use sprag_store::history::RunStopped;
use utoipa::ToSchema;

use super::AgentSummary;
use super::policy::{Limits, PolicyRecord, PolicySource};

/// A kill in force, or one that was taken back.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct KillRecord {
    pub(crate) id: String,
    pub(crate) scope: String,
    /// The path that it is limited to.
    #[serde(default)]
    pub(crate) route: Option<String>,
    pub(crate) kind: KillKind,
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) proof: Option<Value>,
}

/// Why a run may not go on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct StopRecord {
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) proof: Option<Value>,
    /// The run above it that was stopped, where it was not stopped itself.
    #[serde(default)]
    pub(crate) through: Option<String>,
}

/// An agent with its policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentDetail {
    #[serde(flatten)]
    pub(crate) agent: AgentSummary,
    /// Why it is inactive.
    pub(crate) reason: Option<String>,
    pub(crate) proof: Option<Value>,
    /// When it was last set active or inactive.
    pub(crate) changed_at: Option<String>,
    /// Kept for programs that knew it before the whole policy was shown.
    pub(crate) run_limits: Limits,
    /// What it may do, everything put together.
    pub(crate) policy: PolicyRecord,
    /// What was set for it over the configuration.
    #[serde(rename = "override")]
    pub(crate) set: Value,
    /// Where parts of the policy come from, by their key; those that are not named come from the defaults.
    pub(crate) sources: BTreeMap<String, PolicySource>,
    /// Nobody knew it before. Said only then.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) created: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl From<&Kill> for KillRecord {
    fn from(kill: &Kill) -> KillRecord {
        let (route, scope) = kill.scope.parts();
        KillRecord {
            id: kill.id.clone(),
            scope: scope.to_string(),
            route: route.map(str::to_owned),
            kind: kill.kind,
            reason: kill.reason.clone(),
            by: kill.by.clone(),
            at: kill.at.to_rfc3339(),
            expires_at: kill.expires_at.map(|end| end.to_rfc3339()),
            proof: kill.proof.as_ref().map(KeptProof::value),
        }
    }
}

impl From<&RunStopped> for StopRecord {
    fn from(stopped: &RunStopped) -> StopRecord {
        StopRecord {
            reason: stopped.reason.clone(),
            by: stopped.by.clone(),
            at: stopped.at.to_rfc3339(),
            expires_at: stopped.expires_at.map(|end| end.to_rfc3339()),
            proof: stopped.proof.clone(),
            through: stopped.through.as_ref().map(ToString::to_string),
        }
    }
}
