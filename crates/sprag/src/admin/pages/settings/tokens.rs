//! Admin tokens: who has one, making one, taking it back.

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::json;
use sprag_core::policy::KeyState;
use sprag_core::time::Timestamp;

use super::page;
use crate::admin::Shared;
use crate::admin::api::model::TokenRecord;
use crate::admin::api::{self, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::pages::field::Field;
use crate::admin::pages::filled::Filled;
use crate::admin::pages::rows::Moment;
use crate::admin::pages::{Page, Shell, html};

/// A token in the table.
pub(super) struct TokenLine {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) prefix: String,
    pub(super) state: &'static str,
    pub(super) tone: &'static str,
    pub(super) is_active: bool,
    pub(super) expires: Option<Moment>,
}

/// A new secret, this once.
#[derive(Template)]
#[template(path = "secret.html")]
struct Told {
    shell: Shell,
    title: String,
    what: &'static str,
    back: &'static str,
    secret: String,
    example: String,
    facts: Vec<(&'static str, String)>,
}

#[derive(Deserialize)]
pub(in crate::admin::pages) struct Target {
    id: String,
}

const ROLES: [(&str, &str); 2] = [("viewer", "viewer: looks"), ("admin", "admin: looks and changes")];
const LIFETIMES: [(&str, &str); 4] =
    [("", "never"), ("604800", "in 7 days"), ("2592000", "in 30 days"), ("31536000", "in a year")];

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::new("name", "Name").hint("whose it is: events say what they did"),
        Field::new("role", "Role").choices(ROLES).holding("viewer"),
        Field::new("expires_in_seconds", "Ends").choices(LIFETIMES).holding(""),
    ]
}

pub(in crate::admin::pages) async fn create(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    filled: Filled,
) -> Page {
    let mut order = json!({ "name": filled.text("name"), "role": filled.text("role") });
    match filled.given("expires_in_seconds").map(str::parse::<u32>) {
        Some(Ok(seconds)) => order["expires_in_seconds"] = seconds.into(),
        Some(Err(_)) => return page(&admin, visitor, filled.but("expires_in_seconds", "choose one of the list")).await,
        None => {}
    }
    match desk::create_token(&admin, operator, order).await {
        Ok(token) => {
            let shell = admin.shell("settings", visitor);
            let (title, secret) = (format!("New token of {}", token.name), token.secret.clone().unwrap_or_default());
            let facts = vec![("Role", token.role.as_str().to_owned()), ("Id", token.id)];
            let (what, back, example) = ("token", "/settings#tokens", String::new());
            Ok(html(StatusCode::OK, &Told { shell, title, what, back, secret, example, facts }))
        }
        Err(problem) => {
            let field_of = |key: &str, _: &str| if key.is_empty() { "name" } else { key }.to_owned();
            page(&admin, visitor, filled.refused(problem, field_of)?).await
        }
    }
}

pub(in crate::admin::pages) async fn revoke(
    State(admin): State<Shared>,
    operator: Operator,
    Sent(target): Sent<Target>,
) -> Page {
    desk::revoke_token(&admin, operator, &target.id).await?;
    Ok(Redirect::to("/settings#tokens").into_response())
}

impl TokenLine {
    pub(super) fn new(token: &TokenRecord, now: Timestamp) -> TokenLine {
        let (state, tone) = match token.state {
            KeyState::Active => ("active", "good"),
            KeyState::Expired => ("ended", ""),
            KeyState::Revoked => ("revoked", "bad"),
        };
        let expires = token.expires_at.as_deref().and_then(|at| api::moment("at", Some(at)).ok().flatten());
        TokenLine {
            id: token.id.clone(),
            name: token.name.clone(),
            role: token.role.as_str(),
            prefix: token.prefix.clone(),
            state,
            tone,
            is_active: token.state == KeyState::Active,
            expires: expires.map(|at| Moment::new(at, now)),
        }
    }
}
