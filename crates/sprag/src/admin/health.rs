//! For load balancers and supervisors: is the process alive, and does it record?

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use super::api::model::SharedState;
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
}

async fn ready(State(admin): State<Shared>) -> Response {
    let problems = admin.recording_problems();
    let (status, mut told) = match problems.is_empty() {
        true => (StatusCode::OK, json!({"status": "ready"})),
        false => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "not_ready", "problems": problems})),
    };
    // Without Redis the node serves all the same: were it taken out, all nodes would be at once.
    if let Some(link) = &admin.app.link {
        told["shared_state"] = json!(SharedState::new(link));
    }
    if let Some(shared) = admin.app.shared_catalog.get().map(|shared| shared.status()) {
        told["shared_catalog"] = json!({
            "connected": shared.is_connected,
            "listening": shared.is_listening,
            "unreadable_rows": shared.unreadable,
            "last_error": shared.last_error,
        });
    }
    (status, Json(told)).into_response()
}
