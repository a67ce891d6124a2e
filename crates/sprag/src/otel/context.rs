//! `traceparent`: where a call stands in its caller's trace, and what the provider is told.
//!
//! The library's reader takes ids of any length; what it takes for a trace id must be the one that names runs too, so the
//! header is read here, as strictly as the standard wants it. `tracestate` belongs to others and passes as it came.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanId, TraceId};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The caller's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    /// The caller records this trace.
    pub(super) is_sampled: bool,
}

/// The caller's span, where the headers name one and only one.
pub(super) fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    read(value.to_str().ok()?.trim())
}

fn read(header: &str) -> Option<Parent> {
    let mut parts = header.split('-');
    let mut part = |length: usize| parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex));
    let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    // Later versions may say more; this one may not.
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    let is_valid = trace != TraceId::INVALID && span != SpanId::INVALID;
    is_valid.then_some(Parent { trace, span, is_sampled })
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Tells the provider which span its call belongs to. `is_new`: the trace begins here, so nobody else has a say in it.
pub(super) fn write(headers: &mut HeaderMap, trace: TraceId, span: SpanId, is_sampled: bool, is_new: bool) {
    let value = format!("00-{trace}-{span}-{:02x}", u8::from(is_sampled));
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(TRACEPARENT, value);
    }
    if is_new {
        headers.remove(TRACESTATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "ad5b72550a81ce246661189fd2cedff3";
    const SPAN: &str = "78a768f2645dcecd";

    #[test]
    fn a_good_header_is_read() {
        for (header, is_sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-03"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("01-{TRACE}-{SPAN}-01-more"), true),
        ] {
            let parent = read(&header).unwrap();
            assert_eq!((parent.trace.to_string(), parent.span.to_string()), (TRACE.to_owned(), SPAN.to_owned()));
            assert_eq!(parent.is_sampled, is_sampled, "{header}");
        }
    }

    #[test]
    fn anything_else_is_none() {
        let upper = TRACE.to_uppercase();
        for header in [
            String::new(),
            "00-1-1-01".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}-{SPAN}-zz"),
        ] {
            assert_eq!(read(&header), None, "{header}");
        }
        let twice = [TRACE, TRACE].map(|trace| (TRACEPARENT, format!("00-{trace}-{SPAN}-01").parse().unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in twice {
            headers.append(name, value);
        }
        assert_eq!(parent(&headers), None, "nobody can say which of two is meant");
    }

    #[test]
    fn a_trace_that_begins_here_has_no_state_of_others() {
        for (is_new, state) in [(true, None), (false, Some("a=1"))] {
            let mut headers = HeaderMap::from_iter([(TRACESTATE, HeaderValue::from_static("a=1"))]);
            write(&mut headers, TraceId::from_hex(TRACE).unwrap(), SpanId::from_hex(SPAN).unwrap(), true, is_new);
            assert_eq!(headers[TRACEPARENT], format!("00-{TRACE}-{SPAN}-01"));
            assert_eq!(headers.get(TRACESTATE).map(|value| value.to_str().unwrap()), state);
        }
    }
}
