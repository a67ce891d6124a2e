//! Who may enter: whoever has the token, as a bearer or, in a browser, by a session that the token began.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::problem::Problem;
use super::sessions::SESSION_SECONDS;
use super::{Admin, Shared};

/// A token of this length cannot be guessed at any speed.
const UNGUESSABLE_BYTES: usize = 32;

/// Lets calls of the API through that carry the token or a session.
pub(super) async fn require_token(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let entered = match bearer(request.headers()) {
        Some(token) => admin.try_token(token, peer.ip()),
        None if admin.has_session(request.headers()) => Ok(()),
        None => Err(Problem::unauthorized("send the admin token as `authorization: Bearer TOKEN`")),
    };
    match entered {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Sends browsers without a session to the login page.
pub(super) async fn require_session(State(admin): State<Shared>, request: Request, next: Next) -> Response {
    if admin.has_session(request.headers()) { next.run(request).await } else { Redirect::to("/login").into_response() }
}

impl Admin {
    /// Compares an offered token with the right one.
    ///
    /// # Errors
    /// When it is wrong, or too many from this address were.
    pub(super) fn try_token(&self, offered: &str, peer: IpAddr) -> Result<(), Problem> {
        let now = self.app.clock.now();
        let wait = self.throttle.wait_seconds(peer, now);
        let is_right = self.token.matches(offered);
        // Guessing must not lock the owner out: agents on this machine share the owner's address.
        let may_pass = wait.is_none() || self.token.reveal().len() >= UNGUESSABLE_BYTES;
        if is_right && may_pass {
            return Ok(());
        }
        if let Some(seconds) = wait {
            return Err(Problem::too_many_attempts(seconds));
        }
        self.throttle.count_wrong(peer, now);
        Err(Problem::unauthorized("this is not the admin token"))
    }

    pub(super) fn has_session(&self, headers: &HeaderMap) -> bool {
        self.session_id(headers).is_some_and(|id| self.sessions.is_open(id, self.app.clock.now()))
    }

    pub(super) fn session_id<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies.flat_map(|line| line.split(';')).find_map(|pair| {
            let (found, id) = pair.trim().split_once('=')?;
            (found == name).then_some(id)
        })
    }

    /// The cookie that keeps a session; an empty id takes it away.
    pub(super) fn cookie(&self, id: &str) -> String {
        let seconds = if id.is_empty() { 0 } else { SESSION_SECONDS };
        format!("{}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict", self.cookie_name())
    }

    /// Cookies do not know ports, so two Sprags on one machine need two names.
    fn cookie_name(&self) -> String {
        format!("sprag_session_{}", self.addresses.admin.port())
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
