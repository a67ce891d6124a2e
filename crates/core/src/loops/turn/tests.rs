use super::*;

const MODEL: &str = "/v1/models/gemini-2.5-flash:generateContent";

fn turn(dialect: Dialect, body: &str, check: impl Fn(Turn<'_>)) {
    check(read_turn(&Call::parse(dialect, MODEL, body.as_bytes()).unwrap(), true));
}

/// One step in each dialect: a call of `read`, its result, and what stands around them.
const STEPS: [(Dialect, &str); 4] = [
    (
        Dialect::OpenaiChat,
        r#"{"messages":[{"role":"system","content":"be good"},{"role":"user","content":"fix it"},
        {"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},
        {"id":"c2","type":"function","function":{"name":"list","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"a b"}]},{"role":"tool","tool_call_id":"c1","content":"line \"one\""}]}"#,
    ),
    (
        Dialect::Anthropic,
        r#"{"messages":[{"role":"user","content":"fix it"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"I look."},
        {"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"c2","name":"list","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a b"}]},
        {"type":"tool_result","tool_use_id":"c1","content":"line \"one\"","cache_control":{"type":"ephemeral"}},
        {"type":"text","text":"<system-reminder>be careful</system-reminder>"}]},{"role":"system","content":"env"}]}"#,
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"input":[{"role":"developer","content":"be good"},{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]},
        {"type":"reasoning","id":"r","summary":[]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
        {"type":"function_call","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"},
        {"type":"function_call","call_id":"c2","name":"list","arguments":"{}"},
        {"type":"function_call_output","call_id":"c2","output":"a b"},
        {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"line \"one\""}]}]}"#,
    ),
    (
        Dialect::Gemini,
        r#"{"contents":[{"role":"user","parts":[{"text":"fix it"}]},
        {"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},
        {"functionCall":{"id":"c1","name":"read","args":{"path":"a"}}},{"functionCall":{"id":"c2","name":"list","args":{}}}]},
        {"role":"user","parts":[{"functionResponse":{"id":"c2","name":"list","response":{"output":"a b"}}},
        {"functionResponse":{"id":"c1","name":"read","response":{"output":"line \"one\""}}}]}]}"#,
    ),
];

#[test]
fn a_turn_is_read_in_every_dialect() {
    for (dialect, body) in STEPS {
        turn(dialect, body, |turn| {
            let said = turn.said.as_ref().unwrap();
            assert_eq!(said.text, "I look.", "{dialect:?}");
            let calls: Vec<_> = said.calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
            assert_eq!(calls, [("c1", "read", r#"{"path":"a"}"#), ("c2", "list", "{}")], "{dialect:?}");
            let results: Vec<_> = turn.results.iter().map(|result| (&*result.call_id, &*result.text)).collect();
            assert_eq!(results, [("c2", "a b"), ("c1", "line \"one\"")], "{dialect:?}");
            assert_eq!(turn.user_text, "", "{dialect:?}");
            assert_eq!(turn.last_user_text.as_deref(), Some("fix it"), "{dialect:?}");
            assert!(!turn.is_transcript && !turn.is_continued);
        });
    }
}

#[test]
fn the_opening_stays_while_marks_move_and_the_history_grows() {
    let opening = |messages: &str| {
        let body = format!(r#"{{"messages":[{messages}]}}"#);
        read_turn(&Call::parse(Dialect::Anthropic, "", body.as_bytes()).unwrap(), false).opening
    };
    let first = opening(r#"{"role":"user","content":"fix it"}"#);
    for later in [
        r#"{"role":"user","content":[{"type":"text","text":"fix it","cache_control":{"type":"ephemeral"}}]}"#,
        r#"{"role":"system","content":"it is noon"},{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"fix it"}]}"#,
        r#"{"role":"user","content":"fix it"},{"role":"assistant","content":"done"},{"role":"user","content":"thanks"}"#,
    ] {
        assert_eq!(opening(later), first, "{later}");
    }
    assert_ne!(opening(r#"{"role":"user","content":"fix that"}"#), first);
    let long = |end: &str| opening(&format!(r#"{{"role":"user","content":"{}{end}"}}"#, "x".repeat(OPENING_BYTES)));
    assert_eq!(long("then"), long("then and now"), "of a text that grows only the beginning counts");
}

#[test]
fn marks_of_the_dialects_are_kept() {
    let body = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"image","source":{"data":"AAAA"}}]},
        {"type":"text","text":"stop"}]}],"thread":{"type":"continue","previous_message_id":"m"}}"#;
    turn(Dialect::Anthropic, body, |turn| {
        assert!(turn.results[0].is_error && turn.results[0].text.starts_with("[image "));
        assert_eq!(turn.user_text, "stop");
        assert!(turn.is_continued);
    });
    let old = r#"{"messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{"}},
        {"role":"function","name":"f","content":"42"}]}"#;
    turn(Dialect::OpenaiChat, old, |turn| {
        assert_eq!(turn.said.as_ref().map(|said| said.calls[0].arguments.to_string()), Some("{".to_owned()));
        assert_eq!((&*turn.results[0].name, &*turn.results[0].text), ("f", "42"));
    });
    let custom = r#"{"input":[{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin"},
        {"type":"custom_tool_call_output","call_id":"c","output":"ok"}],"previous_response_id":"r"}"#;
    turn(Dialect::OpenaiResponses, custom, |turn| {
        assert_eq!(turn.said.as_ref().map(|said| said.calls[0].arguments.to_string()), Some("*** Begin".to_owned()));
        assert_eq!((&*turn.results[0].call_id, &*turn.results[0].text), ("c", "ok"));
    });
}

#[test]
fn a_prompt_is_a_transcript_and_a_begun_answer_is_not_over() {
    turn(Dialect::OpenaiCompletions, r#"{"prompt":"Question: x\nThought:"}"#, |turn| {
        assert!(turn.is_transcript && turn.said.is_none());
        assert_eq!(turn.user_text, "Question: x\nThought:");
    });
    turn(Dialect::OpenaiResponses, r#"{"input":"hello"}"#, |turn| {
        assert!(!turn.is_transcript);
        assert_eq!(turn.last_user_text.as_deref(), Some("hello"));
    });
    let begun = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},
        {"role":"user","content":"write JSON"},{"role":"assistant","content":"{"}]}"#;
    turn(Dialect::OpenaiChat, begun, |turn| {
        assert_eq!(turn.said.as_ref().map(|said| said.text.to_string()), Some("a".to_owned()));
        assert_eq!(turn.user_text, "write JSON");
    });
}

#[test]
fn what_is_no_conversation_gives_an_empty_turn() {
    for body in
        [r#"{"messages":[1,"x",null,{"role":5,"content":{}}]}"#, r#"{"messages":[]}"#, r#"{"messages":{}}"#, "{}"]
    {
        turn(Dialect::OpenaiChat, body, |turn| {
            assert!(turn.said.is_none() && turn.results.is_empty(), "{body}");
        });
    }
}

#[test]
fn reading_does_not_follow_the_length_of_the_history() {
    let parsed = |steps: usize| {
        let step = r#",{"role":"assistant","content":"look","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}"#;
        let body = format!(r#"{{"messages":[{{"role":"user","content":"go"}}{}]}}"#, step.repeat(steps));
        read_turn(&Call::parse(Dialect::OpenaiChat, "", body.as_bytes()).unwrap(), false).parsed_items
    };
    assert_eq!(parsed(500), parsed(5));
    assert!(parsed(500) <= 2 + 2 + 1);
}

#[test]
fn an_opening_is_the_hash_of_what_is_said_first_in_a_row() {
    let long = "a".repeat(OPENING_BYTES + 1);
    let (short, half) = ("fix it", &long[..OPENING_BYTES / 2]);
    for (said, counted) in [
        (vec![], vec![]),
        (vec![short], vec![short]),
        (vec![half, short, half], vec![half, short, half]),
        (vec![half, &long, short], vec![half, &long[1..]]),
    ] {
        let messages: Vec<String> =
            said.iter().map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#)).collect();
        let body = format!(r#"{{"messages":[{{"role":"system","content":"s"}},{}]}}"#, messages.join(","));
        let body = body.replace(",]", "]");
        let mut expected = xxhash_rust::xxh3::Xxh3::new();
        counted.iter().for_each(|text| expected.update(text.as_bytes()));
        turn(Dialect::OpenaiChat, &body, |turn| assert_eq!(turn.opening, expected.digest(), "{}", said.len()));
    }
}
