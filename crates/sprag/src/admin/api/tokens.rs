//! `/tokens`: admin tokens, made, listed, taken back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::policy::{Role, check_operator_name};
use sprag_store::catalog::TokenEntry;
use utoipa::ToSchema;

use super::body::Body;
use super::kills::end;
use super::model::{Listing, TokenRecord};
use super::newest::{self, Plea, Wanted};
use super::params::{Names, Params};
use crate::acts::TokenOrder;
use crate::admin::Shared;
use crate::admin::operator::{Operator, Pass};
use crate::admin::problem::Problem;

/// What a token is asked with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenOrder)]
pub(super) struct Order {
    /// Whose it shall be. Events name them.
    #[schema(required = true, value_type = String)]
    name: Option<String>,
    #[schema(required = true, value_type = Role)]
    role: Option<Role>,
    /// When it ends by itself.
    expires_at: Option<String>,
    /// Or after how long.
    expires_in_seconds: Option<u32>,
    by: Option<String>,
}

/// Admin tokens, the newest first; those that ended too.
#[utoipa::path(
    get,
    path = "/tokens",
    operation_id = "list_tokens",
    tag = "access",
    params(Wanted),
    responses(
        (status = 200, description = "A page of tokens", body = Listing<TokenRecord>),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<TokenRecord>>, Problem> {
    let now = admin.app.clock.now();
    let snapshot = admin.app.catalog.snapshot();
    let place = |entry: &&Arc<TokenEntry>| format!("{:013}.{}", entry.token.created_at.0, entry.token.id);
    Ok(Json(newest::page(snapshot.tokens(), &wanted, place, |entry| TokenRecord::new(&entry.token, now))?))
}

/// Makes an admin token; its secret is told once.
#[utoipa::path(
    post,
    path = "/tokens",
    operation_id = "create_token",
    tag = "access",
    request_body = Order,
    responses(
        (status = 200, description = "The token with its secret", body = TokenRecord),
        (status = 409, description = "The name has a token, or there are too many"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn create(
    State(admin): State<Shared>,
    operator: Operator,
    Body(order): Body<Order>,
) -> Result<Json<TokenRecord>, Problem> {
    let name = order.name.ok_or_else(|| Problem::bad_request("say whose the token is in `name`"))?;
    check_operator_name(&name).map_err(|error| Problem::bad_request(format!("`name`: {error}")))?;
    let role = order.role.ok_or_else(|| Problem::bad_request("say in `role` what it allows: `viewer` or `admin`"))?;
    let order = TokenOrder {
        name,
        role,
        expires_at: end(&order.expires_at, order.expires_in_seconds, admin.app.clock.now())?,
        by: operator.acting(order.by)?,
    };
    let issued = admin.app.create_token(order).await?;
    let record = TokenRecord::new(&issued.entry.token, admin.app.clock.now());
    Ok(Json(TokenRecord { secret: Some(issued.secret.reveal().to_owned()), ..record }))
}

/// Takes an admin token back and ends its sessions.
#[utoipa::path(
    delete,
    path = "/tokens/{id}",
    operation_id = "revoke_token",
    tag = "access",
    params(("id" = String, Path, description = "Its id"), Plea),
    responses(
        (status = 200, description = "The token", body = TokenRecord),
        (status = 404, description = "There is no such token"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn revoke(
    State(admin): State<Shared>,
    operator: Operator,
    Names(id): Names<String>,
    Params(plea): Params<Plea>,
) -> Result<Json<TokenRecord>, Problem> {
    let revoked = admin.app.revoke_token(id.clone(), operator.acting(plea.by)?).await;
    // They no longer open; this only takes them out of memory.
    admin.sessions.end_all(&Pass::Token(id));
    let entry = revoked.map_err(|error| Problem::unwritten(&error))?;
    let entry = entry.ok_or_else(|| Problem::not_found("there is no admin token of this id"))?;
    Ok(Json(TokenRecord::new(&entry.token, admin.app.clock.now())))
}
