//! Who may enter: whoever has a token, as a bearer or, in a browser, by a session that the token began.
//!
//! Everything that can be refused for who asks is refused here, by method: a viewer only reads, and a browser changes
//! something only by a form that Sprag itself gave it.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::operator::{Operator, Pass, Visitor};
use super::problem::Problem;
use super::sessions::SESSION_SECONDS;
use super::{Admin, Shared, csrf, guard, pages};

/// A token of this length cannot be guessed at any speed.
const UNGUESSABLE_BYTES: usize = 32;

/// Lets calls of the API through that carry a token or a session, as far as it reaches.
pub(super) async fn require_token(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let let_in = match bearer(request.headers()) {
        Some(token) => {
            let known = admin.try_token(token, peer.ip());
            known.and_then(|(_, operator)| admit(operator, request))
        }
        None => match admin.visitor(request.headers()) {
            Some(visitor) => admit_visitor(visitor, request).await,
            None => Err(Problem::unauthorized("send a token as `authorization: Bearer TOKEN`")),
        },
    };
    match let_in {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Sends browsers without a session to the login page, and lets the others do what they may.
pub(super) async fn require_session(State(admin): State<Shared>, request: Request, next: Next) -> Response {
    let Some(visitor) = admin.visitor(request.headers()) else {
        // A stream that follows to a login page would take it for news.
        return match request.uri().path() {
            "/live" => Problem::unauthorized("the session is over; sign in again").into_response(),
            _ => Redirect::to("/login").into_response(),
        };
    };
    match admit_visitor(visitor, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => pages::problem(problem),
    }
}

/// Refuses to sign out a browser that another site sent.
pub(super) async fn require_own_form(State(admin): State<Shared>, request: Request, next: Next) -> Response {
    let checked = match admin.visitor(request.headers()) {
        Some(visitor) => csrf::check(&visitor, request).await,
        None => Ok(request),
    };
    match checked {
        Ok(request) => next.run(request).await,
        Err(problem) => pages::problem(problem),
    }
}

async fn admit_visitor(visitor: Visitor, request: Request) -> Result<Request, Problem> {
    let mut request = admit(visitor.operator.clone(), request)?;
    if !guard::is_reading(request.method()) {
        request = csrf::check(&visitor, request).await?;
    }
    request.extensions_mut().insert(visitor);
    Ok(request)
}

/// Lets somebody do what their role allows, and tells the handlers who it is.
fn admit(operator: Operator, mut request: Request) -> Result<Request, Problem> {
    if !guard::is_reading(request.method()) {
        operator.may_change()?;
    }
    request.extensions_mut().insert(operator);
    Ok(request)
}

impl Admin {
    /// Whom an offered token lets in.
    ///
    /// # Errors
    /// When it is wrong or over, or too many from this address were wrong.
    pub(super) fn try_token(&self, offered: &str, peer: IpAddr) -> Result<(Pass, Operator), Problem> {
        let now = self.app.clock.now();
        let wait = self.throttle.wait_seconds(peer, now);
        let pass = self.pass_of(offered);
        // Guessing must not lock the owner out: agents on this machine share the owner's address.
        let may_pass = wait.is_none() || offered.len() >= UNGUESSABLE_BYTES;
        if let Some(pass) = pass.filter(|_| may_pass) {
            let operator = self.operator_of(&pass);
            return operator
                .map(|operator| (pass, operator))
                .ok_or_else(|| Problem::unauthorized("this token was revoked or has expired; ask for a new one"));
        }
        if let Some(seconds) = wait {
            return Err(Problem::too_many_attempts(seconds));
        }
        self.throttle.count_wrong(peer, now);
        Err(Problem::unauthorized("this token is not known"))
    }

    /// Who is in front of the browser that sent this, if they are signed in.
    pub(super) fn visitor(&self, headers: &HeaderMap) -> Option<Visitor> {
        let id = self.session_id(headers)?;
        let pass = self.sessions.pass(id, self.app.clock.now())?;
        Some(Visitor { operator: self.operator_of(&pass)?, csrf: self.sessions.csrf(id), seen: self.news() })
    }

    /// Whether the token or the session that let this in still does.
    pub(super) fn is_let_in(&self, headers: &HeaderMap) -> bool {
        match bearer(headers) {
            Some(token) => self.pass_of(token).is_some_and(|pass| self.operator_of(&pass).is_some()),
            None => self.visitor(headers).is_some(),
        }
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
