//! `GET /runs/{agent}/{id}/picture`, `…/try` and `…/export`, and `GET /detectors/try`

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use sprag_core::limits::{TRIED_REQUESTS_OF_ALL, TRIED_RUNS};
use sprag_core::loops::{Proof, similarity};
use sprag_store::RunKey;
use sprag_store::history::{History, RunFilter, RunRow, StepRow};

use super::kills::run_of;
use super::model::{PictureRecord, TrialRecord, TrialSums};
use super::params::{self, Names, Params};
use crate::admin::Shared;
use crate::admin::export;
use crate::admin::problem::Problem;
use crate::admin::trial::{Thresholds, Tried, try_runs};

/// Runs that are tried where nobody says.
const DEFAULT_RUNS: u32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Which runs are judged again, and how. The thresholds are those of [`Thresholds`].
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TryRuns {
    agent: Option<String>,
    /// The latest runs that are judged; 100 unless given.
    #[param(minimum = 1, maximum = 500)]
    runs: Option<u32>,
    repeats: Option<f64>,
    same_results: Option<f64>,
    stall: Option<f64>,
    likeness: Option<f64>,
    asked_again: Option<u32>,
    compactions: Option<u32>,
    window: Option<u32>,
    window_seconds: Option<u32>,
}

/// How alike the steps of a run are.
#[utoipa::path(
    get,
    path = "/runs/{agent}/{id}/picture",
    operation_id = "get_run_picture",
    tag = "runs",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run")),
    responses(
        (status = 200, description = "The picture", body = PictureRecord),
        (status = 404, description = "No such run is on record"),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn picture(
    State(admin): State<Shared>,
    Names(run): Names<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Json<PictureRecord>, Problem> {
    let key = run_of(&run)?;
    let likeness = admin.app.policy(&key.agent).rules.progress.likeness;
    let (row, rows) = read_run(&admin, &key).await?;
    let stopped = row.stopped.and_then(|stopped| stopped.proof);
    let proof = stopped.and_then(|proof| serde_json::from_value::<Proof>(proof).ok()).unwrap_or_default();
    let picture = similarity(&StepRow::recorded(&rows), likeness);
    Ok(Json(PictureRecord::new(picture, &rows, proof.steps.iter().map(|step| step.step).collect())))
}

/// What other thresholds would have done to a run.
#[utoipa::path(
    get,
    path = "/runs/{agent}/{id}/try",
    operation_id = "try_run",
    tag = "runs",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run"), Thresholds),
    responses(
        (status = 200, description = "What would have happened", body = TrialRecord),
        (status = 404, description = "No such run is on record"),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn try_run(
    State(admin): State<Shared>,
    Names(run): Names<(String, String)>,
    Params(thresholds): Params<Thresholds>,
) -> Result<Json<TrialRecord>, Problem> {
    let key = run_of(&run)?;
    let rule = thresholds.rule(&admin.app.policy(&key.agent).rules.progress)?;
    let (_, rows) = read_run(&admin, &key).await?;
    Ok(Json(TrialRecord::new(&rule, &Tried::new(&rows, &rule))))
}

/// What other thresholds would have done to the latest runs.
#[utoipa::path(
    get,
    path = "/detectors/try",
    operation_id = "try_runs",
    tag = "detectors",
    params(TryRuns),
    responses(
        (status = 200, description = "What would have happened", body = TrialSums),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn try_all(
    State(admin): State<Shared>,
    Params(wanted): Params<TryRuns>,
) -> Result<Json<TrialSums>, Problem> {
    let most = match wanted.runs.unwrap_or(DEFAULT_RUNS) {
        runs @ 1..=TRIED_RUNS => runs,
        _ => return Err(Problem::bad_request(format!("`runs` is a number from 1 to {TRIED_RUNS}"))),
    };
    let agent = params::agent_name(wanted.agent.as_deref())?;
    let thresholds = wanted.thresholds();
    let app = admin.app.clone();
    // Also where there is no run yet, so that a slip is always told.
    let shown = thresholds.rule(&app.policy(&agent.clone().unwrap_or_default()).rules.progress)?;
    let filter = RunFilter { agent, ..RunFilter::default() };
    let base = shown.clone();
    let read = move |history: &History| {
        let rule_of =
            |run: &RunRow| thresholds.rule(&app.policy(&run.agent).rules.progress).unwrap_or_else(|_| base.clone());
        try_runs(history, &filter, (most, TRIED_REQUESTS_OF_ALL), rule_of)
    };
    let mut tried = admin.records.read(read).await?;
    admin.expire(tried.runs.iter_mut().map(|(run, _)| run));
    Ok(Json(TrialSums::new(&shown, &tried)))
}

/// All events of a run, one JSON object in each line, oldest first.
#[utoipa::path(
    get,
    path = "/runs/{agent}/{id}/export",
    operation_id = "export_run",
    tag = "runs",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run")),
    responses(
        (status = 200, description = "One JSON object in each line", body = String, content_type = "application/x-ndjson"),
        (status = 404, description = "No such run is on record"),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn export(
    State(admin): State<Shared>,
    headers: HeaderMap,
    Names(run): Names<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<([(HeaderName, HeaderValue); 2], Body), Problem> {
    let key = run_of(&run)?;
    export_run(admin, headers, key).await
}

/// The same for a page that has named the run in its own way.
pub(in crate::admin) async fn export_run(
    admin: Shared,
    headers: HeaderMap,
    key: RunKey,
) -> Result<([(HeaderName, HeaderValue); 2], Body), Problem> {
    let name = file_name(key.id.as_str());
    let body = match export::run(admin.clone(), headers, key.clone()).await? {
        Some(body) => body,
        None if admin.records.read(move |history| history.run(&key)).await?.is_none() => return Err(unknown_run()),
        None => Body::empty(),
    };
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}.jsonl\""))
        .unwrap_or(HeaderValue::from_static("attachment"));
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")), (CONTENT_DISPOSITION, disposition)];
    Ok((headers, body))
}

/// A name that every file system takes, whatever the run is called.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    id.chars().map(plain).collect()
}

fn unknown_run() -> Problem {
    Problem::not_found("this agent has no run of this id on record")
}

async fn read_run(admin: &Shared, key: &RunKey) -> Result<(RunRow, Vec<StepRow>), Problem> {
    let key = key.clone();
    let read = move |history: &History| {
        let Some(run) = history.run(&key)? else { return Ok(None) };
        let rows = history.evidence(std::slice::from_ref(&run))?.pop().unwrap_or_default();
        Ok(Some((run, rows)))
    };
    let (mut run, rows) = admin.records.read(read).await?.ok_or_else(unknown_run)?;
    admin.expire([&mut run]);
    Ok((run, rows))
}

impl TryRuns {
    fn thresholds(&self) -> Thresholds {
        let TryRuns {
            repeats, same_results, stall, likeness, asked_again, compactions, window, window_seconds, ..
        } = *self;
        Thresholds { repeats, same_results, stall, likeness, asked_again, compactions, window, window_seconds }
    }
}
