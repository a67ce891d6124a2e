//! From an answer to what happens on the wire: the faults are applied to the events, then to the bytes.
//!
//! The result is a list of steps that the body walks through. Each write is flushed by itself.

mod body;
mod compress;

pub(crate) use body::{Cut, ScriptedBody};

use crate::fault::{CutAt, CutHow, Encoding, Fault, Gate};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::time::Duration;

/// The content of an answer before delivery.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A whole body.
    Whole(Bytes),
    /// Server-sent events.
    Events { list: Vec<Event>, crlf: bool },
    /// Elements of a JSON array that is written one by one.
    Array(Vec<String>),
}

/// A server-sent event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

/// One thing that a body does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write(Bytes),
    Wait(Gate),
    Pause(Duration),
    Cut(CutHow),
    Trailers(HeaderMap),
}

/// How a body is delivered, and the headers that say so.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: VecDeque<Step>,
    pub(crate) headers: HeaderMap,
}

/// The gate that holds the response head, if any.
pub(crate) fn hold(faults: &[Fault]) -> Option<Gate> {
    first(faults, |fault| match fault {
        Fault::Hold(gate) => Some(gate.clone()),
        _ => None,
    })
}

/// Whether the connection ends before the response begins.
pub(crate) fn cut_before_head(faults: &[Fault]) -> Option<CutHow> {
    first(faults, |fault| match fault {
        Fault::Cut { at: CutAt::Head, how } => Some(*how),
        _ => None,
    })
}

/// Applies `faults` to `content`.
pub(crate) fn plan(content: Content, faults: &[Fault]) -> Plan {
    let is_stream = !matches!(content, Content::Whole(_));
    let mut pieces = write_out(content, faults);
    let mut headers = HeaderMap::new();
    if let Some(encoding) = first(faults, encoding_of) {
        pieces = compress::each(encoding, pieces);
        headers.insert(http::header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    }
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let chunked = faults.iter().any(|fault| matches!(fault, Fault::Chunked | Fault::Trailers(_)));
    let with_length = faults.iter().any(|fault| matches!(fault, Fault::ContentLength));
    if with_length || !(is_stream || chunked) {
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut steps = dribble(cut_bytes(in_steps(pieces, faults), faults), faults);
    if let Some(trailers) = first(faults, trailers_of) {
        for name in trailers.keys() {
            headers.append(http::header::TRAILER, HeaderValue::from(name.clone()));
        }
        steps.push_back(Step::Trailers(trailers));
    }
    Plan { steps, headers }
}

/// The bytes of each event.
fn write_out(content: Content, faults: &[Fault]) -> Vec<Bytes> {
    match content {
        Content::Whole(body) => {
            let blank = first(faults, |fault| match fault {
                Fault::Whitespace(bytes) => Some(Bytes::from(" ".repeat(*bytes))),
                _ => None,
            });
            let bodies = spoil(vec![String::from_utf8_lossy(&body).into_owned()], faults, |text| text);
            let spoiled = bodies.into_iter().map(Bytes::from);
            // A body that is not text must not pass through a lossy conversion when nothing is to be changed.
            let bodies = if std::str::from_utf8(&body).is_ok() { spoiled.collect() } else { vec![body] };
            blank.into_iter().chain(bodies).collect()
        }
        Content::Events { list, crlf } => {
            let end = if crlf || faults.iter().any(|fault| matches!(fault, Fault::Crlf)) { "\r\n" } else { "\n" };
            let comment = faults.iter().any(|fault| matches!(fault, Fault::Comments));
            let line = |event: Event| {
                let comment = if comment { format!(": keep-alive{end}{end}") } else { String::new() };
                let name = event.name.map_or(String::new(), |name| format!("event: {name}{end}"));
                Bytes::from(format!("{comment}{name}data: {}{end}{end}", event.data))
            };
            spoil(list, faults, |event| &mut event.data).into_iter().map(line).collect()
        }
        Content::Array(elements) => {
            let elements = spoil(elements, faults, |text| text);
            let last = elements.len().saturating_sub(1);
            let write = |(place, text): (usize, String)| {
                let before = if place == 0 { "[" } else { ",\r\n" };
                let after = if place == last { "\n]" } else { "" };
                Bytes::from(format!("{before}{text}{after}"))
            };
            elements.into_iter().enumerate().map(write).collect()
        }
    }
}

/// Garbles one event and inflates another.
fn spoil<T>(mut events: Vec<T>, faults: &[Fault], data: impl Fn(&mut T) -> &mut String) -> Vec<T> {
    let last = events.len().saturating_sub(1);
    for fault in faults {
        match fault {
            Fault::Garble { event } => {
                if let Some(event) = events.get_mut((*event).min(last)) {
                    let text = data(event);
                    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                    text.truncate(half);
                }
            }
            Fault::Oversized(bytes) => {
                if let Some(event) = events.get_mut(1.min(last)) {
                    let text = data(event);
                    if let Some(before) = text.strip_suffix('}') {
                        *text = format!("{before},\"padding\":\"{}\"}}", "x".repeat(*bytes));
                    }
                }
            }
            _ => {}
        }
    }
    events
}

fn in_steps(pieces: Vec<Bytes>, faults: &[Fault]) -> Vec<Step> {
    let stall = first(faults, |fault| match fault {
        Fault::Stall { after_events, until } => Some((*after_events, until.clone())),
        _ => None,
    });
    let cut = first(faults, |fault| match fault {
        Fault::Cut { at: CutAt::Events(events), how } => Some((*events, *how)),
        _ => None,
    });
    let count = pieces.len();
    let mut steps = Vec::new();
    let before = |place: usize, steps: &mut Vec<Step>| {
        if let Some((after, gate)) = &stall
            && place == (*after).min(count)
        {
            steps.push(Step::Wait(gate.clone()));
        }
        match cut {
            Some((after, how)) if place == after.min(count) => {
                steps.push(Step::Cut(how));
                true
            }
            _ => false,
        }
    };
    for (place, piece) in pieces.into_iter().enumerate() {
        if before(place, &mut steps) {
            return steps;
        }
        steps.push(Step::Write(piece));
    }
    before(count, &mut steps);
    steps
}

fn cut_bytes(steps: Vec<Step>, faults: &[Fault]) -> Vec<Step> {
    let cut = first(faults, |fault| match fault {
        Fault::Cut { at: CutAt::Bytes(bytes), how } => Some((*bytes, *how)),
        _ => None,
    });
    let Some((mut left, how)) = cut else { return steps };
    let (mut kept, mut steps) = (Vec::new(), steps.into_iter());
    while let Some(step) = steps.next() {
        match step {
            Step::Write(bytes) if bytes.len() >= left => {
                kept.push(Step::Write(bytes.slice(..left)));
                // What is not sent yet is lost with the connection: who needs all of it stalls before.
                kept.extend(steps.find(|step| matches!(step, Step::Wait(_))));
                break;
            }
            Step::Write(bytes) => {
                left -= bytes.len();
                kept.push(Step::Write(bytes));
            }
            other => kept.push(other),
        }
    }
    kept.push(Step::Cut(how));
    kept
}

fn dribble(steps: Vec<Step>, faults: &[Fault]) -> VecDeque<Step> {
    let dribble = first(faults, |fault| match fault {
        Fault::Dribble { bytes, every } => Some(((*bytes).max(1), *every)),
        _ => None,
    });
    let Some((size, every)) = dribble else { return steps.into() };
    let mut slow = VecDeque::new();
    for step in steps {
        let Step::Write(mut bytes) = step else {
            slow.push_back(step);
            continue;
        };
        while !bytes.is_empty() {
            if !every.is_zero() && !slow.is_empty() {
                slow.push_back(Step::Pause(every));
            }
            slow.push_back(Step::Write(bytes.split_to(size.min(bytes.len()))));
        }
    }
    slow
}

fn encoding_of(fault: &Fault) -> Option<Encoding> {
    match fault {
        Fault::Encode(encoding) => Some(*encoding),
        _ => None,
    }
}

fn trailers_of(fault: &Fault) -> Option<HeaderMap> {
    let Fault::Trailers(fields) = fault else { return None };
    let parse = |(name, value): &(String, String)| -> Option<(HeaderName, HeaderValue)> {
        Some((name.parse().ok()?, value.parse().ok()?))
    };
    Some(fields.iter().filter_map(parse).collect())
}

fn first<T>(faults: &[Fault], pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
    faults.iter().find_map(pick)
}
