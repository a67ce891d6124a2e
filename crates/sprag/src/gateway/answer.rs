//! The upstream's answer as the client gets it: which headers stay, how its body is watched.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::{Response, StatusCode, response};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sprag_core::event::Ending;
use sprag_core::limits::JSON_REPLY_BYTES;
use sprag_core::wire::{Dialect, Metadata, Reason, Refusal, splice};
use tokio::time::Instant;

use super::audience::Audience;
use super::body::Body;
use super::encoding::Decoder;
use super::forward::Forwarded;
use super::headers::strip_hop_by_hop;
use super::killed::or_killed;
use super::observe::{Observed, Patience, Signature};
use super::reader::Reader;
use super::respond::{refuse, sign};
use super::settled::Settled;
use super::ticket::Ticket;
use crate::config::Provider;

/// JSON answers up to this size, of a length told ahead, are complete before they are passed on: the upstream has
/// written them whole, and the cost can then stand in the headers.
const COLLECTED_BYTES: u64 = 256 << 10;

/// What was asked of the upstream, and so what must be done to its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) dialect: Dialect,
    /// Usage was asked for on Sprag's own account: the client shall not see it.
    pub(crate) strips_usage: bool,
    /// The answer tells the client about its run.
    pub(crate) metadata: bool,
}

impl Asked {
    /// Whether the answer will be changed on its way.
    pub(crate) fn edits(&self) -> bool {
        self.strips_usage || self.metadata
    }
}

/// What the head of an answer says about its body.
enum Kind {
    Events,
    Json,
    Other,
}

/// Passes an answer on to the client.
pub(crate) async fn pass_on(audience: &Audience, forwarded: Forwarded, mut ticket: Ticket) -> Response<Body> {
    let Forwarded { response, provider, asked, deadline, is_head } = forwarded;
    let (mut head, body) = response.into_parts();
    strip_hop_by_hop(&mut head.headers);
    let kind = kind(&head.headers);
    ticket.mark_answered(head.status.as_u16(), matches!(kind, Kind::Events));

    let is_read = asked.dialect.is_llm() && !matches!(kind, Kind::Other);
    let decoder = match Decoder::for_headers(&head.headers, JSON_REPLY_BYTES) {
        Ok(decoder) => decoder.filter(|_| is_read),
        // It was not asked for, so nobody can say what it holds.
        Err(unreadable) if is_read => {
            ticket.mark_failed(Ending::UpstreamError, unreadable.to_string());
            let refusal = Refusal::new(
                Reason::UpstreamUnreachable,
                format!("provider `{}` answered in a way that cannot be checked: {unreadable}", provider.name),
            );
            return refuse(audience, refusal, ticket);
        }
        Err(_) => None,
    };
    let is_success = head.status.is_success();
    let signature = (asked.metadata && is_success).then(|| signature(audience, &provider, &ticket)).flatten();
    let length = content_length(&head.headers);

    if is_read && is_success && matches!(kind, Kind::Json) && length.is_some_and(|n| n <= COLLECTED_BYTES) {
        return collected(audience, head, body, decoder, asked, signature, ticket, provider.timeouts.idle, deadline)
            .await;
    }
    let reader = match kind {
        _ if !is_read => Reader::opaque(length),
        Kind::Events => Reader::events(asked.dialect, decoder, asked.strips_usage, signature.is_some(), length),
        _ => Reader::json(asked.dialect, decoder, signature.is_some(), length),
    };
    // Nobody asks for a body that cannot come, so it is settled here.
    let is_empty = is_head || body.is_end_stream() || is_bodiless(head.status);
    if is_empty {
        let settled = settle(&mut ticket, &reader).await;
        sign(&mut head.headers, audience, ticket.event(), settled.as_ref());
        return Response::from_parts(head, Body::Full(Bytes::new()));
    }
    if reader.edits() {
        head.headers.remove(CONTENT_LENGTH);
        head.headers.remove(CONTENT_ENCODING);
    }
    sign(&mut head.headers, audience, ticket.event(), None);
    let patience = Patience::new(provider.timeouts.idle, deadline);
    let observed = Observed::new(body, reader, ticket, audience.clone(), signature, patience);
    Response::from_parts(head, Body::Observed(Box::pin(observed)))
}

/// Waits for a short JSON answer, which is already on its way in full.
#[expect(clippy::too_many_arguments, reason = "the values of `pass_on`, used once")]
async fn collected(
    audience: &Audience,
    mut head: response::Parts,
    mut body: Incoming,
    decoder: Option<Decoder>,
    asked: Asked,
    signature: Option<Signature>,
    mut ticket: Ticket,
    idle: Duration,
    deadline: Option<Instant>,
) -> Response<Body> {
    let watch = ticket.watch();
    let whole = match or_killed(collect(&mut body, &mut ticket, idle, deadline), watch).await {
        Ok(Ok(whole)) => whole,
        Err(kill) => {
            let refusal = ticket.killed(&kill);
            return refuse(audience, refusal, ticket);
        }
        Ok(Err((ending, why))) => {
            ticket.mark_failed(ending, why);
            let reason = if ending == Ending::TimedOut { Reason::UpstreamTimeout } else { Reason::UpstreamCut };
            return refuse(audience, Refusal::new(reason, format!("{why}; the answer is incomplete")), ticket);
        }
    };
    let mut reader = Reader::json(asked.dialect, decoder, signature.is_some(), Some(whole.len() as u64));
    let Some(plain) = reader.whole(&whole) else {
        let why = "the upstream's compressed answer cannot be decoded";
        ticket.mark_failed(Ending::UpstreamError, why);
        return refuse(audience, Refusal::new(Reason::UpstreamUnreachable, why), ticket);
    };
    let settled = settle(&mut ticket, &reader).await;
    let signature = signature.filter(|_| reader.reply().complete);
    let field = settled.as_ref().zip(signature).map(|(settled, signature)| signature(settled));
    let signed = field.and_then(|field| splice(&plain, 0..plain.len(), &field));
    if signed.is_some() {
        head.headers.remove(CONTENT_ENCODING);
    }
    let out = signed.unwrap_or(whole);
    head.headers.insert(CONTENT_LENGTH, out.len().into());
    sign(&mut head.headers, audience, ticket.event(), settled.as_ref());
    Response::from_parts(head, Body::Full(out))
}

async fn collect(
    body: &mut Incoming,
    ticket: &mut Ticket,
    idle: Duration,
    deadline: Option<Instant>,
) -> Result<Bytes, (Ending, &'static str)> {
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let idle_end = (!idle.is_zero()).then(|| Instant::now() + idle);
        let next = match [idle_end, deadline].into_iter().flatten().min() {
            Some(end) => tokio::time::timeout_at(end, body.frame()).await,
            None => Ok(body.frame().await),
        };
        let data = match next {
            Err(_) => return Err((Ending::TimedOut, "the upstream kept silent for too long")),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err((Ending::UpstreamGone, "the upstream broke off its answer")),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        ticket.mark_first_byte();
        if first.is_empty() && joined.is_empty() {
            first = data;
            continue;
        }
        joined.extend_from_slice(&std::mem::take(&mut first));
        joined.extend_from_slice(&data);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

/// Settles a whole answer, after counting its tokens if the provider did not.
async fn settle(ticket: &mut Ticket, reader: &Reader) -> Option<Settled> {
    let (reply, ending) = (reader.reply(), reader.ending(ticket.event().status));
    if ending == Ending::UpstreamError {
        ticket.mark_failed(ending, "the provider's answer is not what its API promises");
    }
    if ticket.needs_count(reply) {
        return ticket.settle_counted(reply.clone(), ending).await.unwrap_or_default();
    }
    ticket.settle(reply, reply.usage, ending)
}

fn kind(headers: &HeaderMap) -> Kind {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("text/event-stream") {
        Kind::Events
    } else if essence.eq_ignore_ascii_case("application/json") || essence.ends_with("+json") {
        Kind::Json
    } else {
        Kind::Other
    }
}

fn is_bodiless(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// How this answer's metadata will be written. None outside runs.
fn signature(audience: &Audience, provider: &Provider, ticket: &Ticket) -> Option<Signature> {
    let run = ticket.event().run.clone()?;
    let overhead_us = ticket.event().overhead_us;
    let provider = provider.name.clone();
    let also = audience.metadata_names();
    Some(Box::new(move |settled: &Settled| {
        let metadata = Metadata {
            run_id: &run.id,
            step: run.step,
            cost: settled.cost,
            total_run_cost: settled.known_run_cost(),
            total_run_steps: settled.totals.steps,
            overhead_us,
            provider: &provider,
            warning: settled.warning.as_deref(),
        };
        metadata.to_field(also)
    }))
}
