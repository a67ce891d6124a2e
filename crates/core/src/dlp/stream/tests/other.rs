//! Streams that are no dialect.

use serde_json::{Value, json};

use crate::dlp::stream::testing::{HIDDEN, KEY, filtered, inspector, joined, strict, with_vault};
use crate::dlp::stream::{Flow, StreamFilter};
use crate::limits::STREAM_FIELDS;
use crate::wire::Dialect;

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// The same text in the pieces of four dialects, and where each piece stands.
fn shapes(pieces: &[&str]) -> Vec<(&'static str, Vec<Value>)> {
    let events = |make: &dyn Fn(&str) -> Value| pieces.iter().map(|piece| make(piece)).collect::<Vec<Value>>();
    let responses = events(
        &|piece| json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": piece}),
    );
    let messages = events(
        &|piece| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
    );
    let chat = events(&|piece| json!({"choices": [{"index": 0, "delta": {"content": piece}}]}));
    let gemini = events(&|piece| json!({"candidates": [{"index": 0, "content": {"parts": [{"text": piece}]}}]}));
    let threads = events(&|piece| {
        let part = json!({"index": 0, "type": "text", "text": {"value": piece, "annotations": []}});
        json!({"id": "msg_1", "object": "thread.message.delta", "delta": {"content": [part]}})
    });
    let nested = events(
        &|piece| json!({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}),
    );
    vec![
        ("/delta", responses),
        ("/delta/text", messages),
        ("/choices/0/delta/content", chat),
        ("/candidates/0/content/parts/0/text", gemini),
        ("/delta/content/0/text/value", threads),
        ("/delta/message/content/text", nested),
    ]
}

#[test]
fn a_key_in_pieces_is_hidden_whatever_shape_the_events_have() {
    for cut in 1..KEY.len() {
        let (head, tail) = KEY.split_at(cut);
        for (place, events) in shapes(&[&format!("It is {head}"), tail, " and that is all."]) {
            let passed = filtered(inspector(), Dialect::Opaque, &stream(&events));
            assert_eq!(joined(&passed, place), format!("It is {HIDDEN} and that is all."), "{place} {cut}");
        }
    }
}

#[test]
fn own_values_come_back_in_them() {
    for (place, events) in shapes(&["Ask [EMA", "IL_1] now."]) {
        let passed = filtered(with_vault(), Dialect::Opaque, &stream(&events));
        assert_eq!(joined(&passed, place), "Ask \"mia\"@example.org now.", "{place}");
    }
}

#[test]
fn what_holds_nothing_passes_as_it_came() {
    for (_, events) in shapes(&["So it ", "is. "]) {
        let sse = stream(&events) + "event: done\ndata: [DONE]\n\n: a comment\n\ndata: just words\n\n";
        assert_eq!(filtered(inspector(), Dialect::Opaque, &sse), sse);
    }
}

#[test]
fn the_last_word_comes_before_what_ends_it() {
    let (_, mut events) = shapes(&["see mi", "a"]).remove(4);
    events.push(json!({"object": "thread.run", "status": "completed", "last_error": {"message": KEY}}));
    let passed = filtered(inspector(), Dialect::Opaque, &stream(&events));
    assert_eq!(joined(&passed, "/delta/content/0/text/value"), "see mia");
    assert!(passed.find("\"mia\"").or_else(|| passed.find("\"a\"")) < passed.find("thread.run"), "{passed}");
    assert_eq!(joined(&passed, "/last_error/message"), HIDDEN, "texts elsewhere are looked at by themselves");
}

#[test]
fn texts_that_are_told_apart_do_not_mix() {
    let piece = |id: u32, text: &str| json!({"id": id, "delta": {"text": text}});
    let (head, tail) = KEY.split_at(9);
    let events = [piece(1, head), piece(2, "other words. "), piece(1, tail), piece(1, ".")];
    let passed = filtered(inspector(), Dialect::Opaque, &stream(&events));
    assert!(passed.contains(HIDDEN) && passed.contains("other words.") && !passed.contains(tail), "{passed}");
    let arguments = |text: &str| json!({"delta": {"tool_calls": [{"index": 0, "arguments": text}]}});
    let events = [arguments("{\"key\":\"sk-1234\\u0035"), arguments("67890abcdef\"}")];
    let passed = filtered(inspector(), Dialect::Opaque, &stream(&events));
    assert_eq!(joined(&passed, "/delta/tool_calls/0/arguments"), format!("{{\"key\":\"{HIDDEN}\"}}"));
}

#[test]
fn a_strict_policy_stops_them() {
    for (place, events) in shapes(&["It is so. My key is sk-1234567", "890abcdef is it."]) {
        let (mut filter, mut out) = (StreamFilter::new(strict(), Dialect::Opaque), Vec::new());
        let flows: Vec<Flow> =
            events.iter().map(|event| filter.push(format!("data: {event}\n\n").into(), &mut out)).collect();
        assert_eq!(flows, [Flow::Passed, Flow::Stopped], "{place}");
        assert!(!String::from_utf8(out.concat()).unwrap().contains("123456"), "{place}");
    }
}

#[test]
fn many_texts_in_one_event_are_bounded_and_all_looked_at() {
    for texts in [STREAM_FIELDS - 1, STREAM_FIELDS, STREAM_FIELDS + 1] {
        let members = (0..texts).map(|number| (format!("t{number}"), json!(format!("{KEY} "))));
        let event = json!({"delta": Value::Object(members.collect())});
        let passed = filtered(inspector(), Dialect::Opaque, &stream(&[event]));
        assert_eq!((passed.matches(HIDDEN).count(), passed.contains(KEY)), (texts, false), "{texts}");
    }
}
