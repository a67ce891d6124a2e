//! `/kills`, and what stops one run or lets it go on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::policy::{BadScope, Kill, KillKind, KillScope};
use sprag_core::time::Timestamp;
use sprag_store::{RunKey, StoreError};
use utoipa::ToSchema;

use super::body::Body;
use super::model::{KillRecord, Listing};
use super::newest::{self, Plea, Wanted};
use super::params::{self, Names, Params};
use crate::acts::KillOrder;
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};

/// What a kill is asked with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KillOrder)]
pub(in crate::admin) struct Order {
    /// For `/kills`; a run is named by its path.
    scope: Option<String>,
    /// The path that it is limited to, with all that lies below.
    route: Option<String>,
    reason: Option<String>,
    /// Until somebody approves, rather than for good.
    #[serde(default)]
    pause: bool,
    /// When it ends by itself.
    expires_at: Option<String>,
    /// Or after how long.
    expires_in_seconds: Option<u32>,
    by: Option<String>,
}

/// What is stopped now, the latest first.
#[utoipa::path(
    get,
    path = "/kills",
    operation_id = "list_kills",
    tag = "kills",
    params(Wanted),
    responses(
        (status = 200, description = "A page of kills", body = Listing<KillRecord>),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<KillRecord>>, Problem> {
    let now = admin.app.clock.now();
    let snapshot = admin.app.catalog.snapshot();
    let in_force = snapshot.kills.iter().filter(|kill| kill.is_in_force(now));
    // Ids are ordered by time.
    Ok(Json(newest::page(in_force, &wanted, |kill| kill.id.clone(), |kill| KillRecord::from(&**kill))?))
}

/// Stops a run, an agent, a key, every call with a header, or everything.
#[utoipa::path(
    post,
    path = "/kills",
    operation_id = "add_kill",
    tag = "kills",
    request_body = Order,
    responses(
        (status = 200, description = "The kill in force", body = KillRecord),
        (status = 409, description = "There are too many kills"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn add(
    State(admin): State<Shared>,
    operator: Operator,
    Body(order): Body<Order>,
) -> Result<Json<KillRecord>, Problem> {
    let Some(scope) = &order.scope else { return Err(Problem::bad_request("say what to stop in `scope`")) };
    let field = |name: &str, error: BadScope| Problem::bad_request(format!("`{name}`: {error}"));
    let scope: KillScope = scope.parse().map_err(|error| field("scope", error))?;
    let scope = match order.route.as_deref() {
        Some(route) => scope.on(route).map_err(|error| field("route", error))?,
        None => scope,
    };
    admin.kill(&operator, scope, order).await.map(|kill| Json(KillRecord::from(&*kill)))
}

/// Takes a kill back.
#[utoipa::path(
    delete,
    path = "/kills/{id}",
    operation_id = "lift_kill",
    tag = "kills",
    params(("id" = String, Path, description = "Its id"), Plea),
    responses(
        (status = 200, description = "The kill that was taken back", body = KillRecord),
        (status = 404, description = "No kill of this id is in force"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn lift(
    State(admin): State<Shared>,
    operator: Operator,
    Names(id): Names<String>,
    Params(plea): Params<Plea>,
) -> Result<Json<KillRecord>, Problem> {
    let lifted = admin.app.lift(id, operator.acting(plea.by)?).await?;
    let kill = lifted.ok_or_else(|| Problem::not_found("there is no kill of this id in force"))?;
    Ok(Json(KillRecord::from(&*kill)))
}

/// Stops a run.
#[utoipa::path(
    post,
    path = "/runs/{agent}/{id}/kill",
    operation_id = "kill_run",
    tag = "kills",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run")),
    request_body = Order,
    responses(
        (status = 200, description = "The kill in force", body = KillRecord),
        (status = 404, description = "A name is missing in the path"),
        (status = 409, description = "There are too many kills"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn kill_run(
    State(admin): State<Shared>,
    operator: Operator,
    Names(run): Names<(String, String)>,
    Body(order): Body<Order>,
) -> Result<Json<KillRecord>, Problem> {
    let RunKey { agent, id } = run_of(&run)?;
    if order.scope.is_some() || order.route.is_some() {
        return Err(Problem::bad_request("the run is named by the path; leave `scope` and `route` out"));
    }
    admin.kill(&operator, KillScope::run(&agent, &id), order).await.map(|kill| Json(KillRecord::from(&*kill)))
}

/// Lets a killed or paused run go on.
#[utoipa::path(
    post,
    path = "/runs/{agent}/{id}/resume",
    operation_id = "resume_run",
    tag = "kills",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run")),
    request_body = Plea,
    responses(
        (status = 200, description = "The kill that was taken back", body = KillRecord),
        (status = 404, description = "A name is missing in the path"),
        (status = 409, description = "The run was not killed itself"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn resume(
    State(admin): State<Shared>,
    operator: Operator,
    Names(run): Names<(String, String)>,
    Body(plea): Body<Plea>,
) -> Result<Json<KillRecord>, Problem> {
    let kill = admin.resume(&operator, run_of(&run)?, plea.by).await?;
    Ok(Json(KillRecord::from(&*kill)))
}

/// Lets a run go on that waits for approval.
#[utoipa::path(
    post,
    path = "/runs/{agent}/{id}/approve",
    operation_id = "approve_run",
    tag = "kills",
    params(("agent" = String, Path, description = "The name of the agent"), ("id" = String, Path, description = "The id of the run")),
    request_body = Plea,
    responses(
        (status = 200, description = "The pause that was taken back", body = KillRecord),
        (status = 404, description = "A name is missing in the path"),
        (status = 409, description = "The run does not wait for approval"),
        (status = 503, description = "It cannot be written; the problem says what holds"),
    )
)]
pub(super) async fn approve(
    State(admin): State<Shared>,
    operator: Operator,
    Names(run): Names<(String, String)>,
    Body(plea): Body<Plea>,
) -> Result<Json<KillRecord>, Problem> {
    let kill = admin.approve(&operator, run_of(&run)?, plea.by).await?;
    Ok(Json(KillRecord::from(&*kill)))
}

impl Admin {
    /// Stops what somebody wants stopped.
    pub(in crate::admin) async fn kill(
        &self,
        operator: &Operator,
        scope: KillScope,
        order: Order,
    ) -> Result<Arc<Kill>, Problem> {
        let now = self.app.common_now();
        let order = KillOrder {
            scope,
            kind: if order.pause { KillKind::Pause } else { KillKind::Kill },
            reason: order.reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| "manual".to_owned()),
            expires_at: end(&order.expires_at, order.expires_in_seconds, now)?,
            by: operator.acting(order.by)?,
            proof: None,
        };
        self.app.kill(order).await.map_err(|error| match error {
            StoreError::Full { .. } => error.into(),
            other => Problem::unwritten(&other),
        })
    }

    /// Lets a run go on.
    /// Lets a run go on that waits for approval, and no other.
    pub(in crate::admin) async fn approve(
        &self,
        operator: &Operator,
        run: RunKey,
        by: Option<String>,
    ) -> Result<Arc<Kill>, Problem> {
        let snapshot = self.app.catalog.snapshot();
        if snapshot.kills.of_run(&run.agent, &run.id).is_some_and(|kill| kill.kind == KillKind::Kill) {
            return Err(Problem::conflict("this run does not wait for approval, it was killed; resume it"));
        }
        self.resume(operator, run, by).await
    }

    pub(in crate::admin) async fn resume(
        &self,
        operator: &Operator,
        run: RunKey,
        by: Option<String>,
    ) -> Result<Arc<Kill>, Problem> {
        let resumed = self.app.resume(run, operator.acting(by)?).await?;
        resumed.ok_or_else(|| {
            Problem::conflict(
                "this run was not killed itself; if its calls are refused, `sprag kills` shows what stops them",
            )
        })
    }
}

impl Order {
    /// A kill asked for with a form.
    pub(in crate::admin) fn because(reason: Option<String>) -> Order {
        Order { reason, ..Order::default() }
    }
}

/// A run from the path of a request.
pub(super) fn run_of((agent, id): &(String, String)) -> Result<RunKey, Problem> {
    match (params::agent_name(Some(agent))?, params::run_id(Some(id))?) {
        (Some(agent), Some(id)) => Ok(RunKey { agent, id }),
        _ => Err(Problem::not_found("a run is named by its agent and its id")),
    }
}

/// When something ends that was asked for with a moment or a time.
pub(super) fn end(at: &Option<String>, seconds: Option<u32>, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let end = match (params::moment("expires_at", at.as_deref())?, seconds) {
        (Some(_), Some(_)) => return Err(Problem::bad_request("give `expires_at` or `expires_in_seconds`, not both")),
        (Some(at), None) => Some(at),
        (None, seconds) => seconds.map(|seconds| Timestamp(now.0.saturating_add(i64::from(seconds) * 1000))),
    };
    if end.is_some_and(|end| end <= now) {
        return Err(Problem::bad_request("it ends in the future, not now or before"));
    }
    Ok(end)
}
