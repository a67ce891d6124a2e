//! `GET /detectors/shadow`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::time::Timestamp;

use super::model::ShadowSums;
use super::params::{self, Params};
use crate::admin::Shared;
use crate::admin::problem::Problem;

/// How far back a report goes where nobody says.
const SPAN_MS: i64 = 7 * 24 * 60 * 60 * 1000;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Span {
    since: Option<String>,
    until: Option<String>,
}

/// What rules and limits in shadow would have stopped and saved.
#[utoipa::path(
    get,
    path = "/detectors/shadow",
    operation_id = "get_shadow_report",
    tag = "detectors",
    params(Span),
    responses(
        (status = 200, description = "The report", body = ShadowSums),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn shadow(
    State(admin): State<Shared>,
    Params(span): Params<Span>,
) -> Result<Json<ShadowSums>, Problem> {
    // What happens within this millisecond is over too.
    let until = params::moment("until", span.until.as_deref())?.unwrap_or(Timestamp(admin.app.clock.now().0 + 1));
    let since = params::moment("since", span.since.as_deref())?.unwrap_or(Timestamp(until.0.saturating_sub(SPAN_MS)));
    if since >= until {
        return Err(Problem::bad_request("`since` lies before `until`"));
    }
    let report = admin.records.read(move |history| history.shadow_report(since, until)).await?;
    Ok(Json(ShadowSums::new(since, until, report)))
}
