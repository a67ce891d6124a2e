//! `/agents`: what agents did, where they stand, and setting that.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_core::id::AgentName;
use sprag_core::policy::KillSwitchChange;
use sprag_store::history::AgentRow;
use sprag_store::{StoreError, catalog::Snapshot};
use utoipa::ToSchema;

use super::body::{Body, object};
use super::model::{AgentDetail, AgentSummary, Limits, Listing, PolicyRecord, sources};
use super::params::{self, Names, Params};
use super::version::{IfMatch, Versioned, overtaken};
use crate::acts::{PolicyRefused, set_for};
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::roster::{AgentFilter, AgentState, Listed};
use crate::admin::{Admin, Shared};

/// What is to be changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AgentChange)]
pub(super) struct Change {
    active: Option<bool>,
    /// Why it is set inactive.
    reason: Option<String>,
    #[serde(default, deserialize_with = "object")]
    kill_switch: Option<KillSwitchChange>,
    /// A merge patch over what is set, in the form of `[agents.NAME]`.
    policy: Option<Value>,
    by: Option<String>,
}

/// An agent to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAgent {
    #[schema(required = true, value_type = String)]
    name: Option<String>,
    /// What it may do, in the form of `[agents.NAME]`.
    policy: Option<Value>,
    by: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// A part of the name, whatever its case.
    name: Option<String>,
    #[param(inline)]
    state: Option<AgentState>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Agents, the latest seen first, then those that are only set up.
#[utoipa::path(
    get,
    path = "/agents",
    operation_id = "list_agents",
    tag = "agents",
    params(Wanted),
    responses(
        (status = 200, description = "A page of agents", body = Listing<AgentSummary>),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<AgentSummary>>, Problem> {
    let limit = params::rows(wanted.limit)?;
    let filter = AgentFilter { name_part: wanted.name.unwrap_or_default(), state: wanted.state };
    let page = admin.agents(filter, wanted.cursor, limit).await?;
    Ok(Json(Listing { items: admin.summaries(&page.agents), next: page.next }))
}

/// An agent and what it may do.
#[utoipa::path(
    get,
    path = "/agents/{name}",
    operation_id = "get_agent",
    tag = "agents",
    params(("name" = String, Path, description = "The name of the agent")),
    responses(
        (status = 200, description = "The agent", body = AgentDetail, headers(("ETag" = String, description = "The version of what is set for it (`override`)"))),
        (status = 404, description = "No such agent is known"),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn show(State(admin): State<Shared>, Names(name): Names<String>) -> Result<Versioned, Problem> {
    let agent = agent_of(&name)?;
    let row = admin.agent_row(&agent).await?;
    if row.is_none() && !admin.is_set_up(&agent) {
        return Err(Problem::not_found("no agent of this name is on record"));
    }
    Ok(Versioned(admin.detail(&agent, row.as_ref())))
}

/// Makes an agent ahead of its first call.
#[utoipa::path(
    post,
    path = "/agents",
    operation_id = "create_agent",
    tag = "agents",
    request_body = NewAgent,
    responses(
        (status = 200, description = "The agent", body = AgentDetail, headers(("ETag" = String, description = "The version of what is set for it (`override`)"))),
        (status = 409, description = "The agent is known already, or there are too many"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn add(
    State(admin): State<Shared>,
    operator: Operator,
    Body(new): Body<NewAgent>,
) -> Result<Versioned, Problem> {
    let agent = params::agent_name(new.name.as_deref())?;
    let agent = agent.ok_or_else(|| Problem::bad_request("say what the agent is called in `name`"))?;
    let by = operator.acting(new.by)?;
    if admin.agent_row(&agent).await?.is_some() {
        return Err(known(&agent));
    }
    let policy = new.policy.unwrap_or_else(|| json!({}));
    admin.app.create_agent(agent.clone(), policy, by).await.map_err(|error| refused(&agent, error))?;
    Ok(Versioned(AgentDetail { created: true, ..admin.detail(&agent, None) }))
}

/// Sets an agent active or inactive, and what it may do.
#[utoipa::path(
    patch,
    path = "/agents/{name}",
    operation_id = "change_agent",
    tag = "agents",
    params(
        ("name" = String, Path, description = "The name of the agent"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` that the change is based on. Where what is set has another version by now, nothing is changed"),
    ),
    request_body = Change,
    responses(
        (status = 200, description = "The agent", body = AgentDetail, headers(("ETag" = String, description = "The version of what is set for it (`override`)"))),
        (status = 404, description = "A name is missing in the path"),
        (status = 409, description = "There are too many agents"),
        (status = 412, description = "What is set has changed since the version in `If-Match`"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn change(
    State(admin): State<Shared>,
    operator: Operator,
    IfMatch(mut based): IfMatch,
    Names(name): Names<String>,
    Body(change): Body<Change>,
) -> Result<Versioned, Problem> {
    let agent = agent_of(&name)?;
    let by = operator.acting(change.by)?;
    if let Some(problem) = change.kill_switch.and_then(KillSwitchChange::problem) {
        return Err(Problem::bad_request(format!("`kill_switch`: {problem}")));
    }
    let was_set_up = admin.is_set_up(&agent);
    let refused = |error| refused(&agent, error);
    admin.app.check_base(&agent, &based).map_err(refused)?;
    // First, because it can be refused: nothing is half done. What follows is based on what it has set.
    if let Some(patch) = change.policy {
        let based = std::mem::take(&mut based);
        admin.app.set_policy_if(agent.clone(), patch, by.clone(), based).await.map_err(refused)?;
    }
    if let Some(kill_switch) = change.kill_switch {
        admin.app.set_kill_switch_if(agent.clone(), kill_switch, by.clone(), based).await.map_err(refused)?;
    }
    match change.active {
        Some(true) => drop(admin.app.activate(agent.clone(), by).await?),
        Some(false) => {
            let reason = change.reason.unwrap_or_else(|| "manual".to_owned());
            let done = admin.app.deactivate(agent.clone(), by, reason).await;
            done.map_err(|error| match error {
                StoreError::Full { .. } => error.into(),
                other => Problem::unwritten(&other),
            })?;
        }
        None => {}
    }
    let row = admin.agent_row(&agent).await?;
    let created = !was_set_up && row.is_none() && admin.is_set_up(&agent);
    Ok(Versioned(AgentDetail { created, ..admin.detail(&agent, row.as_ref()) }))
}

impl Admin {
    /// Listed agents with where they stand.
    pub(in crate::admin) fn summaries(&self, agents: &[Listed]) -> Vec<AgentSummary> {
        let snapshot = self.app.catalog.snapshot();
        agents.iter().map(|agent| self.summary(&snapshot, &agent.name, agent.row.as_ref())).collect()
    }

    /// The catalog or the configuration knows it.
    fn is_set_up(&self, agent: &AgentName) -> bool {
        self.app.catalog.snapshot().agent(agent).is_some()
            || self.app.settings.load().policies.agents.contains_key(agent)
    }

    async fn agent_row(&self, agent: &AgentName) -> Result<Option<AgentRow>, Problem> {
        let agent = agent.clone();
        self.records.read(move |history| history.agent(&agent)).await
    }

    fn summary(&self, snapshot: &Snapshot, agent: &AgentName, row: Option<&AgentRow>) -> AgentSummary {
        AgentSummary::new(agent, row, snapshot.agent(agent).map(|standing| &**standing), self.app.kill_switch(agent))
    }

    fn detail(&self, agent: &AgentName, row: Option<&AgentRow>) -> AgentDetail {
        let snapshot = self.app.catalog.snapshot();
        let standing = snapshot.agent(agent).cloned().unwrap_or_default();
        let in_force = self.app.policy(agent);
        let set = set_for(&standing);
        AgentDetail {
            agent: self.summary(&snapshot, agent, row),
            reason: standing.reason.clone(),
            proof: standing.proof.clone(),
            changed_at: standing.at.map(|at| at.to_rfc3339()),
            run_limits: Limits::from(in_force.policy.run_limits),
            policy: PolicyRecord::new(&in_force.policy, &in_force.rules),
            sources: sources(self.app.settings.load().policies.written.get(agent), &set),
            set,
            created: false,
        }
    }
}

fn agent_of(name: &str) -> Result<AgentName, Problem> {
    params::agent_name(Some(name))?.ok_or_else(|| Problem::not_found("an agent has a name"))
}

fn known(agent: &AgentName) -> Problem {
    Problem::conflict(format!("agent `{agent}` is known already; change it with PATCH or `sprag agents set`"))
}

fn refused(agent: &AgentName, error: PolicyRefused) -> Problem {
    match error {
        PolicyRefused::Invalid(problems) => Problem::bad_policy(problems),
        PolicyRefused::Known => known(agent),
        PolicyRefused::Overtaken => overtaken(),
        PolicyRefused::Store(error) => error.into(),
    }
}
