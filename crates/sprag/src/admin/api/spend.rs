//! `GET /spend`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_store::history::Span;

use super::model::SpendSeries;
use super::params::{self, Params};
use crate::admin::Shared;
use crate::admin::problem::Problem;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// `hour`, `day` or `month`.
    #[param(inline)]
    span: Option<Span>,
    agent: Option<String>,
}

/// Requests, stops and money over time.
#[utoipa::path(
    get,
    path = "/spend",
    operation_id = "get_spend",
    tag = "budgets",
    params(Wanted),
    responses(
        (status = 200, description = "The series", body = SpendSeries),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn show(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<SpendSeries>, Problem> {
    let (span, agent) = (wanted.span.unwrap_or(Span::Day), params::agent_name(wanted.agent.as_deref())?);
    let now = admin.app.clock.now();
    let series = admin.records.read(move |history| history.series(span, now, agent.as_ref())).await?;
    Ok(Json(SpendSeries::new(span, &series)))
}
