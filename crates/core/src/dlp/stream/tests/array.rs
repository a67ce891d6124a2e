//! Gemini's stream as a JSON array.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dlp::inspector::Inspector;
use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::limits::SSE_EVENT_BYTES;
use crate::wire::Dialect::Gemini;

fn filtered_array(inspector: Inspector, body: &str, size: usize) -> (String, Flow) {
    let mut filter = StreamFilter::new(inspector, Gemini);
    let mut out: Vec<Bytes> = Vec::new();
    for part in body.as_bytes().chunks(size) {
        let _ = filter.push_array(part, &mut out);
    }
    let flow = filter.end(&mut out);
    (String::from_utf8(out.concat()).unwrap(), flow)
}

fn chunk(text: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]})
}

fn said(body: &str) -> String {
    let chunks: Vec<Value> = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body}"));
    let text =
        |chunk: &Value| chunk.pointer("/candidates/0/content/parts/0/text").map(|t| t.as_str().unwrap().to_owned());
    chunks.iter().filter_map(text).collect()
}

#[test]
fn elements_are_followed_like_events() {
    let finish = json!({"candidates": [{"finishReason": "STOP", "index": 0}]});
    for last in [finish, chunk("")] {
        let list = json!([chunk("a \"b\" sk-12345"), chunk("67890"), chunk("abcdef"), last]);
        for body in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
            for size in [1, 7, 50, body.len()] {
                let (out, flow) = filtered_array(inspector(), &body, size);
                assert_eq!((said(&out), flow), (format!("a \"b\" {HIDDEN}"), Flow::Passed), "by {size}");
            }
        }
    }
}

#[test]
fn what_is_clean_or_no_array_stays() {
    let clean =
        serde_json::to_string_pretty(&json!([chunk("all is well "), {"usageMetadata": {"totalTokenCount": 1}}]))
            .unwrap();
    for body in [
        clean.as_str(),
        "[]",
        " [ ]\n",
        "{\"error\": {\"code\": 400, \"message\": \"no\"}}",
        "no JSON",
        "[{\"a\": [1, \"x",
    ] {
        for size in [1, 5, 500] {
            assert_eq!(filtered_array(inspector(), body, size).0, body, "by {size}");
        }
    }
    let body = format!("{{\"error\": {{\"message\": \"{KEY}\"}}}}");
    assert_eq!(filtered_array(inspector(), &body, 3).0, body.replace(KEY, HIDDEN));
}

#[test]
fn a_stop_lets_out_what_came_before() {
    let body = json!([chunk("one "), chunk("two sk-12345"), chunk("67890abcdef three")]).to_string();
    for size in [1, 9, body.len()] {
        let (out, flow) = filtered_array(strict(), &body, size);
        assert_eq!((said(&(out + "{}]")), flow), ("one two ".to_owned(), Flow::Stopped));
    }
}

#[test]
fn an_element_that_is_too_long_is_looked_at_as_text() {
    let body = |length: usize| format!("[{{\"a\":\"{KEY} {}\"}}]", "x yz'".repeat(length / 5));
    for length in [SSE_EVENT_BYTES - 64, SSE_EVENT_BYTES + 64] {
        let body = body(length);
        let (out, _) = filtered_array(inspector(), &body, 1 << 20);
        assert!(out == body.replace(KEY, HIDDEN), "{length}");
    }
}
