//! The upstream's answer as the client gets it: which headers stay, how its body is watched.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::{Response, StatusCode, response};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::de::IgnoredAny;
use sprag_core::dlp::{
    Direction, Flow, Inspected, Inspector, Sightings, StreamFilter, apply_edits, dlp_refusal, inspect_json, redact_text,
};
use sprag_core::event::Ending;
use sprag_core::limits::JSON_REPLY_BYTES;
use sprag_core::wire::sse::{Block, Splitter};
use sprag_core::wire::{Dialect, Metadata, Reason, Refusal, splice};
use tokio::time::Instant;

use super::audience::Audience;
use super::body::Body;
use super::encoding::Decoder;
use super::forward::Forwarded;
use super::headers::strip_hop_by_hop;
use super::killed::{KillWatch, or_killed};
use super::observe::{Observed, Patience, Signature};
use super::reader::Reader;
use super::respond::{refuse, sign};
use super::settled::Settled;
use super::ticket::{Settling, Ticket};
use super::within::within;
use crate::config::Provider;
use crate::upstream::AnswerBody;

/// JSON answers up to this size, of a length told ahead, are complete before they are passed on: the upstream has
/// written them whole, and the cost can then stand in the headers.
const COLLECTED_BYTES: u64 = 256 << 10;

/// What was asked of the upstream, and so what must be done to its answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) dialect: Dialect,
    /// The shape of its answer, also where the request is no dialect.
    pub(crate) shape: Dialect,
    /// Usage was asked for on Sprag's own account: the client shall not see it.
    pub(crate) strips_usage: bool,
    /// The answer tells the client about its run.
    pub(crate) metadata: bool,
    /// Looks for secrets in the answer, and puts the client's own values back.
    pub(crate) inspector: Option<Inspector>,
}

impl Asked {
    /// Whether the answer will be changed on its way.
    pub(crate) fn edits(&self) -> bool {
        self.strips_usage || self.metadata || self.inspector.is_some()
    }
}

/// What the head of an answer says about its body.
#[derive(Clone, Copy)]
enum Kind {
    Events,
    Json,
    /// Words without a form, such as the error page of a proxy in between.
    Text,
    Other,
}

/// Passes an answer on to the client.
pub(crate) async fn pass_on(audience: &Audience, forwarded: Forwarded, mut ticket: Box<Ticket>) -> Response<Body> {
    let Forwarded { response, provider, asked, deadline, watch, is_head } = forwarded;
    let (mut head, body) = response.into_parts();
    strip_hop_by_hop(&mut head.headers);
    let kind = kind(&head.headers);
    ticket.mark_answered(head.status.as_u16(), matches!(kind, Kind::Events));

    let length = content_length(&head.headers);
    let is_llm = asked.dialect.is_llm();
    let is_read = is_llm && matches!(kind, Kind::Events | Kind::Json);
    let is_filtered = asked.inspector.is_some() && matches!(kind, Kind::Events);
    // What is looked at must be whole before the first byte of it passes. Other APIs may send files of any length: those
    // pass, unless something in them might have to be stopped.
    let may_stop = || asked.inspector.as_ref().is_some_and(|inspector| inspector.may_stop(Direction::Answer));
    let is_looked_at = asked.inspector.is_some()
        && match kind {
            Kind::Json => is_llm || may_stop() || length.is_none_or(|length| length <= JSON_REPLY_BYTES as u64),
            Kind::Text => is_llm,
            Kind::Events | Kind::Other => false,
        };
    let decoder = match Decoder::for_headers(&head.headers, JSON_REPLY_BYTES) {
        Ok(decoder) => decoder.filter(|_| is_read || is_looked_at || is_filtered),
        // It was not asked for, so nobody can say what it holds.
        Err(unreadable) if is_read || is_looked_at || is_filtered => {
            ticket.mark_failed(Ending::UpstreamError, unreadable.to_string());
            let refusal = Refusal::new(
                Reason::UpstreamUnreachable,
                format!("provider `{}` answered in a way that cannot be checked: {unreadable}", provider.name),
            );
            return refuse(audience, refusal, ticket).await;
        }
        Err(_) => None,
    };
    let is_success = head.status.is_success();
    let signature = (asked.metadata && is_success).then(|| signature(audience, &provider, &ticket)).flatten();

    let is_short = is_success && length.is_some_and(|n| n <= COLLECTED_BYTES);
    if (is_looked_at || (is_read && matches!(kind, Kind::Json) && is_short)) && !is_head {
        let patience = (provider.timeouts.idle, deadline);
        return collected(audience, head, body, decoder, asked, signature, ticket, patience, watch).await;
    }
    let reader = match kind {
        Kind::Events if is_read || is_filtered => {
            let filter = asked.inspector.map(|inspector| StreamFilter::new(inspector, asked.shape));
            Reader::events(asked.dialect, decoder, asked.strips_usage, signature.is_some(), filter, length)
        }
        Kind::Json if is_read => Reader::json(asked.dialect, decoder, signature.is_some(), length),
        _ => Reader::opaque(length),
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
    let observed = Observed::new(body, reader, ticket, audience.clone(), signature, patience, watch);
    Response::from_parts(head, Body::Observed(Box::pin(observed)))
}

/// Waits for a short JSON answer, which is already on its way in full.
#[expect(clippy::too_many_arguments, reason = "the values of `pass_on`, used once")]
async fn collected(
    audience: &Audience,
    mut head: response::Parts,
    mut body: AnswerBody,
    mut decoder: Option<Decoder>,
    asked: Asked,
    signature: Option<Signature>,
    mut ticket: Box<Ticket>,
    (idle, deadline): (Duration, Option<Instant>),
    mut watch: Option<KillWatch>,
) -> Response<Body> {
    let whole = match or_killed(collect(&mut body, &mut ticket, idle, deadline), watch.as_mut()).await {
        Ok(Ok(whole)) => whole,
        Err(kill) => {
            let refusal = ticket.killed(&kill);
            return refuse(audience, refusal, ticket).await;
        }
        Ok(Err((ending, why))) => {
            ticket.mark_failed(ending, why);
            let reason = if ending == Ending::TimedOut { Reason::UpstreamTimeout } else { Reason::UpstreamCut };
            return refuse(audience, Refusal::new(reason, format!("{why}; the answer is incomplete")), ticket).await;
        }
    };
    ticket.line().abreast().await;
    let length = Some(whole.len() as u64);
    let is_signed = signature.is_some();
    let new_reader = |kind: Kind| match (asked.dialect.is_llm(), kind) {
        (true, Kind::Json) => Reader::json(asked.dialect, None, is_signed, length),
        _ => Reader::opaque(length),
    };
    let mut reader = new_reader(kind(&head.headers));
    let decoded = decoder.as_mut().map_or_else(|| Ok(whole.clone()), |decoder| decoder.push(&whole));
    let Ok(mut plain) = decoded else {
        let why = "the upstream's compressed answer cannot be decoded";
        ticket.mark_failed(Ending::UpstreamError, why);
        return refuse(audience, Refusal::new(Reason::UpstreamUnreachable, why), ticket).await;
    };
    reader.read_whole(&plain);
    let mut is_changed = false;
    if let Some(inspector) = &asked.inspector {
        // What was read whole as one object needs nobody to ask again whether it is JSON.
        let is_object = reader.reply().complete && plain.trim_ascii_start().starts_with(b"{");
        let mut sightings = Sightings::default();
        let began = std::time::Instant::now();
        let (edited, is_stopped) = looked_at(inspector, asked.shape, &plain, is_object, &mut sightings);
        ticket.trail().add_answer_inspected(began);
        let refusal = is_stopped.then(|| dlp_refusal(&sightings, Direction::Answer));
        ticket.add_sightings(sightings);
        if let Some(refusal) = refusal {
            let refusal = ticket.withheld(refusal);
            ticket.set_status(audience.put(refusal.clone()).status);
            settle(&mut ticket, &reader).await;
            return refuse(audience, refusal, ticket).await;
        }
        if let Some(edited) = edited {
            // Later requests will quote what the client gets, not what the provider said.
            (plain, is_changed, reader) = (edited, true, new_reader(kind(&head.headers)));
            reader.read_whole(&plain);
        }
    }
    let settled = settle(&mut ticket, &reader).await;
    let signature = signature.filter(|_| reader.reply().complete);
    let field = settled.as_ref().zip(signature).map(|(settled, signature)| signature(settled));
    let signed = field.and_then(|field| splice(&plain, 0..plain.len(), &field));
    if signed.is_some() || is_changed {
        head.headers.remove(CONTENT_ENCODING);
    }
    let out = signed.unwrap_or(if is_changed { plain } else { whole });
    head.headers.insert(CONTENT_LENGTH, out.len().into());
    sign(&mut head.headers, audience, ticket.event(), settled.as_ref());
    Response::from_parts(head, Body::Full(out))
}

/// Whether these are events, though their head does not say so.
fn is_stream(plain: &[u8]) -> bool {
    let begins = |field: &str| plain.trim_ascii_start().starts_with(field.as_bytes());
    begins("data:") || begins("event:") || begins(":")
}

/// The same for events that came as plain text.
fn looked_at_events(
    inspector: &Inspector,
    dialect: Dialect,
    plain: &Bytes,
    sightings: &mut Sightings,
) -> (Option<Bytes>, bool) {
    let (mut filter, mut splitter, mut out) =
        (StreamFilter::new(inspector.clone(), dialect), Splitter::new(), Vec::new());
    let Block { bytes, ends } = splitter.push(plain.clone());
    let mut start = 0;
    let mut is_stopped = false;
    for end in ends {
        is_stopped = is_stopped || filter.push(bytes.slice(start..end), &mut out) == Flow::Stopped;
        start = end;
    }
    // What is too long to be cut into events, and what never ended.
    is_stopped = is_stopped
        || (start < bytes.len() && filter.push_unread(&bytes[start..], &mut out) == Flow::Stopped)
        || filter.push(splitter.rest(), &mut out) == Flow::Stopped
        || filter.end(&mut out) == Flow::Stopped;
    sightings.absorb(filter.sightings().clone());
    let passed = Bytes::from(out.concat());
    ((passed != plain).then_some(passed), is_stopped)
}

/// The answer as it may pass, where it must change; and whether it may not pass at all. `is_object` where it is known
/// to be an object of JSON.
fn looked_at(
    inspector: &Inspector,
    dialect: Dialect,
    plain: &Bytes,
    is_object: bool,
    sightings: &mut Sightings,
) -> (Option<Bytes>, bool) {
    if is_stream(plain) {
        return looked_at_events(inspector, dialect, plain, sightings);
    }
    if !is_object && serde_json::from_slice::<IgnoredAny>(plain).is_err() {
        // Whatever its head says, these are words.
        let text = String::from_utf8_lossy(plain);
        let redacted = redact_text(inspector, Direction::Answer, &text, sightings);
        return ((redacted != text).then(|| redacted.into()), false);
    }
    if dialect == Dialect::Gemini && plain.trim_ascii_start().starts_with(b"[") {
        // A stream for those who want no events: what its elements say belongs together.
        let (mut filter, mut out) = (StreamFilter::new(inspector.clone(), dialect), Vec::new());
        let is_stopped = filter.push_array(plain, &mut out) == Flow::Stopped || filter.end(&mut out) == Flow::Stopped;
        sightings.absorb(filter.sightings().clone());
        let passed = Bytes::from(out.concat());
        return ((passed != plain).then_some(passed), is_stopped);
    }
    let Inspected { edits, is_stopped } =
        inspect_json(inspector, Direction::Answer, dialect, plain, &[], None, sightings);
    ((!edits.is_empty()).then(|| apply_edits(plain, &edits).into()), is_stopped)
}

async fn collect(
    body: &mut AnswerBody,
    ticket: &mut Ticket,
    idle: Duration,
    deadline: Option<Instant>,
) -> Result<Bytes, (Ending, &'static str)> {
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    // As in `read`: nobody asks behind the last byte of an answer whose length is known.
    while !body.is_end_stream() {
        let end = || {
            let idle_end = (!idle.is_zero()).then(|| Instant::now() + idle);
            [idle_end, deadline].into_iter().flatten().min()
        };
        let data = match within(end, body.frame()).await {
            Err(_) => return Err((Ending::TimedOut, "the upstream kept silent for too long")),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err((Ending::UpstreamGone, "the upstream broke off its answer")),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        ticket.mark_first_byte();
        if joined.len() + first.len() + data.len() > JSON_REPLY_BYTES {
            return Err((Ending::UpstreamError, "the upstream's answer is too long to be looked at"));
        }
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
    let reply = reader.reply();
    let ending = ticket.failed_as().unwrap_or_else(|| reader.ending(ticket.event().status));
    if ending == Ending::UpstreamError {
        ticket.mark_failed(ending, "the provider's answer is not what its API promises");
    }
    let settling = ticket.settle_together(reply, ending);
    // Once for all that are settled side by side, and before anybody has the whole answer.
    ticket.line().abreast().await;
    ticket.write_out();
    match settling {
        Settling::Done(settled) => settled,
        Settling::UnderWay(settling) => settling.await.unwrap_or_default(),
    }
}

fn kind(headers: &HeaderMap) -> Kind {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let at = |part: Option<&str>, name: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(name));
    let ends_with = |name: &str| at(essence.len().checked_sub(name.len()).and_then(|from| essence.get(from..)), name);
    if is("application/json") || ends_with("+json") {
        Kind::Json
    } else if is("text/event-stream") {
        Kind::Events
    } else if essence.is_empty() || at(essence.get(..5), "text/") || ends_with("xml") {
        Kind::Text
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
