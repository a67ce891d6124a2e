//! The agents: where they stand, what they did, and setting them active or inactive.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::json;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{DeactivatedBy, Window};
use sprag_core::time::Timestamp;

use super::field::{Field, Form as Brought};
use super::rows::{Moment, Money};
use super::{Page, Shell, html, link, news_at};
use crate::admin::Shared;
use crate::admin::api::model::AgentSummary;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::admin::roster::{AgentFilter, AgentState};
use crate::show;

const ROWS: u32 = 100;

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// A part of the name.
    q: Option<String>,
    state: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "agents.html")]
struct Agents {
    shell: Shell,
    /// Where the page asks for news of itself.
    live: &'static str,
    agents: Vec<AgentLine>,
    q: String,
    states: Field,
    /// There are agents, whatever is looked for.
    has_any: bool,
    /// The first page, when this is a later one.
    newest: Option<String>,
    older: Option<String>,
    proxy_port: u16,
    new: Field,
}

/// An agent in the table.
struct AgentLine {
    name: String,
    href: String,
    is_active: bool,
    state: &'static str,
    /// How the state is coloured.
    tone: &'static str,
    today: Money,
    runs: String,
    stops: u64,
    last: Option<Moment>,
    is_armed: bool,
    window_size: u32,
    threshold: f64,
}

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
    reason: Option<String>,
    /// Where the button stands: `agent` for the page of the agent.
    from: Option<String>,
}

const STATES: [(&str, &str); 5] = [
    ("", "any state"),
    ("active", "active"),
    ("inactive", "inactive"),
    ("killed", "deactivated by kill switch"),
    ("armed", "kill switch on"),
];

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    list(&admin, visitor, wanted, StatusCode::OK, &Brought::new(), Vec::new()).await
}

async fn list(
    admin: &Shared,
    visitor: Visitor,
    wanted: Wanted,
    status: StatusCode,
    brought: &Brought,
    mut complaints: Vec<(String, String)>,
) -> Page {
    let (q, state) = (wanted.q.unwrap_or_default(), wanted.state.unwrap_or_default());
    let filter = AgentFilter { name_part: q.trim().to_owned(), state: state_of(&state)? };
    let is_narrowed = !filter.name_part.is_empty() || filter.state.is_some() || wanted.cursor.is_some();
    let listed = admin.agents(filter, wanted.cursor.clone(), ROWS).await?;
    let has_any = !listed.agents.is_empty() || (is_narrowed && !admin.agent_names().await?.is_empty());
    let since = admin.app.span_of(Window::Day).map_or(Timestamp(0), |day| day.start);
    let names: Vec<AgentName> = listed.agents.iter().map(|agent| agent.name.clone()).collect();
    let spent = admin.records.read_recorded(move |history| history.spent_by(&names, since)).await?;
    let spent: HashMap<AgentName, NanoUsd> = spent.into_iter().collect();
    let now = admin.app.clock.now();
    let here = |cursor: Option<&str>| {
        link::to("/agents", &[("q", Some(q.trim())), ("state", Some(&state)), ("cursor", cursor)])
    };
    let new =
        Field::new("name", "Name").hint("1 to 64 letters, digits and . _ - : @").brought(brought, &mut complaints);
    let page = Agents {
        shell: admin.shell("agents", visitor),
        live: news_at(status, "/agents"),
        has_any,
        agents: admin.summaries(&listed.agents).iter().map(|agent| AgentLine::new(agent, &spent, now)).collect(),
        newest: wanted.cursor.is_some().then(|| here(None)),
        older: listed.next.map(|next| here(Some(&next))),
        states: Field::new("state", "State").choices(STATES).holding(&state),
        q,
        proxy_port: admin.addresses.proxy.port(),
        new,
    };
    Ok(html(status, &page))
}

/// The state that a listing is narrowed to; an empty word counts as absent.
fn state_of(word: &str) -> Result<Option<AgentState>, Problem> {
    match word {
        "" => Ok(None),
        "active" => Ok(Some(AgentState::Active)),
        "inactive" => Ok(Some(AgentState::Inactive)),
        "killed" => Ok(Some(AgentState::Killed)),
        "armed" => Ok(Some(AgentState::Armed)),
        _ => Err(Problem::bad_request("`state` is one of active, inactive, killed, armed")),
    }
}

/// Makes an agent ahead of its first call.
pub(super) async fn add(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Form(brought): Form<Brought>,
) -> Page {
    let name = brought.get("name").map(|name| name.trim().to_owned()).unwrap_or_default();
    match desk::add_agent(&admin, operator, &name).await {
        Ok(()) => Ok(Redirect::to(&link::to("/agent", &[("name", Some(&name))])).into_response()),
        Err(problem) if problem.status == StatusCode::BAD_REQUEST || problem.status == StatusCode::CONFLICT => {
            let complaints = vec![("name".to_owned(), problem.detail.clone().into_owned())];
            list(&admin, visitor, Wanted::default(), problem.status, &brought, complaints).await
        }
        Err(problem) => Err(problem.into()),
    }
}

pub(super) async fn activate(State(admin): State<Shared>, operator: Operator, Form(named): Form<Named>) -> Page {
    desk::change_agent(&admin, operator, &agent(&named.name)?, json!({ "active": true })).await?;
    Ok(Redirect::to(&named.back()).into_response())
}

pub(super) async fn deactivate(State(admin): State<Shared>, operator: Operator, Form(named): Form<Named>) -> Page {
    let reason = named.reason.clone().filter(|reason| !reason.trim().is_empty());
    let change = json!({ "active": false, "reason": reason.unwrap_or_else(|| "manual".to_owned()) });
    desk::change_agent(&admin, operator, &agent(&named.name)?, change).await?;
    Ok(Redirect::to(&named.back()).into_response())
}

pub(super) fn agent(name: &str) -> Result<AgentName, Problem> {
    api::agent_name(Some(name))?.ok_or_else(|| Problem::bad_request("an agent has a name"))
}

/// Where an agent stands in words, and how they are coloured.
pub(super) fn standing(agent: &AgentSummary) -> (&'static str, &'static str) {
    match (agent.active, agent.deactivated_by) {
        (true, _) => ("Active", "good"),
        (false, Some(DeactivatedBy::KillSwitch)) => ("Deactivated by Kill Switch", "bad"),
        (false, _) => ("Inactive", "odd"),
    }
}

impl Named {
    fn back(&self) -> String {
        match self.from.as_deref() {
            Some("agent") => link::to("/agent", &[("name", Some(&self.name))]),
            _ => "/agents".to_owned(),
        }
    }
}

impl AgentLine {
    fn new(agent: &AgentSummary, spent: &HashMap<AgentName, NanoUsd>, now: Timestamp) -> AgentLine {
        let (state, tone) = standing(agent);
        let name = AgentName::parse(&agent.name).ok();
        let today = name.and_then(|name| spent.get(&name).copied()).unwrap_or_default();
        let last = agent.last_at.as_deref().and_then(|at| api::moment("last_at", Some(at)).ok().flatten());
        AgentLine {
            href: link::to("/agent", &[("name", Some(&agent.name))]),
            name: agent.name.clone(),
            is_active: agent.active,
            state,
            tone,
            today: Money { shown: show::usd_headline(today), exact: format!("${today}"), is_partial: false },
            runs: show::count(agent.runs),
            stops: agent.blocked,
            last: last.map(|at| Moment::new(at, now)),
            is_armed: agent.kill_switch.enabled,
            window_size: agent.kill_switch.window_size,
            threshold: agent.kill_switch.threshold,
        }
    }
}
