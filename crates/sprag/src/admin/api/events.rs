//! `GET /events`, and the same as a file: `GET /events/export`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use sprag_core::event::EventKind;
use sprag_core::id::{AgentName, RunId};
use sprag_core::wire::Reason;
use sprag_store::RunKey;
use sprag_store::history::EventFilter;

use super::model::{EventRecord, Listing};
use super::params::{self, Params};
use super::runs::find_by_id;
use crate::admin::Shared;
use crate::admin::export::{self, Format};
use crate::admin::problem::Problem;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    agent: Option<String>,
    run: Option<String>,
    key: Option<String>,
    model: Option<String>,
    kind: Option<EventKind>,
    blocked: Option<bool>,
    /// Why it was refused.
    reason: Option<String>,
    /// Secrets or personal data were found in it.
    findings: Option<bool>,
    since: Option<String>,
    until: Option<String>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// The same without pages: an export holds everything.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Exported {
    agent: Option<String>,
    run: Option<String>,
    key: Option<String>,
    model: Option<String>,
    kind: Option<EventKind>,
    blocked: Option<bool>,
    /// Why it was refused.
    reason: Option<String>,
    /// Secrets or personal data were found in it.
    findings: Option<bool>,
    since: Option<String>,
    until: Option<String>,
    /// What the file is made of; JSON lines unless given.
    #[param(inline)]
    format: Option<Format>,
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
    let filter = wanted.filter(&admin).await?;
    let page = admin.records.read(move |history| history.events(&filter, wanted.cursor.as_deref(), limit)).await?;
    Ok(Json(Listing::of(page)))
}

/// All events that the filter lets through, as a file.
#[utoipa::path(
    get,
    path = "/events/export",
    operation_id = "export_events",
    tag = "events",
    params(Exported),
    responses(
        (status = 200, description = "The file: a table, or one JSON object in each line", content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
        )),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn export(
    State(admin): State<Shared>,
    headers: HeaderMap,
    Params(exported): Params<Exported>,
) -> Result<Response, Problem> {
    let format = exported.format.unwrap_or(Format::Jsonl);
    let filter = Wanted::from(exported).filter(&admin).await?;
    export::events(admin, headers, filter, format).await
}

impl From<Exported> for Wanted {
    fn from(exported: Exported) -> Wanted {
        let Exported { agent, run, key, model, kind, blocked, reason, findings, since, until, format: _ } = exported;
        Wanted { agent, run, key, model, kind, blocked, reason, findings, since, until, cursor: None, limit: None }
    }
}

impl Wanted {
    async fn filter(&self, admin: &Shared) -> Result<EventFilter, Problem> {
        let agent = params::agent_name(self.agent.as_deref())?;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Ok(EventFilter {
            run: run_key(admin, params::run_id(self.run.as_deref())?, agent.as_ref()).await?,
            agent,
            key: given(&self.key),
            model: given(&self.model),
            kind: self.kind,
            block_reason: block_reason(self.reason.as_deref())?,
            has_findings: self.findings,
            blocked: self.blocked,
            since: params::moment("since", self.since.as_deref())?,
            until: params::moment("until", self.until.as_deref())?,
            requests_only: false,
            is_oldest_first: false,
        })
    }
}

/// The run of this id: of the agent that is named, or of the only one that has it. Of an id that nobody has, a run of
/// which nothing is on record.
pub(in crate::admin) async fn run_key(
    admin: &Shared,
    id: Option<RunId>,
    agent: Option<&AgentName>,
) -> Result<Option<RunKey>, Problem> {
    let Some(id) = id else { return Ok(None) };
    let agent = match agent {
        Some(agent) => agent.clone(),
        None => {
            let wanted = id.clone();
            let mut found = admin.records.read(move |history| find_by_id(history, &wanted)).await?;
            if found.len() > 1 {
                return Err(Problem::bad_request("several agents have a run of this id; say which with `agent`"));
            }
            found.pop().map(|run| run.agent).unwrap_or_default()
        }
    };
    Ok(Some(RunKey { agent, id }))
}

/// Why requests are refused; an empty word counts as absent.
pub(in crate::admin) fn block_reason(text: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let known = || Reason::ALL.into_iter().filter(|reason| reason.is_policy()).map(Reason::as_str);
    if known().any(|reason| reason == text) {
        return Ok(Some(text.to_owned()));
    }
    Err(Problem::bad_request(format!("`reason` is one of {}", known().collect::<Vec<_>>().join(", "))))
}
