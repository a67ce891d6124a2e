//! What went wrong, as RFC 9457 problem details. Pages show the same as HTML.

use std::borrow::Cow;

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sprag_store::StoreError;
use utoipa::ToSchema;

use crate::config::{self, Problems};

/// Why a request to the admin side was not answered as asked.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(super) status: StatusCode,
    /// For the person who asked.
    pub(super) detail: Cow<'static, str>,
    pub(super) retry_after_seconds: Option<u32>,
    /// What is wrong with single keys of what was sent.
    pub(super) errors: Vec<Slip>,
}

/// A problem as it is sent: RFC 9457.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct Details {
    /// Always `about:blank`: the status says it all.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The name of the status.
    title: &'static str,
    status: u16,
    /// What is wrong, and what to do about it.
    #[schema(value_type = String)]
    detail: Cow<'static, str>,
    /// What is wrong with single keys of what was sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Slip>,
}

/// What is wrong with one key.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Slip {
    key: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem { status, detail: detail.into(), retry_after_seconds: None, errors: Vec::new() }
    }

    pub(super) fn bad_request(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A policy that makes no sense.
    pub(super) fn bad_policy(problems: Problems) -> Problem {
        Problem::unusable("policy", problems)
    }

    /// Something in the form of the configuration that makes no sense.
    pub(super) fn unusable(what: &str, problems: Problems) -> Problem {
        let errors: Vec<Slip> = problems.0.into_iter().map(Slip::from).collect();
        let told: Vec<_> = errors.iter().map(Slip::told).collect();
        Problem { errors, ..Problem::bad_request(format!("`{what}` cannot be used: {}", told.join("; "))) }
    }

    pub(super) fn unauthorized(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, detail)
    }

    pub(super) fn forbidden(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, detail)
    }

    pub(super) fn not_found(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn conflict(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// A stop that holds, but that the disk refused.
    pub(super) fn unwritten(error: &StoreError) -> Problem {
        let detail =
            format!("it holds until Sprag ends, but is not on record: {error}; ask again when that is repaired");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub(super) fn too_many_attempts(retry_after_seconds: u32) -> Problem {
        let detail = "too many wrong tokens came from this address; wait a minute";
        Problem {
            retry_after_seconds: Some(retry_after_seconds),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        }
    }

    /// What is wrong, by key; an empty key is the whole.
    pub(super) fn slips(&self) -> Vec<(String, String)> {
        let told = |slip: &Slip| {
            let hint = slip.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            (slip.key.clone(), format!("{}{hint}", slip.message))
        };
        if self.errors.is_empty() {
            return vec![(named_in(&self.detail).to_owned(), self.detail.clone().into_owned())];
        }
        self.errors.iter().map(told).collect()
    }

    pub(super) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }
}

/// The key that a sentence begins with, in backticks.
fn named_in(detail: &str) -> &str {
    detail.strip_prefix('`').and_then(|rest| rest.split('`').next()).unwrap_or_default()
}

impl Slip {
    fn told(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        match self.key.as_str() {
            "" => format!("{}{hint}", self.message),
            key => format!("`{key}`: {}{hint}", self.message),
        }
    }
}

impl From<config::Problem> for Slip {
    fn from(problem: config::Problem) -> Slip {
        Slip { key: problem.key, message: problem.message, hint: problem.hint }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::BadCursor(_) => Problem::bad_request(error.to_string()),
            StoreError::Full { .. } | StoreError::NameTaken(_) => Problem::conflict(error.to_string()),
            other => Problem::new(StatusCode::SERVICE_UNAVAILABLE, other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (kind, title, status) = ("about:blank", self.title(), self.status.as_u16());
        let details = Details { kind, title, status, detail: self.detail, errors: self.errors };
        let mut response = (self.status, Json(details)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sprag\""));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
