//! Events of Anthropic's Messages API.

use serde_json::{Value, json};

use crate::dlp::stream::testing::*;
use crate::wire::Dialect::Anthropic;

fn event(value: Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

fn delta(index: u64, delta: Value) -> String {
    event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn text(index: u64, text: &str) -> String {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn stop(index: u64) -> String {
    event(json!({"type": "content_block_stop", "index": index}))
}

#[test]
fn text_and_input_are_followed_to_the_end_of_their_block() {
    let input = |json: &str| delta(1, json!({"type": "input_json_delta", "partial_json": json}));
    let sse = [
        text(0, "My key is sk-12345"),
        text(0, "67890"),
        text(0, "abcdef"),
        stop(0),
        input(r#"{"k":"sk-1234567"#),
        input(r#"890abcdef"}"#),
        stop(1),
        event(json!({"type": "message_stop"})),
    ]
    .concat();
    let (steps, filter) = steps(inspector(), Anthropic, &sse);
    let out = String::from_utf8(steps.concat().concat()).unwrap();
    assert_eq!(joined(&out, "/delta/text"), format!("My key is {HIDDEN}"));
    assert_eq!(joined(&out, "/delta/partial_json"), format!(r#"{{"k":"{HIDDEN}"}}"#));
    // The rest of the text comes before the end of its block.
    let rest = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\
         \"text_delta\",\"text\":\"{HIDDEN}\"}}}}\n\n"
    );
    assert_eq!(steps[3], [rest.as_bytes(), stop(0).as_bytes()]);
    let seen: Vec<(&str, usize)> = filter.sightings().list.iter().map(|one| (one.path.as_str(), one.start)).collect();
    assert_eq!(seen, [("delta.text", 10), ("delta.partial_json", 6)]);
}

#[test]
fn texts_of_new_deltas_are_followed_in_their_own_shape() {
    let piece = |text: &str| delta(0, json!({"type": "new_delta", "words": text}));
    let sse = [piece("My key is sk-12345"), piece("67890"), piece("abcdef"), stop(0)].concat();
    let (steps, _) = steps(inspector(), Anthropic, &sse);
    let out = String::from_utf8(steps.concat().concat()).unwrap();
    assert_eq!(joined(&out, "/delta/words"), format!("My key is {HIDDEN}"));
    let rest = values(std::str::from_utf8(&steps[3][0]).unwrap());
    let shape = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "words": HIDDEN}});
    assert_eq!((rest, steps[3].len()), (vec![shape], 2));
}

#[test]
fn a_block_that_begins_with_text_is_followed_from_there() {
    let start = event(
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": "a sk-12345"}}),
    );
    let out = filtered(inspector(), Anthropic, &(start + &text(3, "67890abcdef") + &stop(3)));
    let said = joined(&out, "/content_block/text") + &joined(&out, "/delta/text");
    assert_eq!(said, format!("a {HIDDEN}"));
}

#[test]
fn what_was_thought_is_never_touched() {
    let sse = [
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": KEY, "signature": ""}}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": KEY})),
        delta(0, json!({"type": "signature_delta", "signature": KEY})),
        event(
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": KEY}}),
        ),
        event(
            json!({"type": "message_start", "message": {"id": KEY, "content": [{"type": "thinking", "thinking": KEY, "signature": KEY}]}}),
        ),
    ];
    assert_eq!(filtered(inspector(), Anthropic, &sse.concat()), sse.concat());
}

#[test]
fn citations_results_and_whole_inputs_are_looked_at() {
    let sse = [
        delta(0, json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": KEY, "document_title": KEY}})),
        event(json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f",
            "input": {"id": KEY, "name": [KEY]}}})),
        event(json!({"type": "error", "error": {"type": "api_error", "message": KEY}})),
        event(json!({"type": "new_event", "unknown": {"deep": [KEY]}})),
    ]
    .concat();
    assert_eq!(filtered(inspector(), Anthropic, &sse), sse.replace(KEY, HIDDEN));
}

#[test]
fn a_number_in_the_input_is_looked_at_when_it_is_whole() {
    let input = |json: &str| delta(1, json!({"type": "input_json_delta", "partial_json": json}));
    let (steps, _) =
        steps(inspector(), Anthropic, &[input(r#"{"n": 12345"#), input("67890123456, "), stop(1)].concat());
    let said: Vec<String> =
        steps.iter().map(|out| joined(std::str::from_utf8(&out.concat()).unwrap(), "/delta/partial_json")).collect();
    assert_eq!(said, [r#"{"n": "#, "1234567890123456, ", "", ""]);
}
