//! When what happened to a call: what metrics and traces are made of once it has settled. Nothing is decided by it.

use std::time::{Duration, Instant};

use http::HeaderMap;
use sprag_core::event::Event;
use sprag_core::policy::Delay;
use sprag_core::wire::Reply;

use super::plain;
use crate::app::App;
use crate::config::Provider;
use crate::otel::{Ended, OpenSpan};

/// A part of a call that took time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) began: Instant,
    /// Less than the time until its end where it was interrupted.
    pub(crate) took: Duration,
}

/// What a call leaves behind of its way.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Its place in a trace, where there are traces.
    span: Option<Box<OpenSpan>>,
    /// What the list of prices calls its model.
    pub(crate) priced_as: Option<Box<str>>,
    pub(crate) judged: Option<Leg>,
    /// Looking for loops, a part of judging.
    pub(crate) detected: Option<Leg>,
    /// Looking for secrets in the request, another part of it.
    pub(crate) inspected: Option<Leg>,
    /// Looking for them in the answer, piece by piece.
    pub(crate) answer_inspected: Option<Leg>,
    /// The request had arrived in full.
    read_at: Option<Instant>,
    /// It had to wait, on purpose.
    waited: Duration,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) answered_with: Option<u16>,
    first_byte_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl Leg {
    /// What began then and ends now.
    pub(crate) fn since(began: Instant) -> Leg {
        Leg { began, took: began.elapsed() }
    }

    pub(crate) fn ended_at(self) -> Instant {
        self.began + self.took
    }
}

impl Trail {
    /// For a call that has just arrived.
    pub(crate) fn new(app: &App, headers: &HeaderMap, arrived: Instant) -> Trail {
        let span = app.tracer.as_ref().map(|tracer| Box::new(tracer.begin(headers, arrived)));
        Trail { span, ..Trail::default() }
    }

    /// Tells the provider which span its call belongs to; without traces the caller's header passes as it came.
    pub(crate) fn propagate(&self, headers: &mut HeaderMap) {
        if let Some(span) = &self.span {
            span.propagate(headers);
        }
    }

    /// The moment, where a leg that only traces tell of begins.
    pub(crate) fn begin_leg(&self) -> Option<Instant> {
        self.span.is_some().then(Instant::now)
    }

    pub(crate) fn mark_waited(&mut self, delay: Delay) {
        self.waited = Duration::from_millis(delay.ms);
    }

    pub(crate) fn mark_sent(&mut self, read_at: Instant, sent_at: Instant) {
        self.read_at = Some(read_at);
        self.sent_at = Some(sent_at);
    }

    pub(crate) fn mark_first_byte(&mut self, at: Instant) {
        self.first_byte_at.get_or_insert(at);
    }

    /// A piece of the answer was looked at since then.
    pub(crate) fn add_answer_inspected(&mut self, began: Instant) {
        let leg = self.answer_inspected.get_or_insert(Leg { began, took: Duration::ZERO });
        leg.took += began.elapsed();
    }

    /// What Sprag added before the call went out.
    pub(crate) fn overhead(&self) -> Option<Duration> {
        let (read_at, sent_at) = (self.read_at?, self.sent_at?);
        Some(sent_at.duration_since(read_at).saturating_sub(self.waited))
    }

    /// From sending to the first byte of the answer's body.
    pub(crate) fn to_first_byte(&self) -> Option<Duration> {
        Some(self.first_byte_at?.duration_since(self.sent_at?))
    }

    /// From sending to the end, where there was an answer.
    pub(crate) fn upstream(&self) -> Option<Duration> {
        self.answered_with?;
        Some(self.ended_at?.duration_since(self.sent_at?))
    }

    /// The trace, as the log names it.
    pub(crate) fn trace_id(&self) -> Option<String> {
        self.span.as_ref().map(|span| span.trace_id())
    }

    /// Counts a call that has settled, and lets its spans go.
    pub(crate) fn finish(&mut self, app: &App, provider: &Provider, event: &Event, reply: &Reply, ended_at: Instant) {
        self.ended_at = Some(ended_at);
        let settings = app.settings.load();
        app.metrics.count(event, self, settings.telemetry.metrics_by_agent);
        let Some((tracer, span)) = app.tracer.as_ref().zip(self.span.as_ref()) else { return };
        if span.is_sampled() {
            let mut answered_by = reply.model.clone();
            plain::model(&settings.dlp.scanner, &mut answered_by);
            tracer.end(span, &Ended { event, trail: self, provider, answered_by });
        }
    }
}
