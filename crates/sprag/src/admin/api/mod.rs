//! The admin API: JSON under `/api/v1`, for whoever has a token. What it changes leaves an event with
//! the name of who did it.
//!
//! Listings come in pages: `{"items": […], "next": CURSOR or null}`. What goes wrong is a problem of RFC 9457.

mod agents;
mod alert_setup;
mod alerts;
mod body;
mod budgets;
pub(in crate::admin) mod desk;
mod detectors;
mod events;
mod evidence;
mod keys;
mod kills;
mod me;
pub(crate) mod model;
mod newest;
mod openapi;
mod params;
mod prices;
mod runs;
mod spend;
mod status;
mod tokens;
mod version;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::events::{block_reason, run_key};
pub(super) use self::evidence::export_run;
pub(super) use self::kills::Order;
pub(crate) use self::openapi::document;
pub(super) use self::params::{Params, agent_name, amount, moment, run_id};
pub(super) use self::runs::in_state;
pub(super) use self::status::midnight;
use super::problem::Problem;
use super::{Admin, Shared, access, live};

pub(super) fn routes(admin: &Arc<Admin>) -> Router<Shared> {
    let (router, _) = described().split_for_parts();
    router
        .fallback(|| async { Problem::not_found("the API has nothing under this path") })
        .method_not_allowed_fallback(|| async {
            Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
        })
        // Above the fallback too: without the token nobody learns which paths there are.
        .layer(from_fn_with_state(admin.clone(), access::require_token))
}

/// Every route with what it takes and answers. There is no other way in: what is not described is not there.
fn described() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(openapi::show))
        .routes(routes!(status::show))
        .routes(routes!(me::show))
        .routes(routes!(runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(evidence::picture))
        .routes(routes!(evidence::try_run))
        .routes(routes!(evidence::export))
        .routes(routes!(kills::kill_run))
        .routes(routes!(kills::resume))
        .routes(routes!(kills::approve))
        .routes(routes!(kills::list, kills::add))
        .routes(routes!(kills::lift))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::show, keys::revoke))
        .routes(routes!(keys::rotate))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(budgets::list))
        .routes(routes!(budgets::adjust))
        .routes(routes!(events::list))
        .routes(routes!(events::export))
        .routes(routes!(live::events))
        .routes(routes!(spend::show))
        .routes(routes!(prices::list))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::counts))
        .routes(routes!(alerts::send_again))
        .routes(routes!(alerts::channels, alert_setup::add_channel))
        .routes(routes!(alert_setup::change_channel, alert_setup::delete_channel))
        .routes(routes!(alerts::test))
        .routes(routes!(alerts::rules, alert_setup::add_rule))
        .routes(routes!(alert_setup::change_rule, alert_setup::delete_rule))
        .routes(routes!(detectors::shadow))
        .routes(routes!(evidence::try_all))
        .routes(routes!(agents::list, agents::add))
        .routes(routes!(agents::show, agents::change))
}
