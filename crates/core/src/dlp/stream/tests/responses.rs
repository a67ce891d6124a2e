//! Events of the Responses API.

use serde_json::{Value, json};

use crate::dlp::stream::testing::*;
use crate::wire::Dialect::OpenaiResponses;

/// Numbers the events and writes them.
fn stream(events: &[Value]) -> String {
    let mut sse = String::new();
    for (number, event) in events.iter().enumerate() {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        sse += &format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    }
    sse
}

fn delta(stem: &str, text: &str) -> Value {
    json!({"type": format!("{stem}.delta"), "item_id": "i1", "output_index": 0, "content_index": 0, "delta": text})
}

#[test]
fn every_delta_is_followed_and_the_whole_says_the_same() {
    let kinds = [
        ("response.output_text", "text", "My key is @"),
        ("response.refusal", "refusal", "My key is @"),
        ("response.reasoning_text", "text", "My key is @"),
        ("response.reasoning_summary_text", "text", "My key is @"),
        ("response.function_call_arguments", "arguments", r#"{"key": "@"}"#),
        ("response.mcp_call_arguments", "arguments", r#"{"key": "@"}"#),
        ("response.custom_tool_call_input", "input", "My key is @"),
        ("response.code_interpreter_call_code", "code", "key = '@'"),
        ("response.something_new", "text", "My key is @"),
    ];
    for (stem, field, text) in kinds {
        let whole = text.replace('@', KEY);
        let item = json!({"type": "x", "id": "i1", field: whole, "content": [{"type": "output_text", "text": whole}]});
        let mut events: Vec<Value> =
            whole.as_bytes().chunks(3).map(|c| delta(stem, std::str::from_utf8(c).unwrap())).collect();
        events.push(json!({"type": format!("{stem}.done"), "item_id": "i1", "output_index": 0, "content_index": 0, field: whole}));
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        events.push(json!({"type": "response.completed", "response": {"id": "r", "output": [item]}}));
        let sse = stream(&events);
        let (steps, filter) = steps(inspector(), OpenaiResponses, &sse);
        let out = String::from_utf8(steps.concat().concat()).unwrap();
        let hidden = text.replace('@', HIDDEN);
        assert_eq!(joined(&out, "/delta"), hidden, "{stem}");
        let values = values(&out);
        for value in &values[values.len() - 3..] {
            assert!(!value.to_string().contains("1234"), "{value}");
        }
        assert_eq!(values[values.len() - 3][field], hidden.as_str());
        assert_eq!(values.last().unwrap()["response"]["output"][0][field], hidden.as_str());
        // Each value is on record once.
        assert_eq!(filter.sightings().total, 1, "{stem}");
        let numbers: Vec<u64> = values.iter().map(|value| value["sequence_number"].as_u64().unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
        assert_eq!(numbers.len() as u64, events.len() as u64 + filter.added());
    }
}

#[test]
fn the_rest_has_the_next_number_and_the_same_ids() {
    let done = json!({"type": "response.output_text.done", "item_id": "i1", "output_index": 0, "content_index": 0, "text": "one two"});
    let sse = stream(&[
        delta("response.output_text", "one two"),
        done.clone(),
        json!({"type": "response.completed", "response": {}}),
    ]);
    let (steps, filter) = steps(inspector(), OpenaiResponses, &sse);
    let rest = "event: response.output_text.delta\ndata: {\"sequence_number\":1,\"content_index\":0,\"item_id\":\"i1\",\
                \"output_index\":0,\"type\":\"response.output_text.delta\",\"delta\":\"two\"}\n\n";
    assert_eq!(std::str::from_utf8(&steps[1][0]).unwrap(), rest);
    let numbered = |event: &[u8]| values(std::str::from_utf8(event).unwrap())[0]["sequence_number"].as_u64();
    assert_eq!((numbered(&steps[1][1]), numbered(&steps[2][0]), filter.added()), (Some(2), Some(3), 1));
    // A stream that just ends.
    let (steps, _) = super::super::testing::steps(
        inspector(),
        OpenaiResponses,
        &stream(&[delta("response.output_text", "one two")]),
    );
    assert_eq!(std::str::from_utf8(&steps[1][0]).unwrap(), rest);
}

#[test]
fn sealed_reasoning_sound_and_ids_are_left_alone() {
    let sse = stream(&[
        json!({"type": "response.audio.delta", "delta": KEY}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"id": KEY, "type": "reasoning", "encrypted_content": KEY}}),
        json!({"type": "response.image_generation_call.partial_image", "partial_image_b64": "QUJD".repeat(99)}),
        json!({"type": "response.created", "response": {"id": KEY, "previous_response_id": KEY}}),
    ]);
    assert_eq!(filtered(inspector(), OpenaiResponses, &sse), sse);
}

#[test]
fn an_item_that_was_not_streamed_is_on_record() {
    let item =
        json!({"type": "message", "content": [{"type": "output_text", "text": KEY, "logprobs": [{"token": "sk-"}]}]});
    let sse = stream(&[json!({"type": "response.output_item.done", "output_index": 0, "item": item})]);
    let (steps, filter) = steps(inspector(), OpenaiResponses, &sse);
    assert_eq!(filter.sightings().list[0].path, "item.content[0].text");
    let out = values(std::str::from_utf8(&steps[0][0]).unwrap());
    assert_eq!(out[0]["item"]["content"][0], json!({"type": "output_text", "text": HIDDEN, "logprobs": []}));
}

#[test]
fn the_whole_gets_values_back_as_its_deltas_do() {
    let arguments = json!({"to": "[EMAIL_1]"}).to_string();
    let stem = "response.function_call_arguments";
    let done = json!({"type": format!("{stem}.done"), "output_index": 0, "content_index": 0, "arguments": arguments});
    let out = filtered(with_vault(), OpenaiResponses, &stream(&[delta(stem, &arguments), done]));
    let expected = json!({"to": "\"mia\"@example.org"}).to_string();
    assert_eq!((joined(&out, "/delta"), joined(&out, "/arguments")), (expected.clone(), expected));
}
