//! The admin API: JSON under `/api/v1`, for whoever has a token. What it changes leaves an event with
//! the name of who did it.
//!
//! Listings come in pages: `{"items": […], "next": CURSOR or null}`. What goes wrong is a problem of RFC 9457.

mod agents;
mod body;
mod budgets;
mod detectors;
mod events;
mod evidence;
mod keys;
mod kills;
mod me;
pub(crate) mod model;
mod params;
mod runs;
mod status;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

pub(super) use self::evidence::export_run;
pub(super) use self::kills::Order;
pub(super) use self::params::{Params, agent_name, run_id};
pub(super) use self::status::midnight;
use super::problem::Problem;
use super::{Admin, Shared, access};

pub(super) fn routes(admin: &Arc<Admin>) -> Router<Shared> {
    Router::new()
        .route("/status", get(status::show))
        .route("/me", get(me::show))
        .route("/runs", get(runs::list))
        .route("/runs/{agent}/{id}", get(runs::show))
        .route("/runs/{agent}/{id}/picture", get(evidence::picture))
        .route("/runs/{agent}/{id}/try", get(evidence::try_run))
        .route("/runs/{agent}/{id}/export", get(evidence::export))
        .route("/runs/{agent}/{id}/kill", post(kills::kill_run))
        .route("/runs/{agent}/{id}/resume", post(kills::resume))
        .route("/runs/{agent}/{id}/approve", post(kills::approve))
        .route("/kills", get(kills::list).post(kills::add))
        .route("/kills/{id}", delete(kills::lift))
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/{id}", get(keys::show).delete(keys::revoke))
        .route("/keys/{id}/rotate", post(keys::rotate))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}", delete(tokens::revoke))
        .route("/budgets", get(budgets::list))
        .route("/budgets/adjust", post(budgets::adjust))
        .route("/events", get(events::list))
        .route("/detectors/shadow", get(detectors::shadow))
        .route("/detectors/try", get(evidence::try_all))
        .route("/agents", get(agents::list).post(agents::add))
        .route("/agents/{name}", get(agents::show).patch(agents::change))
        .fallback(|| async { Problem::not_found("the API has nothing under this path") })
        .method_not_allowed_fallback(|| async {
            Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
        })
        // Above the fallback too: without the token nobody learns which paths there are.
        .layer(from_fn_with_state(admin.clone(), access::require_token))
}
