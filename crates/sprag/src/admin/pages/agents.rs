//! The agents: what they did, where they stand, and the switches of both.

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::id::AgentName;
use sprag_core::policy::{DeactivatedBy, KillSwitchChange};

use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api;
use crate::admin::api::model::AgentSummary;
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

#[derive(Template)]
#[template(path = "agents.html")]
struct Agents {
    shell: Shell,
    agents: Vec<AgentLine>,
}

/// An agent in the table.
struct AgentLine {
    name: String,
    href: String,
    is_active: bool,
    state: &'static str,
    /// How the state is coloured.
    tone: &'static str,
    runs: String,
    steps: String,
    blocked: String,
    cost: String,
    last: String,
    is_armed: bool,
    window_size: u32,
    threshold: f64,
}

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct Switch {
    name: String,
    /// Sent only when it is ticked.
    enabled: Option<String>,
    window_size: u32,
    threshold: f64,
}

pub(super) async fn show(State(admin): State<Shared>, visitor: Visitor) -> Page {
    let agents = admin.agents().await?.iter().map(AgentLine::new).collect();
    Ok(html(StatusCode::OK, &Agents { shell: admin.shell("agents", visitor), agents }))
}

pub(super) async fn activate(State(admin): State<Shared>, operator: Operator, Form(named): Form<Named>) -> Page {
    admin.app.activate(agent(&named.name)?, operator.name).await.map_err(Problem::from)?;
    Ok(Redirect::to("/agents").into_response())
}

pub(super) async fn deactivate(State(admin): State<Shared>, operator: Operator, Form(named): Form<Named>) -> Page {
    let done = admin.app.deactivate(agent(&named.name)?, operator.name, "manual".to_owned()).await;
    done.map_err(|error| Problem::unwritten(&error))?;
    Ok(Redirect::to("/agents").into_response())
}

pub(super) async fn set_kill_switch(
    State(admin): State<Shared>,
    operator: Operator,
    Form(switch): Form<Switch>,
) -> Page {
    let change = KillSwitchChange {
        enabled: Some(switch.enabled.is_some()),
        window_size: Some(switch.window_size),
        threshold: Some(switch.threshold),
    };
    if let Some(problem) = change.problem() {
        return Err(Problem::bad_request(problem).into());
    }
    admin.app.set_kill_switch(agent(&switch.name)?, change, operator.name).await.map_err(Problem::from)?;
    Ok(Redirect::to("/agents").into_response())
}

fn agent(name: &str) -> Result<AgentName, Problem> {
    api::agent_name(Some(name))?.ok_or_else(|| Problem::bad_request("an agent has a name"))
}

impl AgentLine {
    fn new(agent: &AgentSummary) -> AgentLine {
        let (state, tone) = match (agent.active, agent.deactivated_by) {
            (true, _) => ("Active", "good"),
            (false, Some(DeactivatedBy::KillSwitch)) => ("Deactivated by Kill Switch", "bad"),
            (false, _) => ("Inactive", "odd"),
        };
        AgentLine {
            href: link::to("/runs", &[("agent", Some(&agent.name))]),
            name: agent.name.clone(),
            is_active: agent.active,
            state,
            tone,
            runs: show::count(agent.runs),
            steps: show::count(agent.steps),
            blocked: show::count(agent.blocked),
            cost: show::usd_known(agent.cost_usd.0, agent.unpriced_steps),
            last: agent.last_at.clone().unwrap_or_else(|| "never".to_owned()),
            is_armed: agent.kill_switch.enabled,
            window_size: agent.kill_switch.window_size,
            threshold: agent.kill_switch.threshold,
        }
    }
}
