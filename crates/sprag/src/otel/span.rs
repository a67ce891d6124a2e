//! The spans of a call that has ended: its own, and those of its parts that took time.
//!
//! Only what is on record of the call goes into them, after secrets were taken out of its names: no prompt, no answer, no
//! key, no header.

use std::time::{Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use sprag_core::event::{Ending, Event};

use super::{OpenSpan, names};
use crate::config::Provider;
use crate::gateway::{Leg, Trail};

/// What is known of a call when it has ended.
pub(crate) struct Ended<'a> {
    pub(crate) event: &'a Event,
    pub(crate) trail: &'a Trail,
    pub(crate) provider: &'a Provider,
    /// The model that answered, by its own account.
    pub(crate) answered_by: Option<String>,
}

/// All spans of a call, its own first.
pub(super) fn spans(open: &OpenSpan, scope: &InstrumentationScope, ended: &Ended<'_>) -> Vec<SpanData> {
    let Ended { event, trail, provider, .. } = ended;
    let now = Instant::now();
    let make = |id: SpanId, parent: SpanId, kind, name: String, (from, to): (Instant, Instant)| SpanData {
        span_context: SpanContext::new(open.trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: kind,
        name: name.into(),
        start_time: at(open, from),
        end_time: at(open, to),
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: scope.clone(),
    };
    let status = status(event);
    let mut own =
        make(open.span, open.parent.unwrap_or(SpanId::INVALID), SpanKind::Server, name(event), (open.arrived, now));
    own.parent_span_is_remote = open.parent.is_some();
    own.attributes = attributes(ended);
    own.status = status.clone();
    let mut spans = vec![own];
    let span_of = |leg: Leg| (leg.began, leg.began + leg.took);
    let inside = SpanKind::Internal;
    let judge = SpanId::from(rand::random::<u64>() | 1);
    if let Some(leg) = trail.judged {
        spans.push(make(judge, open.span, inside.clone(), "judge".to_owned(), span_of(leg)));
    }
    let parts = [("detect loops", trail.detected), ("inspect request", trail.inspected)];
    for (name, leg) in parts {
        let parent = if trail.judged.is_some() { judge } else { open.span };
        let id = SpanId::from(rand::random::<u64>() | 1);
        spans.extend(leg.map(|leg| make(id, parent, inside.clone(), name.to_owned(), span_of(leg))));
    }
    if let Some(sent_at) = trail.sent_at {
        let mut upstream =
            make(open.upstream, open.span, SpanKind::Client, format!("{} upstream", provider.name), (sent_at, now));
        let authority = &provider.base.authority;
        upstream.attributes.push(KeyValue::new("server.address", authority.host().to_owned()));
        upstream.attributes.extend(authority.port_u16().map(|port| KeyValue::new("server.port", i64::from(port))));
        if let Some(status) = trail.answered_with {
            upstream.attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
        }
        let is_upstreams = matches!(event.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        if is_upstreams {
            upstream.attributes.extend(names::error_type(event).map(|error| KeyValue::new("error.type", error)));
            upstream.status = status;
        }
        spans.push(upstream);
    }
    if let Some(leg) = trail.answer_inspected {
        let id = SpanId::from(rand::random::<u64>() | 1);
        spans.push(make(id, open.span, inside, "inspect answer".to_owned(), span_of(leg)));
    }
    spans
}

/// The moment on the clock.
fn at(open: &OpenSpan, moment: Instant) -> SystemTime {
    open.started + moment.saturating_duration_since(open.arrived)
}

fn name(event: &Event) -> String {
    match names::operation(event.dialect) {
        Some(operation) => match &event.model {
            Some(model) => format!("{operation} {model}"),
            None => operation.to_owned(),
        },
        // A path may hold anything; who serves it does not.
        None => format!("{} {}", method(event), event.provider),
    }
}

fn method(event: &Event) -> &str {
    event.path.split(' ').next().unwrap_or_default()
}

fn status(event: &Event) -> Status {
    match names::error_type(event) {
        Some(error) if event.ending != Ending::ClientGone => Status::error(error),
        _ => Status::Unset,
    }
}

fn attributes(ended: &Ended<'_>) -> Vec<KeyValue> {
    let Ended { event, trail, provider, answered_by } = ended;
    let mut list = Attributes(Vec::with_capacity(32));
    if let Some(operation) = names::operation(event.dialect) {
        list.add("gen_ai.operation.name", operation);
        list.add("gen_ai.provider.name", names::provider(provider));
        list.maybe("gen_ai.request.model", event.model.clone());
        list.maybe("gen_ai.response.model", answered_by.clone());
        list.add("gen_ai.agent.name", event.agent.to_string());
        if let Some(usage) = &event.usage {
            list.number("gen_ai.usage.input_tokens", usage.prompt_tokens());
            list.number("gen_ai.usage.output_tokens", usage.output);
            list.number("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
            list.number("gen_ai.usage.cache_creation.input_tokens", usage.cache_write + usage.cache_write_1h);
            list.add("sprag.usage_estimated", usage.estimated);
        }
        if let Some(finish) = &event.finish {
            let reasons = Array::String(vec![StringValue::from(finish.clone())]);
            list.add("gen_ai.response.finish_reasons", Value::Array(reasons));
        }
    }
    let (method, path) = event.path.split_once(' ').unwrap_or_default();
    list.add("http.request.method", method.to_owned());
    list.add("url.path", path.to_owned());
    if event.status > 0 {
        list.number("http.response.status_code", u64::from(event.status));
    }
    list.maybe("error.type", names::error_type(event));
    list.add("sprag.request_id", event.id.clone());
    list.add("sprag.agent", event.agent.to_string());
    list.add("sprag.provider", event.provider.clone());
    if let Some(run) = &event.run {
        list.add("sprag.run", run.id.to_string());
        list.add("gen_ai.conversation.id", run.id.to_string());
        list.number("sprag.step", u64::from(run.step));
    }
    list.add("sprag.verdict", names::verdict(event));
    list.add("sprag.blocked", event.blocked);
    list.maybe("sprag.block_reason", event.block_reason.clone());
    if let Some(verdict) = &event.verdict {
        list.add("sprag.detector", verdict.finding.detector.as_str());
    }
    if let Some(cost) = event.cost {
        list.add("sprag.cost_usd", cost.0 as f64 / 1e9);
    }
    if let Some(overhead) = trail.overhead() {
        list.add("sprag.overhead_seconds", overhead.as_secs_f64());
    }
    list.add("sprag.stream", event.stream);
    if let Some(sightings) = &event.dlp {
        list.number("sprag.dlp_findings", sightings.total);
    }
    list.0
}

struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn add(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.push(KeyValue::new(key, value));
    }

    fn maybe(&mut self, key: &'static str, value: Option<String>) {
        self.0.extend(value.map(|value| KeyValue::new(key, value)));
    }

    fn number(&mut self, key: &'static str, value: u64) {
        self.add(key, i64::try_from(value).unwrap_or(i64::MAX));
    }
}
