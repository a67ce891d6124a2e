//! Traces for whoever collects them: one span for each call, and spans for its parts.
//!
//! - `context`: the caller's `traceparent`, and the one that the provider gets
//! - `span`, `names`: what is told of a call that has ended
//! - `export`: from a bounded queue to the collector, in batches; `post`: over which connection
//!
//! A call never waits for any of it: what finds no room in the queue is counted and dropped. Whether a trace is recorded is
//! decided by who began it. Nothing here is made of prompts, answers or keys.

mod context;
mod export;
mod names;
mod post;
mod span;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use http::HeaderMap;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::trace::SpanData;
use sprag_core::limits::TRACE_QUEUE;
use tokio::sync::mpsc::{self, Receiver, Sender};

pub(crate) use self::span::Ended;
use crate::config::Traces;

/// Makes spans of calls, where traces are wanted.
pub struct Tracer {
    settings: Traces,
    scope: InstrumentationScope,
    sender: Sender<Vec<SpanData>>,
    receiver: Mutex<Option<Receiver<Vec<SpanData>>>>,
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
    is_down: AtomicBool,
}

/// What became of spans, since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCounts {
    /// Spans that the collector has.
    pub exported: u64,
    /// Spans that it did not take.
    pub failed: u64,
    /// Spans that found no room to wait.
    pub dropped: u64,
    /// Batches that it did not take.
    pub failures: u64,
    /// It took the last one.
    pub is_up: bool,
}

/// A call's place in a trace, from its arrival on.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    trace: TraceId,
    span: SpanId,
    /// The caller's span.
    parent: Option<SpanId>,
    /// The span of the call upstream, which the provider is told.
    upstream: SpanId,
    is_sampled: bool,
    started: SystemTime,
    arrived: Instant,
}

impl Tracer {
    /// None where no traces are wanted.
    #[must_use]
    pub fn new(settings: Option<&Traces>) -> Option<Tracer> {
        let (sender, receiver) = mpsc::channel(TRACE_QUEUE);
        Some(Tracer {
            settings: settings?.clone(),
            scope: InstrumentationScope::builder("sprag").with_version(env!("CARGO_PKG_VERSION")).build(),
            sender,
            receiver: Mutex::new(Some(receiver)),
            exported: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
        })
    }

    /// Begins the span of a call that has arrived: in the caller's trace, or in one of its own.
    pub(crate) fn begin(&self, headers: &HeaderMap, arrived: Instant) -> OpenSpan {
        let parent = context::parent(headers);
        // Zero is no id.
        let trace = parent.map_or_else(|| TraceId::from(rand::random::<u128>() | 1), |parent| parent.trace);
        let [span, upstream] = [(); 2].map(|()| SpanId::from(rand::random::<u64>() | 1));
        let is_sampled =
            parent.map_or_else(|| is_chosen(trace, self.settings.sample_ratio), |parent| parent.is_sampled);
        let started = SystemTime::now().checked_sub(arrived.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        OpenSpan { trace, span, parent: parent.map(|parent| parent.span), upstream, is_sampled, started, arrived }
    }

    /// Lets the spans of a call that has ended be exported. Never waits.
    pub(crate) fn end(&self, open: &OpenSpan, ended: &Ended<'_>) {
        if !open.is_sampled {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(spans) | mpsc::error::TrySendError::Closed(spans)) =
            self.sender.try_send(span::spans(open, &self.scope, ended))
        {
            self.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
        }
    }

    /// What became of spans.
    #[must_use]
    pub fn counts(&self) -> TraceCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TraceCounts {
            exported: of(&self.exported),
            failed: of(&self.failed),
            dropped: of(&self.dropped),
            failures: of(&self.failures),
            is_up: !self.is_down.load(Ordering::Relaxed),
        }
    }

    /// Calls whose spans wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    fn receiver(&self) -> Option<Receiver<Vec<SpanData>>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl OpenSpan {
    /// Tells the provider which span its call belongs to.
    pub(crate) fn propagate(&self, headers: &mut HeaderMap) {
        context::write(headers, self.trace, self.upstream, self.is_sampled, self.parent.is_none());
    }

    /// The id of the trace, as logs carry it.
    pub(crate) fn trace_id(&self) -> String {
        self.trace.to_string()
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

/// Whether a trace that begins here is recorded. By its id, so that everybody who uses the same ratio decides the same.
fn is_chosen(trace: TraceId, ratio: f64) -> bool {
    if ratio >= 1.0 {
        return true;
    }
    let [.., a, b, c, d, e, f, g, h] = trace.to_bytes();
    let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
    (low as f64) < ratio * (1_u64 << 63) as f64
}

#[cfg(test)]
mod tests {
    use sprag_core::event::{Event, EventKind};
    use sprag_core::time::Timestamp;

    use super::*;
    use crate::config::{Sources, load};
    use crate::gateway::Trail;

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let settings = load(&Sources::default()).unwrap().settings;
        let traces = Traces {
            url: "http://127.0.0.1:1/v1/traces".to_owned(),
            headers: HeaderMap::new(),
            service_name: "sprag".to_owned(),
            sample_ratio: 1.0,
        };
        let tracer = Tracer::new(Some(&traces)).unwrap();
        let event = Event::new("req_1".to_owned(), Timestamp(1), EventKind::LlmCall);
        let (trail, provider) = (Trail::default(), &settings.providers["openai"]);
        let ended = Ended { event: &event, trail: &trail, provider, answered_by: None };
        let end_one = || tracer.end(&tracer.begin(&HeaderMap::new(), Instant::now()), &ended);
        (0..TRACE_QUEUE).for_each(|_| end_one());
        assert_eq!((tracer.queued(), tracer.counts().dropped), (TRACE_QUEUE, 0));
        end_one();
        assert_eq!((tracer.queued(), tracer.counts().dropped), (TRACE_QUEUE, 1));
    }

    #[test]
    fn so_large_a_share_of_traces_is_chosen() {
        for (ratio, least, most) in [(0.0, 0, 0), (0.25, 2_300, 2_700), (1.0, 10_000, 10_000)] {
            let chosen = (0..10_000).filter(|_| is_chosen(TraceId::from(rand::random::<u128>()), ratio)).count();
            assert!((least..=most).contains(&chosen), "{ratio}: {chosen}");
        }
    }
}
