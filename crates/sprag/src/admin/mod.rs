//! What a person sees of Sprag: health, the admin API and the dashboard, on a listener of their own.
//!
//! - `guard`: what every request must be like, and what every answer carries
//! - `access`, `operator`, `sessions`, `csrf`, `throttle`, `login`: who may enter, and what they may do
//! - `act`: links in alerts, which are a permission of their own
//! - `api`: JSON under `/api/v1`; `pages`: the same facts as HTML
//! - `metrics`: what is counted, for Prometheus
//! - `live`: telling open pages that something happened, and programs what; `export`: events as a file
//! - `roster`: the agents in pages; `records`: reading the history without holding up the runtime
//!
//! Nothing here is reachable through the proxy: an agent must not be able to let itself go on.

mod access;
mod act;
pub(crate) mod api;
mod assets;
mod csrf;
mod export;
mod guard;
mod health;
mod live;
mod login;
mod metrics;
mod operator;
mod pages;
mod plain_html;
mod problem;
mod records;
mod roster;
mod sessions;
mod throttle;
mod trial;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::middleware::from_fn_with_state;
use axum::{Router, middleware};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use sprag_core::limits::{ADMIN_BODY_BYTES, LIVE_FOLLOWERS};
use sprag_core::policy::{KeptProof, KillKind, KillScope};
use sprag_core::time::Timestamp;
use sprag_store::history::{RunRow, RunStatus, RunStopped};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::records::Records;
use self::sessions::Sessions;
use self::throttle::Throttle;
use crate::app::App;
use crate::config::Secret;

/// Where Sprag listens, as the system knows it.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// The proxy.
    pub proxy: SocketAddr,
    /// The dashboard and the admin API.
    pub admin: SocketAddr,
}

/// What all handlers share.
pub(crate) struct Admin {
    app: Arc<App>,
    token: Secret,
    /// For those who may only look.
    viewer_token: Option<Secret>,
    addresses: Addresses,
    started: Timestamp,
    sessions: Sessions,
    throttle: Throttle,
    /// Of those who follow links that nobody made.
    link_throttle: Throttle,
    records: Records,
    /// Room for those who follow what happens.
    followers: Arc<Semaphore>,
    shutdown: CancellationToken,
}

type Shared = Arc<Admin>;

impl Admin {
    /// Runs without a call since then are over, whatever the record says: nobody tells Sprag that a task has ended.
    fn active_since(&self) -> Timestamp {
        let idle_ms = i64::try_from(self.app.settings.load().runs.idle.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.app.clock.now().0.saturating_sub(idle_ms))
    }

    /// Kills and pauses that stop something now.
    fn kills_in_force(&self) -> u64 {
        let now = self.app.clock.now();
        self.app.catalog.snapshot().kills.iter().filter(|kill| kill.is_in_force(now)).count() as u64
    }

    /// Whether anybody is told of what happens while they do not look.
    fn has_alert_channel(&self) -> bool {
        !self.app.alerts.in_force().channels.is_empty()
    }

    /// No call goes out: somebody pressed the panic button.
    fn is_all_stopped(&self) -> bool {
        let now = self.app.clock.now();
        self.app.catalog.snapshot().kills.of_scope(&KillScope::Everything).is_some_and(|kill| kill.is_in_force(now))
    }

    /// Says where runs stand now: the catalog knows what is killed, and the clock what is over.
    fn expire<'a>(&self, runs: impl IntoIterator<Item = &'a mut RunRow>) {
        let (active_since, now) = (self.active_since(), self.app.clock.now());
        let snapshot = self.app.catalog.snapshot();
        for run in runs {
            if run.stopped.as_ref().and_then(|stopped| stopped.expires_at).is_some_and(|end| end <= now) {
                run.status = RunStatus::Running;
                run.stopped = None;
            }
            // The direct parent only: the row of a run names no other.
            let stopping = [Some(&run.id), run.parent.as_ref()].into_iter().flatten().find_map(|id| {
                let kill = snapshot.kills.of_run(&run.agent, id).filter(|kill| kill.is_in_force(now))?;
                Some((kill.clone(), (*id != run.id).then(|| id.clone())))
            });
            if let Some((kill, through)) = stopping {
                run.status = if kill.kind == KillKind::Pause { RunStatus::Paused } else { RunStatus::Killed };
                run.stopped = Some(RunStopped {
                    reason: kill.reason.clone(),
                    by: kill.by.clone(),
                    at: kill.at,
                    expires_at: kill.expires_at,
                    proof: kill.proof.as_ref().map(KeptProof::value),
                    through,
                });
            }
            if run.status == RunStatus::Running && run.last_at < active_since {
                run.status = RunStatus::Expired;
            }
        }
    }
}

/// The whole admin side. Its routes are made when somebody first asks: that takes longer than all else at a start, and
/// many a node is never looked at.
pub struct AdminSide {
    admin: Arc<Admin>,
    routes: OnceLock<Router>,
}

impl AdminSide {
    /// Takes what handlers share; nothing is answered yet.
    #[must_use]
    pub fn new(app: Arc<App>, token: Secret, addresses: Addresses, shutdown: CancellationToken) -> AdminSide {
        let admin = Arc::new(Admin {
            started: app.clock.now(),
            viewer_token: app.settings.load().admin.viewer_token.clone(),
            records: Records::new(app.history.clone()),
            sessions: Sessions::default(),
            throttle: Throttle::default(),
            link_throttle: Throttle::default(),
            followers: Arc::new(Semaphore::new(LIVE_FOLLOWERS)),
            shutdown,
            app,
            token,
            addresses,
        });
        AdminSide { admin, routes: OnceLock::new() }
    }

    /// Answers one request.
    pub async fn handle(&self, peer: SocketAddr, mut request: Request<Incoming>) -> Response<Body> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let routes = self.routes.get_or_init(|| routes(&self.admin)).clone();
        match TowerToHyperService::new(routes).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

fn routes(admin: &Arc<Admin>) -> Router {
    Router::new()
        .merge(health::routes())
        .merge(metrics::routes(admin))
        .merge(assets::routes())
        .merge(login::routes(admin))
        .merge(act::routes())
        .nest("/api/v1", api::routes(admin))
        .merge(pages::routes(admin))
        .fallback(pages::nothing_here)
        .layer(DefaultBodyLimit::max(ADMIN_BODY_BYTES))
        .layer(middleware::from_fn(guard::check_origin))
        .layer(from_fn_with_state(admin.clone(), guard::check_host))
        .layer(middleware::map_response(guard::add_headers))
        .with_state(admin.clone())
}
