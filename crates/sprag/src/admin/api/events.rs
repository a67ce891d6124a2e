//! `GET /events`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::id::{AgentName, RunId};
use sprag_store::RunKey;
use sprag_store::history::EventFilter;

use super::model::{EventRecord, Listing};
use super::params::{self, Params};
use super::runs::find_by_id;
use crate::admin::Shared;
use crate::admin::problem::Problem;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    agent: Option<String>,
    run: Option<String>,
    key: Option<String>,
    model: Option<String>,
    blocked: Option<bool>,
    since: Option<String>,
    until: Option<String>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Calls and what was done, the latest first.
#[utoipa::path(
    get,
    path = "/events",
    operation_id = "list_events",
    tag = "events",
    params(Wanted),
    responses(
        (status = 200, description = "A page of events", body = Listing<EventRecord>),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<EventRecord>>, Problem> {
    let limit = params::rows(wanted.limit)?;
    let agent = params::agent_name(wanted.agent.as_deref())?;
    let run = match (params::run_id(wanted.run.as_deref())?, &agent) {
        (Some(id), Some(agent)) => Some(RunKey { agent: agent.clone(), id }),
        (Some(id), None) => {
            let Some(agent) = only_owner(&admin, &id).await? else {
                return Ok(Json(Listing { items: Vec::new(), next: None }));
            };
            Some(RunKey { agent, id })
        }
        (None, _) => None,
    };
    let filter = EventFilter {
        agent,
        run,
        key: wanted.key.filter(|key| !key.is_empty()),
        model: wanted.model.filter(|model| !model.is_empty()),
        blocked: wanted.blocked,
        since: params::moment("since", wanted.since.as_deref())?,
        until: params::moment("until", wanted.until.as_deref())?,
        requests_only: false,
        is_oldest_first: false,
    };
    let page = admin.records.read(move |history| history.events(&filter, wanted.cursor.as_deref(), limit)).await?;
    Ok(Json(Listing::of(page)))
}

/// The one agent that has a run of this id.
async fn only_owner(admin: &Shared, id: &RunId) -> Result<Option<AgentName>, Problem> {
    let id = id.clone();
    let mut found = admin.records.read(move |history| find_by_id(history, &id)).await?;
    if found.len() > 1 {
        return Err(Problem::bad_request("several agents have a run of this id; say which with `agent`"));
    }
    Ok(found.pop().map(|run| run.agent))
}
