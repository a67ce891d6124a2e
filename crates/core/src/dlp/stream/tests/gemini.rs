//! Chunks of Gemini's.

use serde_json::{Value, json};

use crate::dlp::stream::testing::*;
use crate::wire::Dialect::Gemini;

fn chunk(parts: Value, finish: Option<&str>) -> String {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    format!("data: {}\r\n\r\n", json!({"candidates": [candidate], "responseId": "r", "modelVersion": "m"}))
}

const TEXT: &str = "/candidates/0/content/parts/0/text";

#[test]
fn text_is_followed_to_the_finish() {
    let cut =
        [chunk(json!([{"text": "My key is sk-12345"}]), None), chunk(json!([{"text": "67890abc"}]), None)].concat();
    for end in [
        chunk(json!([{"text": "def"}]), Some("STOP")),
        chunk(json!([{"text": "def"}]), None) + &chunk(json!([]), Some("STOP")),
    ] {
        let out = filtered(inspector(), Gemini, &(cut.clone() + &end));
        assert_eq!(joined(&out, TEXT), format!("My key is {HIDDEN}"));
    }
    let (steps, _) = steps(inspector(), Gemini, &(cut + &chunk(json!([{"text": "def"}]), Some("STOP"))));
    assert_eq!(steps.concat().len(), 3, "what ends with the event needs no event of its own");
}

#[test]
fn thoughts_are_followed_by_themselves_and_untouched_when_signed() {
    let sse = [
        chunk(json!([{"text": "a sk-12345", "thought": true}]), None),
        chunk(json!([{"text": "67890abcdef", "thought": true}]), None),
        chunk(json!([{"text": "done "}]), None),
    ];
    let (steps, _) = steps(inspector(), Gemini, &sse.concat());
    let out = String::from_utf8(steps.concat().concat()).unwrap();
    assert_eq!(joined(&out, TEXT), format!("a {HIDDEN}done "));
    assert_eq!(steps[2].len(), 2, "the thought is over before the words begin");
    assert_eq!(
        values(&out)[2]["candidates"][0]["content"],
        json!({"role": "model", "parts": [{"thought": true, "text": HIDDEN}]})
    );

    let signed = chunk(
        json!([{"text": KEY, "thought": true, "thoughtSignature": KEY}, {"inlineData": {"mimeType": "image/png", "data": "QUJD".repeat(99)}}]),
        None,
    );
    assert_eq!(filtered(inspector(), Gemini, &signed), signed);
}

#[test]
fn calls_are_whole_and_end_the_words_before_them() {
    let call = json!({"functionCall": {"id": KEY, "name": "f", "args": {"id": KEY, "list": [{"name": format!("x {KEY}")}]}}, "thoughtSignature": KEY});
    let out = filtered(inspector(), Gemini, &chunk(json!([{"text": "see you"}, call]), None));
    let parts = &values(&out)[0]["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["text"], "see you");
    assert_eq!(parts[1]["functionCall"]["args"], json!({"id": HIDDEN, "list": [{"name": format!("x {HIDDEN}")}]}));
    assert_eq!(parts[1]["functionCall"]["id"], KEY);
    assert_eq!(parts[1]["thoughtSignature"], KEY);
    let (steps, _) =
        steps(inspector(), Gemini, &(chunk(json!([{"text": "see you"}]), None) + &chunk(json!([call]), None)));
    assert_eq!(joined(std::str::from_utf8(&steps[1][0]).unwrap(), TEXT), "you");
}

#[test]
fn arguments_in_pieces_are_followed() {
    let piece = |text: &str, goes_on: bool| {
        chunk(
            json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": text, "willContinue": goes_on}]}}]),
            None,
        )
    };
    let out = filtered(
        inspector(),
        Gemini,
        &[piece("a sk-12345", true), piece("67890abcdef", true), piece("", false)].concat(),
    );
    let pointer = "/candidates/0/content/parts/0/functionCall/partialArgs/0/stringValue";
    assert_eq!(joined(&out, pointer), format!("a {HIDDEN}"));
}
