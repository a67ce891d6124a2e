//! All calls, the latest first.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sprag_store::history::EventFilter;

use super::rows::CallLine;
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Params};
use crate::admin::operator::Visitor;
use crate::admin::problem::Problem;

const ROWS: u32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    model: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "calls.html")]
struct Calls {
    shell: Shell,
    calls: Vec<CallLine>,
    agent: String,
    model: String,
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
    let model = wanted.model.filter(|model| !model.is_empty());
    let filter =
        EventFilter { agent: agent.clone(), model: model.clone(), requests_only: true, ..EventFilter::default() };
    let cursor = wanted.cursor.clone();
    let read = admin.records.read(move |history| {
        let agents = history.agents()?;
        Ok((agents, history.events(&filter, cursor.as_deref(), ROWS)?))
    });
    let (agents, page) = read.await?;
    let now = admin.app.clock.now();
    let agent = agent.map(|agent| agent.to_string());
    let here = |cursor: Option<&str>| {
        link::to("/calls", &[("agent", agent.as_deref()), ("model", model.as_deref()), ("cursor", cursor)])
    };
    let page = Calls {
        shell: admin.shell("calls", visitor),
        calls: page.items.iter().map(|event| CallLine::new(event, now)).collect(),
        agents: agents.into_iter().map(|agent| agent.name.to_string()).collect(),
        newest: wanted.cursor.is_some().then(|| here(None)),
        older: page.next.map(|next| here(Some(&next))),
        agent: agent.clone().unwrap_or_default(),
        model: model.clone().unwrap_or_default(),
    };
    Ok(html(StatusCode::OK, &page))
}
