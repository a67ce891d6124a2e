//! Refusals as answers: the one place where a no becomes bytes.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::Map;
use sprag_core::event::Event;
use sprag_core::limits::RETRY_AFTER_SECONDS;
use sprag_core::policy::Delay;
use sprag_core::wire::assistant::{Saying, Spoken, speak};
use sprag_core::wire::refusal;
use sprag_core::wire::{Family, Form, Reason, Refusal};

use super::audience::Audience;
use super::body::Body;
use super::read::Unread;
use super::route::Route;
use super::settled::Settled;
use super::ticket::Ticket;
use crate::config::Settings;
use crate::config::file::Compat;

const RUN_ID: HeaderName = HeaderName::from_static("x-sprag-run-id");
const STEP: HeaderName = HeaderName::from_static("x-sprag-step");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-sprag-request-id");
const COST: HeaderName = HeaderName::from_static("x-sprag-cost-usd");
const RUN_COST: HeaderName = HeaderName::from_static("x-sprag-run-cost-usd");
const BLOCKED: HeaderName = HeaderName::from_static("x-sprag-blocked");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const DELAY: HeaderName = HeaderName::from_static("x-sprag-delay");
const LOOP_DELAY: HeaderName = HeaderName::from_static("x-sprag-loop-delay");
const AGENTWALL_RUN_ID: HeaderName = HeaderName::from_static("x-agentwall-run-id");
const AGENTWALL_STEP: HeaderName = HeaderName::from_static("x-agentwall-step");
const AGENTWALL_COST: HeaderName = HeaderName::from_static("x-agentwall-cost");
const FAIRVISOR_REASON: HeaderName = HeaderName::from_static("x-fairvisor-reason");
const FAIRVISOR_LOOP_DELAY: HeaderName = HeaderName::from_static("x-fairvisor-loop-delay");

/// Refuses a call: settles its ticket and answers in the form that its client expects. Only where other nodes are told
/// there is something to wait for.
pub(crate) fn refuse(
    audience: &Audience,
    refusal: Refusal,
    mut ticket: Box<Ticket>,
) -> impl Future<Output = Response<Body>> + use<> {
    let response = refused(audience, refusal, &mut ticket);
    let farewell = ticket.take_farewell();
    async move {
        if let Some(farewell) = farewell {
            farewell.heard(None).await;
        }
        response
    }
}

fn refused(audience: &Audience, refusal: Refusal, ticket: &mut Ticket) -> Response<Body> {
    let mut refusal = refusal.with("agent", ticket.event().agent.as_str());
    if let Some(run) = &ticket.event().run {
        refusal = refusal.with("run_id", run.id.for_caller()).with("step", run.step);
    }
    let refusal = audience.put(refusal);
    ticket.refuse(&refusal);
    let spoken = (refusal.form == Form::Assistant).then(|| speech(audience, &refusal, ticket.event())).flatten();
    let mut response = match spoken {
        Some(Spoken { content_type, body }) => answer(200, content_type, body),
        None => error(audience.family(), &refusal),
    };
    mark_stop(response.headers_mut(), audience, &refusal);
    sign(response.headers_mut(), audience, ticket.event(), None);
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
    error(Family::Openai, &Refusal::new(Reason::NotFound, message))
}

/// A request that leads to no provider, of a caller who is not let in. It is not recorded either.
pub(crate) fn turn_away(refusal: &Refusal) -> Response<Body> {
    let mut response = error(Family::Openai, refusal);
    response.headers_mut().insert(BLOCKED, HeaderValue::from_static(refusal.reason.as_str()));
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

/// A client that would talk to a provider without HTTP, where nobody could judge what it says. Codex takes this status for the
/// word to go on with HTTP, at once. It is not recorded: nothing was asked yet.
pub(crate) fn no_websocket(route: &Route<'_>) -> Response<Body> {
    let message = "Sprag carries HTTP requests and no WebSockets; send the call as an HTTP request";
    let mut response = error(route.family(), &Refusal::new(Reason::InvalidRequest, message));
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    response
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
pub(crate) fn sign(headers: &mut HeaderMap, audience: &Audience, event: &Event, settled: Option<&Settled>) {
    let imitates_agentwall = audience.responses().imitates(Compat::Agentwall);
    let mut insert = |names: [HeaderName; 2], value: &str| {
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else { return };
        let [name, imitated] = names;
        if imitates_agentwall {
            headers.insert(imitated, value.clone());
        }
        headers.insert(name, value);
    };
    insert([REQUEST_ID, REQUEST_ID], &event.id);
    if let Some(run) = &event.run {
        insert([RUN_ID, AGENTWALL_RUN_ID], run.id.for_caller());
        insert([STEP, AGENTWALL_STEP], itoa::Buffer::new().format(run.step));
    }
    if let Some(settled) = settled {
        if let Some(cost) = settled.cost {
            insert([COST, AGENTWALL_COST], cost.spelled().as_str());
        }
        if let Some(cost) = settled.known_run_cost() {
            insert([RUN_COST, RUN_COST], cost.spelled().as_str());
        }
    }
}

/// Tells that a request had to wait.
pub(crate) fn mark_delay(headers: &mut HeaderMap, audience: &Audience, delay: Delay) {
    if delay.reason != Reason::LoopDetected {
        headers.insert(DELAY, HeaderValue::from(delay.ms));
        return;
    }
    headers.insert(LOOP_DELAY, HeaderValue::from(delay.ms));
    if audience.responses().imitates(Compat::Fairvisor) {
        headers.insert(FAIRVISOR_LOOP_DELAY, HeaderValue::from(delay.ms));
    }
}

/// The headers of a stop.
fn mark_stop(headers: &mut HeaderMap, audience: &Audience, refusal: &Refusal) {
    let imitates_fairvisor = audience.responses().imitates(Compat::Fairvisor);
    if refusal.reason.is_policy() {
        let reason = HeaderValue::from_static(refusal.reason.as_str());
        // SDKs would otherwise turn one stop into many calls.
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        if imitates_fairvisor {
            headers.insert(FAIRVISOR_REASON, reason.clone());
        }
        headers.insert(BLOCKED, reason);
    }
    // With any other status the header only makes clients wait for nothing.
    let can_wait = matches!(refusal.status, 429 | 503);
    if let Some(seconds) = refusal.retry_after_seconds.filter(|_| can_wait) {
        let longest = if imitates_fairvisor { u32::MAX } else { RETRY_AFTER_SECONDS };
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds.min(longest)));
    }
}

/// The refusal as the words of an assistant.
fn speech(audience: &Audience, refusal: &Refusal, event: &Event) -> Option<Spoken> {
    let mut fields = Map::new();
    if audience.responses().metadata {
        let mut about = refusal.fields.clone();
        about.extend(refusal.beside.clone());
        about.insert("step".into(), event.run.as_ref().map(|run| run.step).into());
        about.insert("cost_usd".into(), 0.into());
        about.insert("block_reason".into(), refusal.reason.as_str().into());
        if let Some(seconds) = refusal.retry_after_seconds {
            about.insert("retry_after_seconds".into(), seconds.into());
        }
        for name in audience.metadata_names().iter().chain(&["sprag"]) {
            fields.insert((*name).to_owned(), about.clone().into());
        }
    }
    let saying = Saying { id: &event.id, at: event.at, text: &refusal.message, fields: &fields };
    speak(audience.wanted()?, &saying)
}

fn error(family: Family, refusal: &Refusal) -> Response<Body> {
    answer(refusal.status, "application/json", refusal::body(family, refusal))
}

fn answer(status: u16, content_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
#[path = "respond/tests.rs"]
mod tests;
