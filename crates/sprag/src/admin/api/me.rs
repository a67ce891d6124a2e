//! `GET /me`: who one is.

use axum::Json;
use sprag_core::time::Timestamp;

use super::model::Me;
use crate::admin::operator::Operator;

/// Who one is.
#[utoipa::path(
    get,
    path = "/me",
    operation_id = "get_me",
    tag = "access",
    responses(
        (status = 200, description = "Who asks", body = Me),
    )
)]
pub(super) async fn show(operator: Operator) -> Json<Me> {
    Json(Me {
        may_change: operator.role.may_change(),
        name: operator.name,
        role: operator.role,
        token: operator.token,
        expires_at: operator.expires_at.map(Timestamp::to_rfc3339),
    })
}
