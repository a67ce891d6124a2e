//! A request's way through Sprag. [`handle`] is the line; each step is a file.
//!
//! ```text
//! route → admit → read → parse → identify → open → judge → forward → observe → settle
//! ```
//!
//! A step takes values and returns a value. Every early exit is a [`Refusal`], which `respond` turns into bytes in the
//! caller's dialect. `forward` needs a permit, and only the judge makes one.

mod abreast;
mod answer;
mod audience;
mod authenticate;
mod body;
mod carried;
mod chant;
mod credentials;
mod detect;
mod elsewhere;
mod encoding;
mod forward;
mod headers;
pub(crate) mod identify;
mod inspect;
mod judge;
mod killed;
pub mod limit_keys;
mod observe;
mod open;
mod packed_head;
pub(crate) mod pilot;
mod plain;
mod rates;
mod read;
mod reader;
mod respond;
mod route;
mod seeding;
mod settled;
mod share;
mod spending;
mod throttle;
mod ticket;
mod trail;
mod within;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use sprag_core::dlp::apply_edits;
use sprag_core::event::Ending;
use sprag_core::wire::{Call, Dialect, Reason, Refusal, outgoing};

pub use self::abreast::Line;
use self::answer::Asked;
use self::audience::Audience;
pub use self::body::{Body, BrokenOff};
pub use self::detect::DetectionFailures;
use self::encoding::{Decoder, decode_all};
use self::forward::Forwarded;
use self::judge::{Case, Judged};
pub use self::pilot::Pilots;
use self::route::Route;
pub(crate) use self::seeding::Late;
pub use self::throttle::Throttle;
use self::ticket::Ticket;
pub(crate) use self::trail::{Leg, Trail};
use crate::app::App;
use crate::config::Settings;

/// Answers one request, side by side with others that are ready.
pub fn handle(app: Arc<App>, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send + 'static {
    app.line.clone().take(answer(app, request))
}

/// The line, from one end to the other.
async fn answer(app: Arc<App>, request: Request<Incoming>) -> Response<Body> {
    let arrived = Instant::now();
    let settings = app.settings.load_full();
    let (head, body) = request.into_parts();
    if route::is_health_check(&head.method, head.uri.path()) {
        return respond::healthy();
    }
    // Kept for as long as the answer, if smaller: a kill may name any header.
    let head = Arc::new(head);
    let Some(route) = route::find(&settings, &head.method, head.uri.path(), &head.headers) else {
        return match authenticate::authenticate(&app, &settings, &head) {
            Ok(_) => respond::nowhere(&settings, head.uri.path()),
            Err(denied) => respond::turn_away(&denied.refusal),
        };
    };
    if route.rule.is_none() && route::asks_for_websocket(&head.headers) {
        return respond::no_websocket(&route);
    }
    // On its own: it goes from hand to hand, and a future has room for each of them.
    let mut ticket = Box::new(Ticket::new(app.clone(), &route, &head, arrived));
    let mut audience = Audience::new(settings.clone(), &route, &head);
    let sent = send(&app, &settings, &route, &head, body, &mut audience, &mut ticket).await;
    let delay = ticket.delay();
    let mut response = match sent {
        Ok(forwarded) => answer::pass_on(&audience, forwarded, ticket).await,
        Err(refusal) => respond::refuse(&audience, refusal, ticket).await,
    };
    if let Some(delay) = delay {
        respond::mark_delay(response.headers_mut(), &audience, delay);
    }
    response
}

/// Everything up to the head of the upstream's answer.
async fn send(
    app: &Arc<App>,
    settings: &Settings,
    route: &Route<'_>,
    head: &Arc<Parts>,
    body: Incoming,
    audience: &mut Audience,
    ticket: &mut Ticket,
) -> Result<Forwarded, Refusal> {
    let is_expecting = head.headers.contains_key(http::header::EXPECT);
    if let Err(refusal) = authenticate::admit(app, settings, route, head, ticket) {
        read::dismiss(body, is_expecting).await;
        return Err(refusal);
    }
    audience.know(ticket.key());
    // Whatever is wrong with the body, it is this agent's. A name that cannot be one is refused below.
    if ticket.key().is_none()
        && let Ok(agent) = identify::agent(&settings.dlp.scanner, route.agent, &head.headers, None)
    {
        ticket.set_caller(agent, None);
    }
    let read::Sent { body: sent, was_awaited } =
        match read::read(body, settings.proxy.max_body_bytes, is_expecting).await {
            Ok(sent) => sent,
            Err(unread) => {
                if matches!(unread, read::Unread::Gone) {
                    ticket.mark_failed(Ending::ClientGone, unread.to_string());
                }
                return Err(respond::unread(unread));
            }
        };
    route::check(route, &head.headers).map_err(invalid)?;
    // What came with its head was there when the request arrived.
    let read_at = if was_awaited { Instant::now() } else { ticket.arrived() };
    app.line.abreast().await;
    let plain = decoded(route, head, &sent, settings.proxy.max_body_bytes)?;
    let call = match route.dialect.is_llm() {
        true => Some(Call::parse(route.dialect, &route.plain, &plain).map_err(invalid)?),
        false => None,
    };
    audience.listen(call.as_ref(), head);
    if call.is_some() {
        ticket.keep_sample(&plain);
    }
    let request = open::Request { settings, route, head, body: &plain, call: call.as_ref() };
    let opening = open::open(app, request, ticket).await?;
    app.line.abreast().await;
    let case = Case { route, head, body: &plain, call: call.as_ref(), opening };
    let judging = ticket.trail().begin_leg();
    let judged = judge::judge(app, settings, case, ticket).await;
    ticket.trail().judged = judging.map(Leg::since);
    let Judged { permit, edits, inspector } = judged?;
    ticket.mark_permitted(permit.advice());
    app.line.abreast().await;
    // Once for all that were judged side by side, and before any of them goes out.
    ticket.write_out();
    if let Some(delay) = permit.advice().delay {
        let wait = app.throttle.wait(delay);
        killed::or_killed(wait, ticket.watch().as_mut()).await.unwrap_or_else(|kill| Err(ticket.killed(&kill)))?;
        ticket.mark_delayed(delay);
    }

    let wants_usage = call.as_ref().is_some_and(|call| asks_for_usage(call, route));
    let changed = match &call {
        Some(call) => outgoing(call, &plain, wants_usage, permit.advice().note.as_deref(), edits),
        None => (!edits.is_empty()).then(|| apply_edits(&plain, &edits)),
    };
    let asked = Asked {
        dialect: route.dialect,
        shape: Dialect::of_answer(head.method.as_str(), &route.plain),
        strips_usage: wants_usage && call.as_ref().is_some_and(|call| !call.stream_options.asks_for_usage()),
        metadata: settings.responses.metadata && route.dialect.is_llm(),
        inspector,
    };
    // A body that must change is sent decoded; any other goes as it came.
    let (body, is_decoded) = match changed {
        Some(changed) => (Bytes::from(changed), true),
        None => (sent, false),
    };
    drop(call);
    ticket.mark_sent(read_at);
    forward::forward(permit, app, route, head, body, is_decoded, asked, ticket).await
}

/// The body as it can be read.
fn decoded(route: &Route<'_>, head: &Parts, sent: &Bytes, limit: usize) -> Result<Bytes, Refusal> {
    if !route.dialect.is_llm() && (route.rule.is_some() || !inspect::is_json(head)) {
        return Ok(sent.clone());
    }
    let decoder = Decoder::for_headers(&head.headers, limit).map_err(invalid)?;
    let Some(mut decoder) = decoder else { return Ok(sent.clone()) };
    match decode_all(&mut decoder, sent, limit) {
        Ok(Some(plain)) => Ok(plain),
        Ok(None) => Err(respond::unread(read::Unread::TooLarge(limit))),
        Err(_) => Err(invalid("the request body cannot be decoded as its content-encoding says")),
    }
}

/// Chat streams report usage only when asked.
fn asks_for_usage(call: &Call<'_>, route: &Route<'_>) -> bool {
    use sprag_core::wire::Dialect::{OpenaiChat, OpenaiCompletions};
    call.is_stream && route.provider.stream_usage && matches!(route.dialect, OpenaiChat | OpenaiCompletions)
}

/// A request that makes no sense.
fn invalid(why: impl ToString) -> Refusal {
    Refusal::new(Reason::InvalidRequest, why.to_string())
}
