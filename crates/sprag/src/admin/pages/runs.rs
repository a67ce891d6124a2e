//! All runs, the most recently active first, and stopping several of them at once.

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::policy::KillScope;
use sprag_store::history::{RunFilter, RunStatus};

use super::rows::RunLine;
use super::{Page, PageProblem, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Order, Params};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::admin::roster::offered;

const ROWS: u32 = 50;

/// What a run can be, as the filter offers it.
const STATES: [(&str, RunStatus); 4] = [
    ("running", RunStatus::Running),
    ("killed", RunStatus::Killed),
    ("paused", RunStatus::Paused),
    ("expired", RunStatus::Expired),
];

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    status: Option<String>,
    model: Option<String>,
    min_cost: Option<String>,
    /// The beginning of the id.
    id: Option<String>,
    cursor: Option<String>,
    /// So many were killed just before.
    killed: Option<u32>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    shell: Shell,
    runs: Vec<RunLine>,
    wanted: FilterForm,
    is_narrowed: bool,
    agents: Vec<String>,
    states: [&'static str; STATES.len()],
    killed: u32,
    /// Where an agent reaches the proxy, for who has none yet.
    proxy_port: u16,
    /// The first page, when this is a later one.
    newest: Option<String>,
    older: Option<String>,
}

/// What the form holds.
struct FilterForm {
    agent: String,
    status: String,
    model: String,
    min_cost: String,
    id: String,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let filter = wanted.filter()?;
    let filter = api::in_state(filter, wanted.status()?, admin.active_since());
    let cursor = wanted.cursor.clone();
    let app = admin.app.clone();
    let read = admin.records.read(move |history| {
        let agents = offered(&app, history)?;
        Ok((agents, history.runs(&filter, cursor.as_deref(), ROWS)?))
    });
    let (agents, mut page) = read.await.map_err(PageProblem)?;
    admin.expire(&mut page.items);
    let now = admin.app.clock.now();
    let page = Runs {
        shell: admin.shell("runs", visitor),
        runs: page.items.iter().map(|run| RunLine::new(run, now)).collect(),
        agents,
        states: STATES.map(|(word, _)| word),
        killed: wanted.killed.unwrap_or(0),
        proxy_port: admin.addresses.proxy.port(),
        newest: wanted.cursor.is_some().then(|| wanted.link(None, None)),
        older: page.next.map(|next| wanted.link(Some(&next), None)),
        is_narrowed: wanted.link(None, None) != "/runs",
        wanted: FilterForm {
            agent: wanted.agent.unwrap_or_default(),
            status: wanted.status.unwrap_or_default(),
            model: wanted.model.unwrap_or_default(),
            min_cost: wanted.min_cost.unwrap_or_default(),
            id: wanted.id.unwrap_or_default(),
        },
    };
    Ok(html(StatusCode::OK, &page))
}

/// Kills the runs that were ticked, and shows the list again as it was narrowed.
pub(super) async fn kill(
    State(admin): State<Shared>,
    operator: Operator,
    Form(fields): Form<Vec<(String, String)>>,
) -> Page {
    let (mut wanted, mut reason, mut runs) = (Wanted::default(), None, Vec::new());
    for (name, value) in fields {
        match name.as_str() {
            "run" => runs.push(run_scope(&value)?),
            "reason" => reason = Some(value),
            "agent" => wanted.agent = Some(value),
            "status" => wanted.status = Some(value),
            "model" => wanted.model = Some(value),
            "min_cost" => wanted.min_cost = Some(value),
            "id" => wanted.id = Some(value),
            _ => {}
        }
    }
    if runs.is_empty() || runs.len() > PAGE_ROWS as usize {
        let detail = format!("tick the runs to kill, from one to {PAGE_ROWS} of them");
        return Err(Problem::bad_request(detail).into());
    }
    let count = runs.len();
    for (at, scope) in runs.into_iter().enumerate() {
        admin.kill(&operator, scope, Order::because(reason.clone())).await.map_err(|problem| {
            let detail = format!("{at} of {count} runs were killed, then: {}", problem.detail);
            Problem { detail: detail.into(), ..problem }
        })?;
    }
    Ok(Redirect::to(&wanted.link(None, Some(&count.to_string()))).into_response())
}

impl Wanted {
    fn filter(&self) -> Result<RunFilter, Problem> {
        Ok(RunFilter {
            agent: api::agent_name(self.agent.as_deref())?,
            id_prefix: self.id.clone(),
            model: self.model.clone().filter(|model| !model.is_empty()),
            min_cost: api::amount("min_cost", self.min_cost.as_deref())?,
            ..RunFilter::default()
        })
    }

    fn status(&self) -> Result<Option<RunStatus>, Problem> {
        let Some(text) = self.status.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        let found = STATES.iter().find(|(word, _)| *word == text).map(|(_, status)| Some(*status));
        found.ok_or_else(|| Problem::bad_request("`status` is running, killed, paused or expired"))
    }

    fn link(&self, cursor: Option<&str>, killed: Option<&str>) -> String {
        let params = [
            ("agent", self.agent.as_deref()),
            ("status", self.status.as_deref()),
            ("model", self.model.as_deref()),
            ("min_cost", self.min_cost.as_deref()),
            ("id", self.id.as_deref()),
            ("cursor", cursor),
            ("killed", killed),
        ];
        link::to("/runs", &params)
    }
}

/// Only runs are killed from here, whatever a form asks for.
fn run_scope(text: &str) -> Result<KillScope, Problem> {
    match text.parse() {
        Ok(scope @ KillScope::Run { .. }) => Ok(scope),
        _ => Err(Problem::bad_request("`run` names a run as run:AGENT/ID")),
    }
}
