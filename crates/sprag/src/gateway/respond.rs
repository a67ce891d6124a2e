//! Refusals as answers: the one place where a no becomes bytes.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use sprag_core::event::Event;
use sprag_core::wire::refusal;
use sprag_core::wire::{Family, Reason, Refusal};

use super::body::Body;
use super::read::Unread;
use super::ticket::{Settled, Ticket};
use crate::config::Settings;

const RUN_ID: HeaderName = HeaderName::from_static("x-sprag-run-id");
const STEP: HeaderName = HeaderName::from_static("x-sprag-step");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-sprag-request-id");
const COST: HeaderName = HeaderName::from_static("x-sprag-cost-usd");
const RUN_COST: HeaderName = HeaderName::from_static("x-sprag-run-cost-usd");
const BLOCKED: HeaderName = HeaderName::from_static("x-sprag-blocked");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Refuses a call: settles its ticket and answers in the caller's dialect.
pub(crate) fn refuse(family: Family, refusal: &Refusal, mut ticket: Ticket) -> Response<Body> {
    ticket.refuse(refusal);
    let mut refusal = refusal.clone().with("agent", ticket.event().agent.as_str());
    if let Some(run) = &ticket.event().run {
        refusal = refusal.with("run_id", run.id.as_str());
    }
    let mut response = plain(family, &refusal);
    sign(response.headers_mut(), ticket.event(), None);
    response
}

/// A request that leads to no provider. It is not recorded: there is nobody it could be counted for.
pub(crate) fn nowhere(settings: &Settings, path: &str) -> Response<Body> {
    let shown: String = path.chars().take(80).collect();
    let message = format!(
        "no provider serves `{shown}`. Use /v1/… (OpenAI: {}, Anthropic: {}), /v1beta/… (Gemini: {}), or /PROVIDER/…; \
         the dashboard is at http://{}/",
        settings.routing.default_openai,
        settings.routing.default_anthropic,
        settings.routing.default_gemini,
        settings.admin.listen
    );
    plain(Family::Openai, &Refusal::new(Reason::NotFound, message))
}

/// The process is alive.
pub(crate) fn healthy() -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::from_static(b"ok")));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A body that could not be read, as a refusal.
pub(crate) fn unread(failure: Unread) -> Refusal {
    match failure {
        Unread::TooLarge(limit) => {
            let message =
                format!("the request body is larger than {limit} bytes; raise `proxy.max_body_bytes` to allow it");
            Refusal::new(Reason::BodyTooLarge, message)
        }
        Unread::TooSlow | Unread::Gone => Refusal::new(Reason::InvalidRequest, failure.to_string()),
    }
}

/// The headers that every answer carries.
pub(crate) fn sign(headers: &mut HeaderMap, event: &Event, settled: Option<&Settled>) {
    let mut insert = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(name, value);
        }
    };
    insert(REQUEST_ID, &event.id);
    if let Some(run) = &event.run {
        insert(RUN_ID, run.id.as_str());
        insert(STEP, &run.step.to_string());
    }
    if let Some(settled) = settled {
        if let Some(cost) = settled.cost {
            insert(COST, &cost.to_string());
        }
        if let Some(cost) = settled.known_run_cost() {
            insert(RUN_COST, &cost.to_string());
        }
    }
}

fn plain(family: Family, refusal: &Refusal) -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::from(refusal::body(family, refusal))));
    *response.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if refusal.reason.is_policy() {
        headers.insert(BLOCKED, HeaderValue::from_static(refusal.reason.as_str()));
        // SDKs would otherwise turn one stop into many calls.
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    if let Some(seconds) = refusal.retry_after_seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
