//! `/keys`: virtual keys, made, listed, taken back, given a new secret.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::limits::{KEY_GRACE_SECONDS, KEY_NAME_CHARS};
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, KeyState, Stage, StageAction};
use sprag_store::catalog::KeyEntry;
use utoipa::ToSchema;

use super::body::{Body, object};
use super::kills::end;
use super::model::{KeyBudget, KeyRecord, Listing, Usd};
use super::newest::{self, Plea};
use super::params::{self, Names, Params};
use crate::acts::{IssuedKey, KeyOrder};
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    agent: Option<String>,
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// What a key is asked with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyOrder)]
pub(super) struct Order {
    /// Whom it shall speak for.
    #[schema(required = true, value_type = String)]
    agent: Option<String>,
    #[serde(default)]
    name: String,
    /// When it ends by itself.
    expires_at: Option<String>,
    /// Or after how long.
    expires_in_seconds: Option<u32>,
    #[serde(default, deserialize_with = "object")]
    budget: Option<KeyBudget>,
    by: Option<String>,
}

/// What a new secret is asked with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotation {
    /// For how long the old secret still holds.
    #[serde(default)]
    grace_seconds: u32,
    by: Option<String>,
}

/// Virtual keys, the newest first; those that ended too.
#[utoipa::path(
    get,
    path = "/keys",
    operation_id = "list_keys",
    tag = "keys",
    params(Wanted),
    responses(
        (status = 200, description = "A page of keys", body = Listing<KeyRecord>),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<KeyRecord>>, Problem> {
    let agent = params::agent_name(wanted.agent.as_deref())?;
    let now = admin.app.clock.now();
    let snapshot = admin.app.catalog.snapshot();
    let of_agent = snapshot.keys().filter(|entry| agent.as_ref().is_none_or(|agent| entry.key.agent == *agent));
    let place = |entry: &&Arc<KeyEntry>| format!("{:013}.{}", entry.key.created_at.0, entry.key.id);
    let wanted = newest::Wanted { cursor: wanted.cursor, limit: wanted.limit };
    Ok(Json(newest::page(of_agent, &wanted, place, |entry| KeyRecord::new(&entry.key, now))?))
}

/// A virtual key.
#[utoipa::path(
    get,
    path = "/keys/{id}",
    operation_id = "get_key",
    tag = "keys",
    params(("id" = String, Path, description = "Its id")),
    responses(
        (status = 200, description = "The key", body = KeyRecord),
        (status = 404, description = "There is no such key"),
    )
)]
pub(super) async fn show(State(admin): State<Shared>, Names(id): Names<String>) -> Result<Json<KeyRecord>, Problem> {
    let snapshot = admin.app.catalog.snapshot();
    let entry = snapshot.key(&id).ok_or_else(unknown)?;
    Ok(Json(KeyRecord::new(&entry.key, admin.app.clock.now())))
}

/// Makes a virtual key; its secret is told once.
#[utoipa::path(
    post,
    path = "/keys",
    operation_id = "create_key",
    tag = "keys",
    request_body = Order,
    responses(
        (status = 200, description = "The key with its secret", body = KeyRecord),
        (status = 409, description = "There are too many keys"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn create(
    State(admin): State<Shared>,
    operator: Operator,
    Body(order): Body<Order>,
) -> Result<Json<KeyRecord>, Problem> {
    let agent = params::agent_name(order.agent.as_deref())?;
    let agent = agent.ok_or_else(|| Problem::bad_request("say whom the key speaks for in `agent`"))?;
    if order.name.chars().count() > KEY_NAME_CHARS || order.name.chars().any(char::is_control) {
        return Err(Problem::bad_request(format!("`name` has at most {KEY_NAME_CHARS} printable characters")));
    }
    let order = KeyOrder {
        agent,
        name: order.name,
        expires_at: end(&order.expires_at, order.expires_in_seconds, admin.app.common_now())?,
        budget: budget(order.budget.unwrap_or_default())?,
        by: operator.acting(order.by)?,
    };
    let issued = admin.app.create_key(order).await?;
    Ok(admin.issued(&issued))
}

/// Takes a virtual key back.
#[utoipa::path(
    delete,
    path = "/keys/{id}",
    operation_id = "revoke_key",
    tag = "keys",
    params(("id" = String, Path, description = "Its id"), Plea),
    responses(
        (status = 200, description = "The key", body = KeyRecord),
        (status = 404, description = "There is no such key"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn revoke(
    State(admin): State<Shared>,
    operator: Operator,
    Names(id): Names<String>,
    Params(plea): Params<Plea>,
) -> Result<Json<KeyRecord>, Problem> {
    let revoked =
        admin.app.revoke_key(id, operator.acting(plea.by)?).await.map_err(|error| Problem::unwritten(&error))?;
    Ok(Json(KeyRecord::new(&revoked.ok_or_else(unknown)?.key, admin.app.clock.now())))
}

/// Gives a virtual key a new secret, which is told once.
#[utoipa::path(
    post,
    path = "/keys/{id}/rotate",
    operation_id = "rotate_key",
    tag = "keys",
    params(("id" = String, Path, description = "Its id")),
    request_body = Rotation,
    responses(
        (status = 200, description = "The key with its secret", body = KeyRecord),
        (status = 404, description = "There is no such key"),
        (status = 409, description = "The key has ended"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn rotate(
    State(admin): State<Shared>,
    operator: Operator,
    Names(id): Names<String>,
    Body(rotation): Body<Rotation>,
) -> Result<Json<KeyRecord>, Problem> {
    if rotation.grace_seconds > KEY_GRACE_SECONDS {
        return Err(Problem::bad_request(format!("`grace_seconds` is a number from 0 to {KEY_GRACE_SECONDS}")));
    }
    let rotated = admin.app.rotate_key(id.clone(), rotation.grace_seconds, operator.acting(rotation.by)?).await?;
    rotated.map(|issued| admin.issued(&issued)).ok_or_else(|| admin.unrotated(&id))
}

impl Admin {
    fn issued(&self, issued: &IssuedKey) -> Json<KeyRecord> {
        let record = KeyRecord::new(&issued.entry.key, self.app.clock.now());
        Json(KeyRecord { secret: Some(issued.secret.reveal().to_owned()), ..record })
    }

    fn unrotated(&self, id: &str) -> Problem {
        let snapshot = self.app.catalog.snapshot();
        let state = snapshot.key(id).map(|entry| entry.key.state(self.app.clock.now()));
        match state {
            Some(KeyState::Expired) => Problem::conflict("this key has expired; make a new one"),
            Some(_) => Problem::conflict("this key was revoked; make a new one"),
            None => unknown(),
        }
    }
}

fn unknown() -> Problem {
    Problem::not_found("there is no virtual key of this id")
}

fn budget(asked: KeyBudget) -> Result<Budget, Problem> {
    let amount = |name: &str, amount: Option<Usd>| match amount {
        Some(Usd(amount)) if amount <= NanoUsd::ZERO => {
            Err(Problem::bad_request(format!("`budget.{name}` is an amount of dollars above 0")))
        }
        amount => Ok(amount.map(|Usd(amount)| amount)),
    };
    let budget = Budget {
        mode: Mode::Enforce,
        max_run_cost: amount("max_run_cost", asked.max_run_cost)?,
        daily_limit: amount("daily_limit", asked.daily_limit)?,
        monthly_limit: amount("monthly_limit", asked.monthly_limit)?,
        kill_run: true,
        stages: Arc::new([Stage { at: 80, action: StageAction::Warn }]),
        ..Budget::default()
    };
    Ok(if budget.is_set() { budget } else { Budget::default() })
}
