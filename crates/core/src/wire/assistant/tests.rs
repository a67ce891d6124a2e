use serde_json::json;

use super::*;
use crate::usage::Usage;
use crate::wire::{Tap, sse};

const TEXT: &str = "The agent \"bot\" is inactive.\nAsk Jo. Grüße, 世界";
const SPEAKING: [Dialect; 5] =
    [Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

fn spoken(wanted: Wanted) -> Option<Spoken> {
    let fields = json!({"sprag": {"block_reason": "agent_inactive"}, "id": "not mine", "type": "not mine"});
    let Value::Object(fields) = fields else { unreachable!() };
    speak(wanted, &Saying { id: "q1", at: Timestamp(1_700_000_000_999), text: TEXT, fields: &fields })
}

fn wanted(dialect: Dialect, is_stream: bool) -> Wanted {
    Wanted { dialect, is_stream, with_usage: false, is_list: false }
}

fn read(wanted: Wanted) -> Value {
    serde_json::from_slice(&spoken(wanted).unwrap().body).unwrap()
}

/// The events of a stream; the data is text where it is no JSON.
fn streamed(wanted: Wanted) -> Vec<Value> {
    let spoken = spoken(wanted).unwrap();
    assert_eq!(spoken.content_type, "text/event-stream; charset=utf-8");
    let text = String::from_utf8(spoken.body).unwrap();
    assert!(text.ends_with("\n\n"));
    let data = |event: &str| {
        let data = sse::parse(format!("{event}\n\n").as_bytes()).data.to_vec();
        serde_json::from_slice(&data).unwrap_or_else(|_| Value::from(String::from_utf8(data).unwrap()))
    };
    text.trim_end().split("\n\n").map(data).collect()
}

#[test]
fn sprag_itself_reads_a_whole_answer_that_is_over_and_used_nothing() {
    for dialect in SPEAKING {
        for is_stream in [false, true] {
            let spoken = spoken(wanted(dialect, is_stream)).unwrap();
            let mut tap = Tap::new(dialect);
            if is_stream {
                let mut from = 0;
                for end in sse::Splitter::new().push(spoken.body.clone().into()).ends {
                    tap.event(&spoken.body[from..end]);
                    from = end;
                }
            } else {
                tap.json(&spoken.body);
            }
            let reply = tap.reply();
            let finish = match dialect {
                Dialect::Anthropic => "end_turn",
                Dialect::Gemini => "STOP",
                Dialect::OpenaiResponses => "completed",
                _ => "stop",
            };
            let what = format!("{dialect:?} stream: {is_stream}: {reply:?}");
            assert_eq!(reply.finish.as_deref(), Some(finish), "{what}");
            assert_eq!(reply.model.as_deref(), Some(MODEL), "{what}");
            assert!(reply.complete && reply.tool_calls.is_empty() && reply.error.is_none(), "{what}");
            assert!(reply.usage.is_none_or(|usage| usage == Usage::default()), "{what}");
            assert_eq!(reply.text, TEXT, "{what}");
        }
    }
}

#[test]
fn own_fields_are_in_the_answer_and_in_the_last_event_and_replace_nothing() {
    for dialect in SPEAKING {
        let whole = read(wanted(dialect, false));
        assert_eq!(whole["sprag"]["block_reason"], "agent_inactive", "{dialect:?}");
        let mut events = streamed(wanted(dialect, true));
        events.retain(|event| *event != "[DONE]");
        let signed: Vec<bool> = events.iter().map(|event| event["sprag"].is_object()).collect();
        let expected: Vec<bool> = (1..=events.len()).map(|number| number == events.len()).collect();
        assert_eq!(signed, expected, "{dialect:?}");
        if dialect != Dialect::Gemini {
            assert!(whole["id"].as_str().unwrap().ends_with("q1"), "{dialect:?}");
        }
    }
    assert_eq!(read(wanted(Dialect::Anthropic, false))["type"], "message");
}

#[test]
fn a_chat_stream_ends_with_its_usage_where_that_was_asked_for() {
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiCompletions] {
        let asked = Wanted { with_usage: true, ..wanted(dialect, true) };
        let events = streamed(asked);
        let [.., usage, done] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(done, "[DONE]");
        assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(0)));
        assert!(usage["sprag"].is_object());
        let unasked = streamed(wanted(dialect, true));
        assert!(unasked.iter().all(|event| event.get("usage").is_none()));
    }
    let events = streamed(wanted(Dialect::OpenaiChat, true));
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[0]["created"], 1_700_000_000);
}

#[test]
fn a_responses_stream_has_every_event_in_order() {
    let events = streamed(wanted(Dialect::OpenaiResponses, true));
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    assert_eq!(events[8]["response"]["output"][0]["content"][0]["text"], TEXT);
    assert_eq!(events[0]["response"]["output"], json!([]));
    let body = String::from_utf8(spoken(wanted(Dialect::OpenaiResponses, true)).unwrap().body).unwrap();
    assert!(body.starts_with("event: response.created\ndata: {"));
}

#[test]
fn an_anthropic_stream_has_every_event_in_order() {
    let events = streamed(wanted(Dialect::Anthropic, true));
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    assert_eq!(events[0]["message"]["stop_reason"], Value::Null);
    assert_eq!(events[4]["delta"]["stop_reason"], "end_turn");
}

#[test]
fn a_gemini_stream_is_events_only_where_they_were_asked_for() {
    let of = |query| {
        let call = Call::parse(Dialect::Gemini, "/v1beta/models/g:streamGenerateContent", b"{}").unwrap();
        Wanted::of(&call, query)
    };
    assert!(of(None).is_list && of(Some("alt=json")).is_list && !of(Some("key=1&alt=sse")).is_list);
    let list = read(of(None));
    assert_eq!(list[0]["candidates"][0]["content"]["parts"][0]["text"], TEXT);
    assert!(list[0]["sprag"].is_object());
    assert_eq!(streamed(of(Some("alt=sse"))).len(), 1);
    let call = Call::parse(Dialect::Gemini, "/v1beta/models/g:generateContent", b"{}").unwrap();
    assert!(!Wanted::of(&call, None).is_list);
}

#[test]
fn what_a_call_wants_is_read_off_it() {
    let body = br#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    let call = Call::parse(Dialect::OpenaiChat, "/", body).unwrap();
    let expected = Wanted { dialect: Dialect::OpenaiChat, is_stream: true, with_usage: true, is_list: false };
    assert_eq!(Wanted::of(&call, None), expected);
}

#[test]
fn embeddings_and_other_requests_have_no_assistant() {
    for dialect in [Dialect::OpenaiEmbeddings, Dialect::Opaque] {
        assert_eq!(spoken(wanted(dialect, false)), None);
        assert!(!dialect.has_assistant());
    }
}
