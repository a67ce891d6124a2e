//! `GET /prices`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::price::Price;

use super::model::{PriceListing, PriceRecord};
use super::params::{self, Params};
use crate::admin::Shared;
use crate::admin::problem::Problem;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// A part of the model's name.
    model: Option<String>,
    provider: Option<String>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<u32>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// The prices in force, the configured ones first.
#[utoipa::path(
    get,
    path = "/prices",
    operation_id = "list_prices",
    tag = "prices",
    params(Wanted),
    responses(
        (status = 200, description = "A page of prices", body = PriceListing),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<PriceListing>, Problem> {
    let limit = params::rows(wanted.limit)?;
    let prices = admin.app.prices.load();
    let is_wanted = |price: &&Price| {
        wanted.model.as_ref().is_none_or(|part| price.model.contains(part.as_str()))
            && wanted.provider.as_ref().is_none_or(|name| *price.provider == **name)
    };
    let start = wanted.cursor.unwrap_or(0);
    let mut rows = prices.overrides().chain(prices.rows()).filter(is_wanted).skip(start as usize);
    let items: Vec<PriceRecord> = rows.by_ref().take(limit as usize).map(PriceRecord::from).collect();
    let next = rows.next().map(|_| start.saturating_add(limit).to_string());
    Ok(Json(PriceListing { gathered: prices.gathered().map(str::to_owned), items, next }))
}
