//! `GET /runs` and `GET /runs/{agent}/{id}`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::id::RunId;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::history::{EventFilter, History, RunFilter, RunRow, RunStatus};

use super::kills::run_of;
use super::model::{Listing, RunDetail, RunSummary, Usd, WouldHaveStopped};
use super::params::{self, Names, Params};
use crate::admin::Shared;
use crate::admin::problem::Problem;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    agent: Option<String>,
    status: Option<RunStatus>,
    /// The runs of this id; ids belong to their agents, so there may be several.
    id: Option<String>,
    /// Those whose id begins like this.
    id_prefix: Option<String>,
    model: Option<String>,
    /// In dollars.
    min_cost: Option<String>,
    /// Last active at this time or later.
    since: Option<String>,
    /// Last active before this time.
    until: Option<String>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Steps {
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Runs, the most recently active first.
#[utoipa::path(
    get,
    path = "/runs",
    operation_id = "list_runs",
    tag = "runs",
    params(Wanted),
    responses(
        (status = 200, description = "A page of runs", body = Listing<RunSummary>),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<RunSummary>>, Problem> {
    let limit = params::rows(wanted.limit)?;
    let filter = RunFilter {
        agent: params::agent_name(wanted.agent.as_deref())?,
        id: params::run_id(wanted.id.as_deref())?,
        id_prefix: wanted.id_prefix,
        status: None,
        model: wanted.model.filter(|model| !model.is_empty()),
        min_cost: params::amount("min_cost", wanted.min_cost.as_deref())?,
        since: params::moment("since", wanted.since.as_deref())?,
        until: params::moment("until", wanted.until.as_deref())?,
    };
    let filter = in_state(filter, wanted.status, admin.active_since());
    let mut page = admin.records.read(move |history| history.runs(&filter, wanted.cursor.as_deref(), limit)).await?;
    admin.expire(&mut page.items);
    Ok(Json(Listing::of(page)))
}

/// A run with its steps and the runs that are a part of it.
#[utoipa::path(
    get,
    path = "/runs/{agent}/{id}",
    operation_id = "get_run",
    tag = "runs",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run"), Steps),
    responses(
        (status = 200, description = "The run", body = RunDetail),
        (status = 404, description = "No such run is on record"),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn show(
    State(admin): State<Shared>,
    Names(run): Names<(String, String)>,
    Params(steps): Params<Steps>,
) -> Result<Json<RunDetail>, Problem> {
    let limit = params::rows(steps.limit)?;
    let key = run_of(&run)?;
    let read = move |history: &History| {
        let Some(run) = history.run(&key)? else { return Ok(None) };
        let children = history.children(&key)?;
        let would = history.would_stop(&key)?;
        let tree = history.run_totals(&key)?.unwrap_or_default();
        let filter =
            EventFilter { run: Some(key), requests_only: true, is_oldest_first: true, ..EventFilter::default() };
        let steps = history.events(&filter, steps.cursor.as_deref(), limit)?;
        Ok(Some((run, tree, steps, children, would)))
    };
    match admin.records.read(read).await? {
        Some((mut run, tree, steps, mut children, would)) => {
            admin.expire(children.iter_mut().chain([&mut run]));
            Ok(Json(RunDetail {
                run: RunSummary::from(&run),
                tree_steps: tree.tree_steps,
                tree_cost_usd: Usd(tree.tree_cost),
                tree_cost_nano_usd: tree.tree_cost,
                would_have_stopped: would.map(WouldHaveStopped::from),
                steps: Listing::of(steps),
                children: children.iter().map(RunSummary::from).collect(),
            }))
        }
        None => Err(Problem::not_found("this agent has no run of this id on record")),
    }
}

/// Narrows a listing to runs in a state. Nobody puts down that a run is over: it has been idle since then.
pub(in crate::admin) fn in_state(filter: RunFilter, status: Option<RunStatus>, active_since: Timestamp) -> RunFilter {
    match status {
        Some(RunStatus::Running) => RunFilter {
            status: Some(RunStatus::Running),
            since: Some(filter.since.map_or(active_since, |since| since.max(active_since))),
            ..filter
        },
        Some(RunStatus::Expired) => RunFilter {
            status: Some(RunStatus::Running),
            until: Some(filter.until.map_or(active_since, |until| until.min(active_since))),
            ..filter
        },
        status => RunFilter { status, ..filter },
    }
}

/// The runs of one id, whoever's they are.
pub(super) fn find_by_id(history: &History, id: &RunId) -> Result<Vec<RunRow>, StoreError> {
    let filter = RunFilter { id: Some(id.clone()), ..RunFilter::default() };
    Ok(history.runs(&filter, None, PAGE_ROWS)?.items)
}
