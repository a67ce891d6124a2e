//! `/budgets`: limits on money and where they stand, and corrections of what was spent.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::money::NanoUsd;
use sprag_core::policy::AccountId;
use utoipa::ToSchema;

use super::body::Body;
use super::model::{AccountRecord, Listing, Usd};
use super::params::{self, Params};
use crate::acts::{AdjustRefused, Adjustment};
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};
use crate::budgets::{BudgetFilter, BudgetPage};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    agent: Option<String>,
    key: Option<String>,
    #[serde(default)]
    runs: bool,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// What a correction is asked with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AdjustmentOrder)]
pub(super) struct Order {
    /// Such as `agent:bot daily`.
    #[schema(required = true, value_type = String)]
    account: Option<String>,
    /// What to add; with a minus what to take away.
    #[schema(required = true, value_type = Usd)]
    amount_usd: Option<Usd>,
    #[schema(required = true, value_type = String)]
    reason: Option<String>,
    by: Option<String>,
}

/// Limits on money and where they stand.
#[utoipa::path(
    get,
    path = "/budgets",
    operation_id = "list_budgets",
    tag = "budgets",
    params(Wanted),
    responses(
        (status = 200, description = "A page of budgets", body = Listing<AccountRecord>),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<AccountRecord>>, Problem> {
    let limit = params::rows(wanted.limit)? as usize;
    let filter = BudgetFilter {
        agent: params::agent_name(wanted.agent.as_deref())?,
        key: wanted.key.filter(|key| !key.is_empty()),
        runs: wanted.runs,
    };
    let page = admin.budgets(filter, wanted.cursor, limit).await?;
    Ok(Json(Listing { items: page.rows.iter().map(AccountRecord::from).collect(), next: page.next }))
}

/// Corrects what an account has spent.
#[utoipa::path(
    post,
    path = "/budgets/adjust",
    operation_id = "adjust_budget",
    tag = "budgets",
    request_body = Order,
    responses(
        (status = 200, description = "The account after it", body = AccountRecord),
        (status = 404, description = "Nobody knows whose account it is"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn adjust(
    State(admin): State<Shared>,
    operator: Operator,
    Body(order): Body<Order>,
) -> Result<Json<AccountRecord>, Problem> {
    let Some(account) = &order.account else {
        return Err(Problem::bad_request("say which in `account`, such as `agent:bot daily`"));
    };
    let account: AccountId = account.parse().map_err(|error| Problem::bad_request(format!("`account`: {error}")))?;
    let Some(Usd(amount)) = order.amount_usd.filter(|Usd(amount)| *amount != NanoUsd::ZERO) else {
        return Err(Problem::bad_request("`amount_usd` is what to add in dollars, or with a minus what to take away"));
    };
    let Some(reason) = order.reason.filter(|reason| !reason.trim().is_empty()) else {
        return Err(Problem::bad_request("say why in `reason`: it stays on record"));
    };
    let order = Adjustment { account, amount, reason, by: operator.acting(order.by)? };
    let adjusted = admin.app.adjust_budget(order.clone()).await.map_err(|error| match error {
        AdjustRefused::Unknown(_) => Problem::not_found(format!("{error}, so nothing was changed")),
        AdjustRefused::Store(error) => error.into(),
    })?;
    Ok(Json(AccountRecord::adjusted(&adjusted, &order)))
}

impl Admin {
    /// Limits, a page of them.
    pub(in crate::admin) async fn budgets(
        &self,
        filter: BudgetFilter,
        cursor: Option<String>,
        most: usize,
    ) -> Result<BudgetPage, Problem> {
        let app = self.app.clone();
        self.records.read(move |_| app.budgets(&filter, cursor.as_deref(), most)).await
    }
}
