//! Signing in and out. The token travels once; then a session stands for it.

use std::net::SocketAddr;

use askama::Template;
use axum::Router;
use axum::extract::{ConnectInfo, Form, State};
use axum::http::header::{RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use serde::Deserialize;

use super::api::Params;
use super::pages::html;
use super::{Shared, access, assets};

#[derive(Default, Deserialize)]
struct Offer {
    #[serde(default)]
    token: String,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    style: &'static str,
    complaint: Option<String>,
    token_file: Option<String>,
}

pub(super) fn routes(admin: &Shared) -> Router<Shared> {
    Router::new()
        .route("/logout", post(leave))
        .route_layer(from_fn_with_state(admin.clone(), access::require_own_form))
        .route("/login", get(ask).post(enter))
}

/// The form, or with a token in the link straight in: the redirect takes the token out of the address bar.
async fn ask(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Params(offer): Params<Offer>,
) -> Response {
    if !offer.token.is_empty() {
        return sign_in(&admin, peer, &offer.token);
    }
    if admin.visitor(&headers).is_some() {
        return Redirect::to("/").into_response();
    }
    form(&admin, StatusCode::OK, None)
}

async fn enter(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Form(offer): Form<Offer>,
) -> Response {
    sign_in(&admin, peer, offer.token.trim())
}

async fn leave(State(admin): State<Shared>, headers: HeaderMap) -> Response {
    if let Some(id) = admin.session_id(&headers) {
        admin.sessions.end(id);
    }
    ([(SET_COOKIE, admin.cookie(""))], Redirect::to("/login")).into_response()
}

fn sign_in(admin: &Shared, peer: SocketAddr, offered: &str) -> Response {
    match admin.try_token(offered, peer.ip()) {
        Ok((pass, _)) => {
            let id = admin.sessions.begin(pass, admin.app.clock.now());
            ([(SET_COOKIE, admin.cookie(&id))], Redirect::to("/")).into_response()
        }
        Err(problem) => {
            let seconds = problem.retry_after_seconds;
            let mut response = form(admin, problem.status, Some(problem.detail.into_owned()));
            if let Some(seconds) = seconds {
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

fn form(admin: &Shared, status: StatusCode, complaint: Option<String>) -> Response {
    // Where the token is kept helps only who can read that file anyway.
    let is_kept = admin.app.settings.load().admin.token.is_none();
    let token_file = is_kept.then(|| admin.app.data_dir().join("admin-token").display().to_string());
    html(status, &LoginPage { style: assets::files().style, complaint, token_file })
}
