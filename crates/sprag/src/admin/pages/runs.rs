//! All runs, the most recently active first.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sprag_store::history::RunFilter;

use super::rows::RunLine;
use super::{Page, PageProblem, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Params};
use crate::admin::operator::Visitor;
use crate::admin::problem::Problem;

const ROWS: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    shell: Shell,
    runs: Vec<RunLine>,
    agent: String,
    agents: Vec<String>,
    /// The first page, when this is a later one.
    newest: Option<String>,
    older: Option<String>,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let agent = api::agent_name(wanted.agent.as_deref())?;
    let filter = RunFilter { agent: agent.clone(), ..RunFilter::default() };
    let cursor = wanted.cursor.clone();
    let read = admin.records.read(move |history| {
        let agents = history.agents()?;
        Ok((agents, history.runs(&filter, cursor.as_deref(), ROWS)?))
    });
    let (agents, mut page) = read.await.map_err(PageProblem)?;
    admin.expire(&mut page.items);
    let now = admin.app.clock.now();
    let agent = agent.map(|agent| agent.to_string());
    let page = Runs {
        shell: admin.shell("runs", visitor),
        runs: page.items.iter().map(|run| RunLine::new(run, now)).collect(),
        agents: agents.into_iter().map(|agent| agent.name.to_string()).collect(),
        newest: wanted.cursor.is_some().then(|| link::to("/runs", &[("agent", agent.as_deref())])),
        older: page.next.map(|next| link::to("/runs", &[("agent", agent.as_deref()), ("cursor", Some(&next))])),
        agent: agent.unwrap_or_default(),
    };
    Ok(html(StatusCode::OK, &page))
}
