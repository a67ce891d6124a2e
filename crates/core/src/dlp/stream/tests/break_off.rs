//! An answer that is broken off in the middle.

use serde_json::json;

use crate::dlp::inspector::Inspector;
use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::wire::Dialect::{self, Gemini, OpenaiChat, OpenaiResponses};

const CONTENT: &str = "/choices/0/delta/content";
const ARGUMENTS: &str = "/choices/0/delta/tool_calls/0/function/arguments";

fn chat(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn call(text: &str) -> String {
    let call = json!({"index": 0, "function": {"arguments": text}});
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
}

/// What is out by the time the stream is broken off, and what comes then.
fn broken_off(inspector: Inspector, dialect: Dialect, sse: &str) -> (String, String) {
    let mut filter = StreamFilter::new(inspector, dialect);
    let (mut before, mut then) = (Vec::new(), Vec::new());
    for event in events(sse) {
        assert_eq!(filter.push(event, &mut before), Flow::Passed);
    }
    filter.break_off(&mut then);
    let mut later = Vec::new();
    assert_eq!(filter.push(chat("more").into(), &mut later), Flow::Stopped);
    assert_eq!(filter.end(&mut later), Flow::Stopped);
    filter.break_off(&mut later);
    assert!(later.is_empty());
    (String::from_utf8(before.concat()).unwrap(), String::from_utf8(then.concat()).unwrap())
}

#[test]
fn no_half_of_a_value_goes_out_at_any_cut() {
    let text = "one two sk-1234567890abcdef";
    for cut in 8..=text.len() {
        for (event, pointer) in
            [(chat(&text[..cut]), CONTENT), (call(&format!(r#"{{"a":"{}"#, &text[..cut])), ARGUMENTS)]
        {
            let (before, then) = broken_off(inspector(), OpenaiChat, &event);
            assert!(joined(&before, pointer).ends_with("one two "), "{cut}");
            assert_eq!(then, "", "{cut}");
        }
    }
    let (before, then) = broken_off(inspector(), OpenaiChat, &call(r#"{"n":411111111111"#));
    assert_eq!((joined(&before, ARGUMENTS).as_str(), then.as_str()), (r#"{"n":"#, ""));
}

#[test]
fn what_is_decided_goes_out() {
    // A placeholder that never ended.
    for (event, pointer) in [(chat("to [EMAIL "), CONTENT), (call(r#"{"to":"to [EMAIL "#), ARGUMENTS)] {
        let (before, then) = broken_off(with_vault(), OpenaiChat, &event);
        assert!((joined(&before, pointer) + &joined(&then, pointer)).ends_with("to [EMAIL "), "{pointer}");
    }
    // A long candidate that came to nothing, not looked at again because little has come since.
    let long = format!("eyJ{}", "hbGci".repeat(80));
    let (before, then) = broken_off(inspector(), OpenaiChat, &(chat(&long) + &chat(" and so on")));
    assert_eq!((joined(&before, CONTENT), joined(&then, CONTENT)), (String::new(), long + " and so "));
}

#[test]
fn numbers_go_on() {
    let delta = |number: u64, text: &str| {
        let event = json!({"type": "response.output_text.delta", "sequence_number": number, "delta": text});
        format!("event: response.output_text.delta\ndata: {event}\n\n")
    };
    let (_, then) = broken_off(with_vault(), OpenaiResponses, &(delta(0, "to ") + &delta(1, "[EMAIL ")));
    assert_eq!(values(&then)[0]["sequence_number"], 2);
}

#[test]
fn bytes_that_are_no_events_end_before_what_is_open() {
    let mut out = Vec::new();
    let mut filter = StreamFilter::new(inspector(), OpenaiChat);
    assert_eq!(filter.push_unread(b"data: one two sk-1234567890abcdef", &mut out), Flow::Passed);
    filter.break_off(&mut out);
    assert_eq!(out.concat(), b"data: one two ");

    let element = json!({"candidates": [{"content": {"parts": [{"text": "one two sk-12345"}]}}]});
    let mut filter = StreamFilter::new(inspector(), Gemini);
    assert_eq!(filter.push_array(format!("[{element},{{\"a").as_bytes(), &mut Vec::new()), Flow::Passed);
    let mut out = Vec::new();
    filter.break_off(&mut out);
    assert!(out.is_empty());
}
