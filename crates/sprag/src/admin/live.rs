//! `GET /live`: tells an open page that there is something new, at most once a second. The page then asks for itself again. It says
//! how much had happened when it was made, so that nothing is missed between that and the stream.
//! `GET /api/v1/live`: tells a program every event of this node as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use sprag_core::id::AgentName;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;

use super::api::model::EventRecord;
use super::api::{Params, agent_name};
use super::problem::Problem;
use super::{Admin, Shared};

/// How long a page is left alone after it was told something.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a page with nothing new is told that the connection stands, and its session looked at again.
const LOOK: Duration = Duration::from_secs(15);
/// How often a page asks for itself again where other nodes record without a word to this one.
const LOOK_AT_OTHERS: Duration = Duration::from_secs(5);

/// One open page.
struct Follower {
    admin: Arc<Admin>,
    headers: HeaderMap,
    events: broadcast::Receiver<Arc<sprag_core::event::Event>>,
    changes: watch::Receiver<u64>,
    /// Something happened before it listened.
    is_late: bool,
    told: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

/// A program that wants to know everything.
struct Listener {
    admin: Arc<Admin>,
    /// What let it in, and may end.
    headers: HeaderMap,
    events: broadcast::Receiver<Arc<sprag_core::event::Event>>,
    agent: Option<AgentName>,
    _room: OwnedSemaphorePermit,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only what this agent does.
    agent: Option<String>,
}

/// What a page knows.
#[derive(Deserialize)]
pub(super) struct Seen {
    seen: Option<u64>,
}

pub(super) async fn pages(State(admin): State<Shared>, Query(page): Query<Seen>, headers: HeaderMap) -> Response {
    let room = match admin.room() {
        Ok(room) => room,
        Err(problem) => return problem.into_response(),
    };
    let follower = Follower {
        events: admin.app.live.follow(),
        changes: admin.app.changes.subscribe(),
        is_late: page.seen.is_some_and(|seen| seen != admin.news()),
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

/// Events as they happen, of one agent or of all.
///
/// Who is too slow is told how many it missed.
#[utoipa::path(
    get,
    path = "/live",
    operation_id = "follow_events",
    tag = "events",
    params(Wanted),
    responses(
        (status = 200, description = "A stream of server-sent events: `event` with an event as JSON, `missed` with how many", body = String, content_type = "text/event-stream"),
        (status = 503, description = "Too many follow already"),
    )
)]
pub(super) async fn events(
    State(admin): State<Shared>,
    headers: HeaderMap,
    Params(wanted): Params<Wanted>,
) -> Result<Response, Problem> {
    let listener = Listener {
        agent: agent_name(wanted.agent.as_deref())?,
        _room: admin.room()?,
        headers,
        events: admin.app.live.follow(),
        admin,
    };
    let told = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(LOOK)).into_response())
}

impl Admin {
    /// How much has happened since the start: events, and changes of what is set.
    pub(super) fn news(&self) -> u64 {
        self.app.live.count() + *self.app.changes.borrow()
    }

    fn room(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.followers.clone().try_acquire_owned().map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages and programs follow what happens; close some")
        })
    }
}

impl Listener {
    /// What to tell next; nothing when Sprag stops, or the token or session is over.
    async fn next(&mut self) -> Option<Event> {
        let shutdown = self.admin.shutdown.clone();
        loop {
            let heard = tokio::select! {
                heard = self.events.recv() => Some(heard),
                () = tokio::time::sleep(LOOK) => None,
                () = shutdown.cancelled() => return None,
            };
            if !self.admin.is_let_in(&self.headers) {
                return None;
            }
            let told = match heard {
                Some(Ok(event)) if self.agent.as_ref().is_none_or(|agent| *agent == event.agent) => {
                    Event::default().event("event").json_data(EventRecord::from(&*event))
                }
                Some(Err(RecvError::Lagged(missed))) => {
                    Event::default().event("missed").json_data(json!({ "missed": missed }))
                }
                Some(Err(RecvError::Closed)) => return None,
                Some(Ok(_)) | None => continue,
            };
            // What cannot be written as JSON is left out; there is no such event.
            if let Ok(told) = told {
                return Some(told);
            }
        }
    }
}

impl Follower {
    /// Waits for something new. False when the page is to be left: Sprag stops, or the session is over.
    async fn wait(&mut self) -> bool {
        if std::mem::take(&mut self.is_late) {
            self.told = Some(Instant::now());
            return true;
        }
        let shutdown = self.admin.shutdown.clone();
        if let Some(told) = self.told {
            tokio::select! {
                () = tokio::time::sleep_until(told + PAUSE) => {}
                () = shutdown.cancelled() => return false,
            }
        }
        let is_shared = self.admin.app.history.is_shared();
        loop {
            let is_new = tokio::select! {
                event = self.events.recv() => !matches!(event, Err(RecvError::Closed)),
                changed = self.changes.changed() => changed.is_ok(),
                () = tokio::time::sleep(if is_shared { LOOK_AT_OTHERS } else { LOOK }) => is_shared,
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
