//! `GET /agents`

use axum::Json;
use axum::extract::State;

use super::model::{AgentSummary, Listing};
use crate::admin::Shared;
use crate::admin::problem::Problem;

pub(super) async fn list(State(admin): State<Shared>) -> Result<Json<Listing<AgentSummary>>, Problem> {
    let agents = admin.records.read(|history| history.agents()).await?;
    Ok(Json(Listing { items: agents.iter().map(AgentSummary::from).collect(), next: None }))
}
