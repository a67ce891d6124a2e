use proptest::prelude::*;

use super::*;

const ALL: [Dialect; 7] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::OpenaiResponses,
    Dialect::OpenaiEmbeddings,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Opaque,
];

fn event(tap: &mut Tap, event: &str) -> Passing {
    tap.event(event.as_bytes())
}

#[test]
fn what_cannot_be_read_passes() {
    let odd = [": comment\n\n", "\n", "data: {\"choices\":\n\n", "data: 7\n\n", "data: [1]\n\n", "event: error\n\n"];
    for dialect in ALL {
        let mut tap = Tap::new(dialect);
        for odd in odd {
            assert_eq!(event(&mut tap, odd), Passing::Forward, "{dialect:?} {odd:?}");
        }
        tap.json(b"<html>bad gateway</html>");
        tap.json(b"");
        assert_eq!(tap.into_reply(), Reply::default(), "{dialect:?}");
    }
}

/// Events that differ in one text only are not parsed, and say what they say.
#[test]
fn events_like_the_one_before_say_the_same_as_if_they_were_parsed() {
    let pieces: [&[u8]; 15] = [
        b"one ",
        b"two",
        b"",
        b" \\n",
        b"\\\"so\\\"",
        b"\\ud83d\\ude00",
        b"\\ud83d",
        b"\\x",
        b"gr\xc3\xbc\xc3\x9fe",
        b"\xff",
        b"\t",
        b"a\",\"b\":\"c",
        b"a\",\"finish_reason\":\"stop",
        b"end",
        b"after",
    ];
    let forms = [
        (Dialect::OpenaiChat, r#"{"id":"c","model":"m","choices":[{"index":1,"delta":{"content":"@"}}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":null,"reasoning_content":"@"}}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":"@","reasoning":"so"}}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":"@","refusal":"no"}}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"prompt_tokens":1}}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":"@"},"finish_reason":"stop"}]}"#),
        (Dialect::OpenaiCompletions, r#"{"choices":[{"text":"@"}]}"#),
        (Dialect::Anthropic, r#"{"type":"content_block_delta","index":0,"delta":{"text":"@"}}"#),
        (Dialect::Anthropic, r#"{"type":"content_block_delta","index":0,"delta":{"thinking":"@"}}"#),
        (Dialect::Anthropic, r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"@"}}"#),
    ];
    for (dialect, form) in forms {
        let (mut tap, mut forgetful) = (Tap::new(dialect), Tap::new(dialect));
        let call =
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n"}}"#;
        let (before, behind) = form.split_once('@').unwrap();
        let events = pieces.map(|piece| [b"data: ", before.as_bytes(), piece, behind.as_bytes(), b"\n\n"].concat());
        let opening = [format!("data: {call}\n\n").into_bytes()];
        for event in opening.iter().chain(&events) {
            forgetful.alike = None;
            assert_eq!(tap.event(event), forgetful.event(event), "{form}");
        }
        let remembers = !["usage", "stop", "refusal", "\"reasoning\"", "\"choices\":[{\"text"]
            .iter()
            .any(|other| form.contains(other));
        assert_eq!(tap.alike.is_some(), remembers, "{form}");
        assert_eq!(tap.into_reply(), forgetful.into_reply(), "{form}");
    }
}

#[test]
fn an_opaque_answer_is_not_read() {
    let mut tap = Tap::new(Dialect::Opaque);
    tap.json(br#"{"id":"1","error":"x","usage":{"prompt_tokens":1}}"#);
    assert_eq!(event(&mut tap, "data: [DONE]\n\n"), Passing::Forward);
    assert_eq!(tap.into_reply(), Reply::default());
}

#[test]
fn sequence_numbers_of_a_responses_stream_are_remembered() {
    let mut tap = Tap::new(Dialect::OpenaiResponses);
    assert_eq!(tap.sequence_number(), None);
    event(&mut tap, "data: {\"type\":\"response.created\",\"sequence_number\":0}\n\n");
    event(&mut tap, "data: {\"type\":\"response.new_kind\",\"sequence_number\":7}\n\n");
    event(&mut tap, "data: {\"type\":\"keepalive\"}\n\n");
    assert_eq!(tap.sequence_number(), Some(7));
    assert_eq!(Tap::new(Dialect::OpenaiChat).sequence_number(), None);
}

#[test]
fn the_name_of_an_event_stands_in_for_its_type() {
    let mut tap = Tap::new(Dialect::Anthropic);
    event(&mut tap, "event: message_start\ndata: {\"message\":{\"id\":\"msg_1\"}}\n\n");
    assert_eq!(tap.reply().id.as_deref(), Some("msg_1"));
    assert_eq!(event(&mut tap, "event: message_stop\ndata: {}\n\n"), Passing::Last);
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
        let mut tap = Tap::new(dialect);
        event(&mut tap, "event: error\ndata: {\"type\":\"server_error\",\"message\":\"x\"}\n\n");
        assert!(tap.reply().error.is_some(), "{dialect:?}");
    }
}

#[test]
fn half_a_surrogate_pair_does_not_lose_the_usage() {
    let mut tap = Tap::new(Dialect::OpenaiChat);
    tap.json(br#"{"id":"1","choices":[{"message":{"content":"a\ud83d"}}],"usage":{"prompt_tokens":5}}"#);
    assert!(tap.reply().text.starts_with('a'));
    assert_eq!(tap.reply().usage.map(|usage| usage.input), Some(5));
}

#[test]
fn bytes_that_are_not_utf8_do_not_lose_the_usage() {
    let mut tap = Tap::new(Dialect::Gemini);
    tap.json(b"\xEF\xBB\xBF{\"x\":\"\xFF\",\"usageMetadata\":{\"promptTokenCount\":5}}");
    assert_eq!(tap.reply().usage.map(|usage| usage.input), Some(5));
}

#[test]
fn a_body_at_the_limit_is_read_and_one_past_it_is_not() {
    for (size, is_read) in [(limits::JSON_REPLY_BYTES, true), (limits::JSON_REPLY_BYTES + 1, false)] {
        let mut body = br#"{"id":"1"}"#.to_vec();
        body.resize(size, b' ');
        let mut tap = Tap::new(Dialect::OpenaiChat);
        tap.json(&body);
        assert_eq!(tap.reply().complete, is_read);
    }
}

proptest! {
    /// Any JSON at all, made of the names that the dialects use.
    #[test]
    fn odd_json_never_panics_and_keeps_usage_sound(json in any_json()) {
        for dialect in ALL {
            let mut tap = Tap::new(dialect);
            tap.json(json.as_bytes());
            event(&mut tap, &format!("data: {json}\n\n"));
            if let Some(usage) = tap.into_reply().usage {
                prop_assert!(usage.reasoning <= usage.output && usage.audio_output <= usage.output);
                prop_assert!(usage.audio_input <= usage.input);
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = String> {
    const NAMES: [&str; 40] = [
        "choices",
        "delta",
        "message",
        "content",
        "tool_calls",
        "function",
        "index",
        "id",
        "name",
        "arguments",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "cached_tokens",
        "reasoning_tokens",
        "audio_tokens",
        "finish_reason",
        "error",
        "type",
        "response",
        "output",
        "item",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "usageMetadata",
        "promptTokenCount",
        "text",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "content_block",
        "sequence_number",
    ];
    const WORDS: [&str; 8] = [
        "response.completed",
        "response.output_item.done",
        "function_call",
        "content_block_start",
        "content_block_delta",
        "message_start",
        "message_delta",
        "tool_use",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<u64>().prop_map(|number| number.to_string()),
        (0u64..50).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        prop::sample::select(&WORDS[..]).prop_map(|word| format!("\"{word}\"")),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let entry = inner.clone();
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), entry, 0..6).prop_map(|entries| {
                let entries: Vec<String> = entries.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}
