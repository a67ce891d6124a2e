//! `GET /metrics`, for Prometheus. Who may see it: whoever has a token that lets them look, or everybody on this machine
//! where the configuration says so.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{Shared, access};
use crate::metrics::{Format, page};

pub(super) fn routes(admin: &Shared) -> Router<Shared> {
    Router::new().route("/metrics", get(show)).route_layer(from_fn_with_state(admin.clone(), let_in))
}

async fn let_in(state: State<Shared>, peer: ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    // The listener that is bound counts, whatever a newer configuration says about the next start.
    let is_open = state.app.settings.load().telemetry.metrics_open && state.addresses.admin.ip().is_loopback();
    match is_open {
        true => next.run(request).await,
        false => access::require_token(state, peer, request, next).await,
    }
}

async fn show(State(admin): State<Shared>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::of(accept);
    match page(&admin.app, format).await {
        Ok(page) => ([(CONTENT_TYPE, format.content_type())], page).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
