//! One run: what it came to, its steps on a line of time, and the runs that are a part of it.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::history::{EventFilter, History, RunRow};
use sprag_store::state::RunTotals;

use super::rows::{CallLine, Moment, RunLine, RunRef, origin};
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Params};
use crate::admin::problem::Problem;
use crate::show;

const ROWS: u32 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    id: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    shell: Shell,
    run: RunLine,
    facts: Facts,
    steps: Vec<CallLine>,
    children: Vec<RunLine>,
    first_steps: Option<String>,
    more_steps: Option<String>,
}

/// What a run has beside what its line in a table shows.
struct Facts {
    origin: &'static str,
    provider: String,
    parent: Option<RunRef>,
    first: Moment,
    cached: String,
    cost: String,
    /// With all its parts.
    tree_cost: String,
    unpriced: u64,
    estimated: u64,
    agent_href: String,
}

pub(super) async fn show(State(admin): State<Shared>, wanted: Result<Params<Wanted>, Problem>) -> Page {
    let Params(wanted) = wanted?;
    let (agent, id) = (api::agent_name(wanted.agent.as_deref())?, api::run_id(wanted.id.as_deref())?);
    let (Some(agent), Some(id)) = (agent, id) else {
        return Err(Problem::bad_request("a run is named by its agent and its id").into());
    };
    let key = RunKey { agent, id };
    let cursor = wanted.cursor.clone();
    let read = move |history: &History| {
        let Some(run) = history.run(&key)? else { return Ok(None) };
        let children = history.children(&key)?;
        let tree = history.run_totals(&key)?.unwrap_or_default();
        let filter = EventFilter { run: Some(key), is_oldest_first: true, ..EventFilter::default() };
        Ok(Some((run, tree, children, history.events(&filter, cursor.as_deref(), ROWS)?)))
    };
    let Some((mut run, tree, mut children, steps)) = admin.records.read(read).await? else {
        return Err(Problem::not_found("this agent has no run of this id on record").into());
    };
    admin.expire(children.iter_mut().chain([&mut run]));
    let now = admin.app.clock.now();
    let here = |cursor: Option<&str>| {
        let (agent, id) = (run.agent.as_str(), run.id.as_str());
        link::to("/run", &[("agent", Some(agent)), ("id", Some(id)), ("cursor", cursor)])
    };
    let page = RunPage {
        shell: admin.shell("runs"),
        facts: Facts::new(&run, &tree, now),
        steps: steps
            .items
            .iter()
            .map(|event| CallLine::new(event, now).within(event, run.first_at, run.last_at))
            .collect(),
        children: children.iter().map(|run| RunLine::new(run, now)).collect(),
        first_steps: wanted.cursor.is_some().then(|| here(None)),
        more_steps: steps.next.map(|next| here(Some(&next))),
        run: RunLine::new(&run, now),
    };
    Ok(html(StatusCode::OK, &page))
}

impl Facts {
    fn new(run: &RunRow, tree: &RunTotals, now: Timestamp) -> Facts {
        Facts {
            origin: origin(run.origin),
            provider: run.provider.clone(),
            parent: run.parent.as_ref().map(|parent| RunRef {
                id: parent.to_string(),
                href: link::to_run(run.agent.as_str(), parent.as_str()),
            }),
            first: Moment::new(run.first_at, now),
            cached: show::count(run.cached_tokens),
            cost: if run.cost.0 == 0 && run.unpriced_steps > 0 {
                "unknown".to_owned()
            } else {
                show::usd_headline(run.cost)
            },
            tree_cost: show::usd(tree.tree_cost),
            unpriced: run.unpriced_steps,
            estimated: run.estimated_steps,
            agent_href: link::to("/runs", &[("agent", Some(run.agent.as_str()))]),
        }
    }
}
