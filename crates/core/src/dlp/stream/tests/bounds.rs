//! Odd frames, odd data, and the limits.

use bytes::Bytes;
use serde_json::json;

use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::limits::{EVENT_PARTS, EVENT_VALUES, STREAM_FIELDS, STREAM_NOTED};
use crate::wire::Dialect::{Opaque, OpenaiChat};

#[test]
fn events_are_rewritten_however_they_are_framed() {
    let (open, close) = (r#"{"choices":[{"index":0,"delta":{"content":"#, r#""},"finish_reason":"stop"}]}"#);
    let cases = [
        (format!("data:{open}\"{KEY}{close}\r\n\r\n"), format!("data:{open}\"{HIDDEN}{close}\r\n\r\n")),
        (format!("data: {open}\"{KEY}{close}\r\r"), format!("data: {open}\"{HIDDEN}{close}\r\r")),
        (format!("data: {open}\ndata: \"{KEY}{close}\n\n"), format!("data: {open} \"{HIDDEN}{close}\n\n")),
        (
            format!(": a\nevent: x\ndata: {open}\"{KEY}{close}\nid: 7\n\n"),
            format!(": a\nevent: x\ndata: {open}\"{HIDDEN}{close}\nid: 7\n\n"),
        ),
        (format!("data: {open}\"{KEY}{close}"), format!("data: {open}\"{HIDDEN}{close}")),
        (format!(": the key {KEY}\n\n"), format!(": the key {HIDDEN}\n\n")),
        (format!("data: no JSON {KEY}\ndata: two\n\n"), format!("data: no JSON {HIDDEN}\ndata: two\n\n")),
        (format!("data: {{\"broken\": \"{KEY}\n\n"), format!("data: {{\"broken\": \"{HIDDEN}\n\n")),
        (": ping\n\n".to_owned(), ": ping\n\n".to_owned()),
    ];
    for (event, expected) in cases {
        assert_eq!(filtered(inspector(), OpenaiChat, &event), expected);
    }
}

#[test]
fn the_rest_comes_before_an_event_that_never_ended() {
    let event = |text: &str| format!("data: {}", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    for tail in [event("fgh"), "data: [DO".to_owned(), ": x".to_owned()] {
        let (steps, _) = steps(inspector(), OpenaiChat, &format!("{}\n\n{tail}", event("abc de")));
        let out = String::from_utf8(steps.concat().concat()).unwrap();
        assert_eq!(steps[1].len(), if tail.contains("fgh") { 1 } else { 2 });
        assert!(!steps[1].last().unwrap().ends_with(b"\n"), "{out}");
        let said = joined(&out, "/choices/0/delta/content");
        assert_eq!(said, if tail.contains("fgh") { "abc defgh" } else { "abc de" });
        assert!(steps[2].is_empty());
    }
}

#[test]
fn unknown_dialects_are_looked_at_event_by_event() {
    let sse = format!("data: {}\n\n", json!({"id": KEY, "a": {"b": [KEY, 1]}, "role": "x"}));
    assert_eq!(filtered(inspector(), Opaque, &sse), sse.replacen(&format!("[\"{KEY}"), &format!("[\"{HIDDEN}"), 1));
}

#[test]
fn texts_that_are_followed_are_bounded() {
    let event = |choice: usize, text: &str| {
        Bytes::from(format!("data: {}\n\n", json!({"choices": [{"index": choice, "delta": {"content": text}}]})))
    };
    let mut filter = StreamFilter::new(inspector(), OpenaiChat);
    let mut out = Vec::new();
    for choice in 0..=STREAM_FIELDS {
        assert_eq!(filter.push(event(choice, "a sk-12345"), &mut out), Flow::Passed);
    }
    assert_eq!(filter.fields.len(), STREAM_FIELDS);
    let said = |out: &[Bytes]| joined(std::str::from_utf8(&out.concat()).unwrap(), "/choices/0/delta/content");
    assert_eq!(said(&out[STREAM_FIELDS - 1..STREAM_FIELDS]), "a ");
    // One past it is not held back, and looked at by itself.
    assert_eq!(said(&out[STREAM_FIELDS..]), "a sk-12345");
    out.clear();
    assert_eq!(filter.push(event(STREAM_FIELDS, &format!("b {KEY} c")), &mut out), Flow::Passed);
    assert_eq!(said(&out), format!("b {HIDDEN} c"));
}

#[test]
fn an_event_with_too_many_values_is_looked_at_as_text() {
    for values in [EVENT_VALUES, EVENT_VALUES + 1] {
        let sse = format!("data: [\"{KEY}\"{}]\n\n", ",1".repeat(values - 2));
        assert_eq!(filtered(inspector(), OpenaiChat, &sse), sse.replace(KEY, HIDDEN), "{values}");
    }
}

#[test]
fn the_memory_of_what_is_on_record_is_bounded() {
    let mut filter = StreamFilter::new(inspector(), OpenaiChat);
    let mut out = Vec::new();
    for number in 1..=STREAM_NOTED + 1 {
        let event = format!("data: {{\"a\":\"sk-a7c9e{number:015}\"}}\n\n");
        assert_eq!(filter.push(event.into(), &mut out), Flow::Passed);
    }
    assert_eq!(filter.watch.noted(), STREAM_NOTED);
    assert_eq!(filter.sightings().total, STREAM_NOTED as u64 + 1);
}

#[test]
fn what_cannot_be_cut_into_events_is_looked_at_as_one_text() {
    let mut filter = StreamFilter::new(inspector(), OpenaiChat);
    let mut out = Vec::new();
    for part in format!("data: {{\"a\": \"key {KEY}\"").as_bytes().chunks(5) {
        assert_eq!(filter.push_unread(part, &mut out), Flow::Passed);
    }
    assert_eq!(filter.end(&mut out), Flow::Passed);
    assert_eq!(out.concat(), format!("data: {{\"a\": \"key {HIDDEN}\"").as_bytes());
}

#[test]
fn hostile_bytes_never_panic() {
    let cases: [&[u8]; 8] = [
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\xed\xa0\"}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\\u12\\ud800\\\"}}]}\n\n",
        b"data: \"\n\n",
        b"data: {\"choices\":{\"a\":[]},\"sequence_number\":-1}\n\n",
        b"data: {\"choices\":[1,null,\"x\",[]]}\n\n",
        b"data\n\n",
        b"\xEF\xBB\xBF\n\n",
        b"data: {\"sequence_number\":18446744073709551615,\"type\":\"response.x.delta\",\"delta\":\"ab\"}\n\n",
    ];
    for dialect in [
        OpenaiChat,
        crate::wire::Dialect::OpenaiResponses,
        crate::wire::Dialect::Gemini,
        crate::wire::Dialect::Anthropic,
    ] {
        let mut filter = StreamFilter::new(inspector(), dialect);
        let mut out = Vec::new();
        for _ in 0..2 {
            for case in cases {
                assert_eq!(filter.push(Bytes::from_static(case), &mut out), Flow::Passed);
            }
        }
        assert_eq!(filter.end(&mut out), Flow::Passed);
    }
}

#[test]
fn parts_of_one_event_are_bounded() {
    for count in [EVENT_PARTS, EVENT_PARTS + 1] {
        let choices = vec![json!({"index": 0, "delta": {"content": "a b"}}); count];
        let out = filtered(inspector(), OpenaiChat, &format!("data: {}\n\n", json!({"choices": choices})));
        let said = |choice: usize| values(&out)[0]["choices"][choice]["delta"]["content"].clone();
        assert_eq!((said(0), said(EVENT_PARTS - 1)), ("a ".into(), "ba ".into()));
        assert_eq!(said(count - 1), if count > EVENT_PARTS { "a b" } else { "ba " });
    }
}

#[test]
fn what_is_held_back_is_never_printed() {
    let mut filter = StreamFilter::new(inspector(), OpenaiChat);
    let event = format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": KEY}}]}));
    assert_eq!(filter.push(event.into(), &mut Vec::new()), Flow::Passed);
    assert!(!format!("{filter:?}").contains("sk"));
}
