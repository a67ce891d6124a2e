//! What the forms of the dashboard ask for, done by the handlers of the API: there is one way to do a thing.

use axum::extract::State;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sprag_core::id::AgentName;

use super::body::Body;
use super::model::{AccountRecord, AgentDetail, KeyRecord, KillRecord, Listing, PolicyRecord, TokenRecord, TrialSums};
use super::params::{Names, Params};
use super::version::IfMatch;
use super::{agents, budgets, evidence, keys, kills, tokens};
use crate::acts::Based;
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};

pub(in crate::admin) async fn agent(admin: &Shared, name: &AgentName) -> Result<AgentDetail, Problem> {
    Ok(agents::show(State(admin.clone()), Names(name.to_string())).await?.0)
}

/// Makes an agent ahead of its first call.
pub(in crate::admin) async fn add_agent(admin: &Shared, operator: Operator, name: &str) -> Result<(), Problem> {
    let order = read(json!({ "name": name }))?;
    agents::add(State(admin.clone()), operator, Body(order)).await.map(drop)
}

/// Changes an agent as `PATCH /agents/{name}` does.
pub(in crate::admin) async fn change_agent(
    admin: &Shared,
    operator: Operator,
    name: &AgentName,
    change: Value,
) -> Result<(), Problem> {
    change_agent_if(admin, operator, name, change, Based::OnAnything).await
}

/// The same where what is set is what the change is based on; otherwise the problem is a 412.
pub(in crate::admin) async fn change_agent_if(
    admin: &Shared,
    operator: Operator,
    name: &AgentName,
    change: Value,
    based: Based,
) -> Result<(), Problem> {
    let path = Names(name.to_string());
    agents::change(State(admin.clone()), operator, IfMatch(based), path, Body(read(change)?)).await.map(drop)
}

/// Corrects what an account has spent.
pub(in crate::admin) async fn adjust(
    admin: &Shared,
    operator: Operator,
    order: Value,
) -> Result<AccountRecord, Problem> {
    Ok(budgets::adjust(State(admin.clone()), operator, Body(read(order)?)).await?.0)
}

pub(in crate::admin) async fn keys(admin: &Shared, wanted: Value) -> Result<Listing<KeyRecord>, Problem> {
    Ok(keys::list(State(admin.clone()), Params(read(wanted)?)).await?.0)
}

/// Makes a key; the record has its secret.
pub(in crate::admin) async fn create_key(
    admin: &Shared,
    operator: Operator,
    order: Value,
) -> Result<KeyRecord, Problem> {
    Ok(keys::create(State(admin.clone()), operator, Body(read(order)?)).await?.0)
}

pub(in crate::admin) async fn revoke_key(admin: &Shared, operator: Operator, id: &str) -> Result<(), Problem> {
    let plea = Params(read(json!({}))?);
    keys::revoke(State(admin.clone()), operator, Names(id.to_owned()), plea).await.map(drop)
}

/// Gives a key a new secret; the record has it.
pub(in crate::admin) async fn rotate_key(
    admin: &Shared,
    operator: Operator,
    id: &str,
    grace_seconds: u32,
) -> Result<KeyRecord, Problem> {
    let rotation = Body(read(json!({ "grace_seconds": grace_seconds }))?);
    Ok(keys::rotate(State(admin.clone()), operator, Names(id.to_owned()), rotation).await?.0)
}

pub(in crate::admin) async fn kills(admin: &Shared, wanted: Value) -> Result<Listing<KillRecord>, Problem> {
    Ok(kills::list(State(admin.clone()), Params(read(wanted)?)).await?.0)
}

/// Stops a scope.
pub(in crate::admin) async fn kill(admin: &Shared, operator: Operator, order: Value) -> Result<(), Problem> {
    kills::add(State(admin.clone()), operator, Body(read(order)?)).await.map(drop)
}

pub(in crate::admin) async fn lift(admin: &Shared, operator: Operator, id: &str) -> Result<(), Problem> {
    let plea = Params(read(json!({}))?);
    kills::lift(State(admin.clone()), operator, Names(id.to_owned()), plea).await.map(drop)
}

/// What other thresholds would have done to the latest runs on record.
pub(in crate::admin) async fn try_thresholds(admin: &Shared, wanted: Value) -> Result<TrialSums, Problem> {
    Ok(evidence::try_all(State(admin.clone()), Params(read(wanted)?)).await?.0)
}

pub(in crate::admin) async fn tokens(admin: &Shared, wanted: Value) -> Result<Listing<TokenRecord>, Problem> {
    Ok(tokens::list(State(admin.clone()), Params(read(wanted)?)).await?.0)
}

/// Makes an admin token; the record has its secret.
pub(in crate::admin) async fn create_token(
    admin: &Shared,
    operator: Operator,
    order: Value,
) -> Result<TokenRecord, Problem> {
    Ok(tokens::create(State(admin.clone()), operator, Body(read(order)?)).await?.0)
}

pub(in crate::admin) async fn revoke_token(admin: &Shared, operator: Operator, id: &str) -> Result<(), Problem> {
    let plea = Params(read(json!({}))?);
    tokens::revoke(State(admin.clone()), operator, Names(id.to_owned()), plea).await.map(drop)
}

impl Admin {
    /// The policy of an agent without what is set for it here, in the form of `[agents.NAME]`.
    pub(in crate::admin) fn configured_policy(&self, agent: &AgentName) -> Value {
        let settings = self.app.settings.load();
        let policy = settings.policies.of(agent);
        serde_json::to_value(PolicyRecord::new(policy, &policy.rules_in_force())).unwrap_or_default()
    }
}

/// An order as a program would send it.
fn read<T: DeserializeOwned>(order: Value) -> Result<T, Problem> {
    serde_json::from_str(&order.to_string()).map_err(|error| Problem::bad_request(error.to_string()))
}
