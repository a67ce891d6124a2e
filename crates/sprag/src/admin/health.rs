//! For load balancers and supervisors: is the process alive, and does it record?

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use super::api::model::{SharedCatalog, SharedState};
use super::{Admin, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready))
}

impl Admin {
    /// What stands in the way of recording; empty while all is well.
    pub(super) fn recording_problems(&self) -> Vec<String> {
        let status = self.app.history.status();
        let spool = status.spool.problem.map(|why| format!("events cannot be written to disk: {why}"));
        let ingest = status.ingest.problem.map(|why| format!("events do not reach the database: {why}"));
        spool.into_iter().chain(ingest).collect()
    }

    /// What others do not see yet of what this node recorded; empty while all is well. It is safe on this node's disk, so
    /// the node goes on: a shared history that is away must not take every node out of service.
    pub(super) fn behind(&self) -> Vec<String> {
        let Some(shared) = self.app.history.status().shared else { return Vec::new() };
        let waiting = shared.problem.map(|why| {
            format!("events do not reach the shared history, and {} wait on this node: {why}", shared.waiting)
        });
        let dropped = (shared.dropped > 0).then(|| {
            format!(
                "the detail of {} events was given up, because too many waited for the shared history",
                shared.dropped
            )
        });
        waiting.into_iter().chain(dropped).collect()
    }
}

async fn ready(State(admin): State<Shared>) -> Response {
    let problems = admin.recording_problems();
    let (status, mut told) = match problems.is_empty() {
        true => (StatusCode::OK, json!({"status": "ready"})),
        false => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "not_ready", "problems": problems})),
    };
    let behind = admin.behind();
    if problems.is_empty() && !behind.is_empty() {
        told["behind"] = json!(behind);
    }
    // Without Redis the node serves all the same: were it taken out, all nodes would be at once.
    if let Some(link) = &admin.app.link {
        told["shared_state"] = json!(SharedState::new(link));
    }
    if let Some(shared) = SharedCatalog::of(&admin.app) {
        told["shared_catalog"] = json!(shared);
    }
    (status, Json(told)).into_response()
}
