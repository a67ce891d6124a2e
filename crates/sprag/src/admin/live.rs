//! `GET /live`: tells an open page that there is something new, at most once a second. The page then asks for itself again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;

use super::problem::Problem;
use super::{Admin, Shared};

/// How long a page is left alone after it was told something.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a page with nothing new is told that the connection stands, and its session looked at again.
const LOOK: Duration = Duration::from_secs(15);

/// One open page.
struct Follower {
    admin: Arc<Admin>,
    headers: HeaderMap,
    events: broadcast::Receiver<Arc<sprag_core::event::Event>>,
    changes: watch::Receiver<u64>,
    told: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

pub(super) async fn pages(State(admin): State<Shared>, headers: HeaderMap) -> Response {
    let Ok(room) = admin.followers.clone().try_acquire_owned() else {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close some").into_response();
    };
    let follower = Follower {
        events: admin.app.live.follow(),
        changes: admin.app.changes.subscribe(),
        told: None,
        admin,
        headers,
        _room: room,
    };
    let told = stream::unfold(follower, |mut follower| async move {
        follower.wait().await.then(|| (Ok::<_, Infallible>(Event::default().event("changed").data("")), follower))
    });
    Sse::new(told).keep_alive(KeepAlive::new().interval(LOOK)).into_response()
}

impl Follower {
    /// Waits for something new. False when the page is to be left: Sprag stops, or the session is over.
    async fn wait(&mut self) -> bool {
        let shutdown = self.admin.shutdown.clone();
        if let Some(told) = self.told {
            tokio::select! {
                () = tokio::time::sleep_until(told + PAUSE) => {}
                () = shutdown.cancelled() => return false,
            }
        }
        loop {
            let is_new = tokio::select! {
                event = self.events.recv() => !matches!(event, Err(RecvError::Closed)),
                changed = self.changes.changed() => changed.is_ok(),
                () = tokio::time::sleep(LOOK) => false,
                () = shutdown.cancelled() => return false,
            };
            if self.admin.visitor(&self.headers).is_none() {
                return false;
            }
            if is_new {
                // Whatever came meanwhile is part of the same news.
                self.events = self.events.resubscribe();
                self.told = Some(Instant::now());
                return true;
            }
        }
    }
}
