//! Proof that a browser's change comes from a page of Sprag's own: a token that only such a page knows, in the form
//! field `csrf` or, from scripts, in the header `x-csrf-token`.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use sprag_core::limits::ADMIN_BODY_BYTES;
use subtle::ConstantTimeEq;

use super::operator::Visitor;
use super::problem::Problem;

const FIELD: &str = "csrf";
const HEADER: &str = "x-csrf-token";

/// Gives the request back if it carries the token of the visitor's session.
///
/// # Errors
/// When it does not, or when a form is too large to look.
pub(super) async fn check(visitor: &Visitor, request: Request) -> Result<Request, Problem> {
    let is_right = |offered: &[u8]| -> bool { visitor.csrf.as_bytes().ct_eq(offered).into() };
    if let Some(offered) = request.headers().get(HEADER) {
        return if is_right(offered.as_bytes()) { Ok(request) } else { Err(foreign()) };
    }
    if !is_form(request.headers()) {
        return Err(foreign());
    }
    let (parts, body) = request.into_parts();
    let bytes = read(body).await?;
    let is_own = form_urlencoded::parse(&bytes).any(|(name, value)| name == FIELD && is_right(value.as_bytes()));
    if is_own { Ok(Request::from_parts(parts, Body::from(bytes))) } else { Err(foreign()) }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    to_bytes(body, ADMIN_BODY_BYTES).await.map_err(|error| {
        let is_too_large = std::error::Error::source(&error).is_some_and(|source| source.is::<LengthLimitError>());
        if is_too_large {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a form has at most {ADMIN_BODY_BYTES} bytes"))
        } else {
            Problem::bad_request(format!("the form did not arrive whole: {error}"))
        }
    })
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn foreign() -> Problem {
    Problem::forbidden(
        "this did not come from a page of this session, or the page is too old; go back, reload it and try again",
    )
}
