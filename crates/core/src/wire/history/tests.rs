mod growth;

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::wire::ToolCall;

/// Reads a body, with what earlier bodies left to remember.
fn read_body(dialect: Dialect, body: &str, known: &mut HashMap<u64, Mark>) -> History {
    let call = Call::parse(dialect, "/", body.as_bytes()).unwrap();
    let history = read(&call, |raw| known.get(&raw).copied()).unwrap();
    known.extend(history.marks.iter().copied());
    history
}

fn chat(body: &str) -> History {
    read_body(Dialect::OpenaiChat, body, &mut HashMap::new())
}

fn reply(text: &str, calls: &[(&str, &str, &str)]) -> Reply {
    let call = |(id, name, arguments): &(&str, &str, &str)| ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        arguments: (*arguments).into(),
    };
    Reply { text: text.into(), tool_calls: calls.iter().map(call).collect(), ..Reply::default() }
}

proptest! {
    #[test]
    fn an_item_read_quickly_is_the_same(
        members in proptest::collection::vec(
            (
                prop_oneof!["role", "type", "content", "id", "call_id", "parts"],
                prop_oneof![
                    r#""(user|system|developer|assistant|model|tool|message|reasoning|shell_call|shell_call_output)""#,
                    r#"(null|true|7|0\.5|\{"a":1\}|\["b"\]|"\\n"|"\\u0061"|"word")"#,
                ],
            ),
            0..6,
        ),
    ) {
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let raw: &RawValue = serde_json::from_str(&text).unwrap();
        for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
            let Ok((class, hash)) = quickly(raw, dialect) else { continue };
            prop_assert_eq!(Item::read(raw).map(|item| item.class(dialect)), Some(class));
            prop_assert_eq!(hash, if class == Class::Input { canonical_item(raw) } else { 0 });
        }
    }
}

#[test]
fn ordinary_items_are_read_quickly() {
    for (text, class) in [
        (r#"{"role":"user","content":"go"}"#, Class::Input),
        (r#"{"content":[{"type":"text","text":"go"}],"role":"tool","tool_call_id":"c"}"#, Class::Input),
        (r#"{"role":"system","content":"s"}"#, Class::Instructions),
        (r#"{"role":"assistant","content":null}"#, Class::Answer),
        (r#"{"type":"reasoning","id":"r"}"#, Class::Reasoning),
    ] {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        assert_eq!(quickly(raw, Dialect::OpenaiResponses).map(|(class, _)| class), Ok(class), "{text}");
    }
}

#[test]
fn the_next_request_carries_the_chain_of_this_one() {
    let first = chat(r#"{"messages":[{"role":"system","content":"now 10:00"},{"role":"user","content":"go"}]}"#);
    assert!(first.after_answers.is_empty());
    let answer = reply("I look.", &[("call_8J3kd9s0aLqpZ7x", "ls", "{}")]);
    let next = chat(
        r#"{"messages":[{"role":"system","content":"now 10:01"},{"role":"user","content":"go"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"call_8J3kd9s0aLqpZ7x","type":"function","function":{"name":"ls","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"call_8J3kd9s0aLqpZ7x","content":"a.txt"}]}"#,
    );
    assert_eq!(next.after_answers, [first.followed_by(&answer).after]);
    assert_eq!(next.before_answers, [first.end]);
    assert_eq!(next.call_ids, [call_id_hash("call_8J3kd9s0aLqpZ7x").unwrap()]);
}

#[test]
fn answers_without_calls_count_by_their_words() {
    let first = chat(r#"{"messages":[{"role":"user","content":"hi"}]}"#);
    let echo = |text: &str| {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":{text}}},{{"role":"user","content":"more"}}]}}"#
        );
        chat(&body).after_answers[0]
    };
    let expected = first.followed_by(&reply("Hello  there.\n", &[])).after;
    assert_eq!(echo(r#""Hello there.""#), expected);
    assert_eq!(echo(r#"[{"type":"text","text":"Hello"},{"type":"text","text":" there."}]"#), expected);
    assert_ne!(echo(r#""Hello you.""#), expected);
}

#[test]
fn cache_marks_and_blocks_do_not_matter() {
    let read = |body: &str| read_body(Dialect::Anthropic, body, &mut HashMap::new()).end;
    let plain = read(r#"{"messages":[{"role":"user","content":"a b"}]}"#);
    assert_eq!(plain, read(r#"{"messages":[{"content":[{"text":"a b","type":"text"}],"role":"user"}]}"#));
    let marked = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a b","cache_control":{"type":"ephemeral"}}]}]}"#;
    assert_eq!(plain, read(marked));
    assert_ne!(plain, read(r#"{"messages":[{"role":"user","content":"a c"}]}"#));
    let result = |content: &str| {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]}}]}}"#
        );
        read(&body)
    };
    assert_eq!(
        result("\"1 file\""),
        result(r#"[{"type":"text","text":"1 file","cache_control":{"type":"ephemeral"}}]"#)
    );
    assert_ne!(result("\"1 file\""), result("\"2 files\""));
}

#[test]
fn responses_items_form_one_answer() {
    let first =
        read_body(Dialect::OpenaiResponses, r#"{"input":[{"role":"user","content":"go"}]}"#, &mut HashMap::new());
    let answer = reply("Looking.", &[("call_a1a1a1a1a1a1a1a1", "ls", "{}"), ("call_b2b2b2b2b2b2b2b2", "cat", "{}")]);
    let body = r#"{"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]},
        {"type":"function_call","call_id":"call_a1a1a1a1a1a1a1a1","name":"ls","arguments":"{}"},
        {"type":"function_call","call_id":"call_b2b2b2b2b2b2b2b2","name":"cat","arguments":"{}"},
        {"type":"function_call_output","call_id":"call_a1a1a1a1a1a1a1a1","output":"x"}]}"#;
    let next = read_body(Dialect::OpenaiResponses, body, &mut HashMap::new());
    assert_eq!(next.after_answers, [first.followed_by(&answer).after]);
}

#[test]
fn gemini_calls_without_ids_count_by_name_and_arguments() {
    let first =
        read_body(Dialect::Gemini, r#"{"contents":[{"role":"user","parts":[{"text":"go"}]}]}"#, &mut HashMap::new());
    let answer = reply("", &[("", "ls", r#"{"b":1,"a":"x"}"#)]);
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},
        {"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"ls","args":{"a":"x","b":1}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"y"}}}]}]}"#;
    let next = read_body(Dialect::Gemini, body, &mut HashMap::new());
    assert_eq!(next.after_answers, [first.followed_by(&answer).after]);
}

#[test]
fn only_new_items_are_parsed() {
    let mut known = HashMap::new();
    let mut messages = vec![r#"{"role":"user","content":"start"}"#.to_owned()];
    let body = |messages: &[String]| format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    let mut fresh_ends = Vec::new();
    for step in 0..50 {
        let history = read_body(Dialect::OpenaiChat, &body(&messages), &mut known);
        assert!(history.parsed_items <= 2, "step {step} parsed {}", history.parsed_items);
        fresh_ends.push((history.end, read_body(Dialect::OpenaiChat, &body(&messages), &mut HashMap::new()).end));
        messages.push(format!(r#"{{"role":"assistant","content":"answer {step}"}}"#));
        messages.push(format!(r#"{{"role":"user","content":"more {step}"}}"#));
    }
    assert!(fresh_ends.iter().all(|(incremental, whole)| incremental == whole));
}

#[test]
fn a_request_sent_again_still_knows_its_last_answer() {
    let mut known = HashMap::new();
    let body = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"and"}]}"#;
    let first = read_body(Dialect::OpenaiChat, body, &mut known);
    let again = read_body(Dialect::OpenaiChat, body, &mut known);
    assert_eq!(again.parsed_items, 0);
    assert_eq!(
        (again.end, again.after_answers, again.before_answers),
        (first.end, first.after_answers, first.before_answers)
    );
}

#[test]
fn evidence_is_bounded() {
    let mut messages = Vec::new();
    for n in 0..200 {
        messages.push(format!(r#"{{"role":"user","content":"{n}"}}"#));
        messages.push(format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"call_a1a1a1a1a1a1{n:04}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ));
    }
    let history = chat(&format!(r#"{{"messages":[{}]}}"#, messages.join(",")));
    assert_eq!(history.after_answers.len(), RUN_CLUES / 2);
    assert_eq!(history.before_answers.len(), RUN_CLUES / 6);
    assert_eq!(history.call_ids.len(), RUN_CLUES / 6);
    assert_eq!(history.marks.len(), MARK_PLACES);
}

#[test]
fn odd_items_are_hashed_as_they_are() {
    let history = chat(r#"{"messages":["text",5,{"role":7},{"role":"assistant","content":{"odd":1}},null]}"#);
    assert_eq!(history.parsed_items, 5);
}

#[test]
fn a_begun_answer_is_continued_by_the_reply() {
    let begun = chat(r#"{"messages":[{"role":"user","content":"list"},{"role":"assistant","content":"{"}]}"#);
    let next = chat(
        r#"{"messages":[{"role":"user","content":"list"},{"role":"assistant","content":"{\"a\": 1}"},{"role":"user","content":"more"}]}"#,
    );
    assert_eq!(next.after_answers, [begun.followed_by(&reply("\"a\":1}", &[])).after]);
    assert_eq!(next.before_answers, [begun.before().unwrap()]);
    let bare = chat(r#"{"messages":[{"role":"user","content":"list"}]}"#);
    assert_ne!(begun.end, bare.end);
    assert_eq!(begun.before(), bare.before());
}

#[test]
fn an_exchange_stays_when_the_beginning_is_cut_off() {
    let long = "A long enough answer to be told from others, with many words in it.";
    let asked = chat(
        r#"{"messages":[{"role":"user","content":"old"},{"role":"assistant","content":"x"},{"role":"user","content":"why"}]}"#,
    );
    let body = |answer: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"why"}},{{"role":"assistant","content":"{answer}"}},{{"role":"user","content":"and"}}]}}"#
        )
    };
    assert_eq!(chat(&body(long)).exchanges, [asked.followed_by(&reply(long, &[])).exchange.unwrap()]);
    assert_eq!(asked.followed_by(&reply("Yes.", &[])).exchange, None, "said to everybody");
    assert!(chat(&body("Yes.")).exchanges.is_empty());
}

#[test]
fn the_same_words_after_another_answer_are_another_request() {
    let read = |previous: &str| {
        let body = format!(r#"{{"input":"go on","previous_response_id":{previous}}}"#);
        read_body(Dialect::OpenaiResponses, &body, &mut HashMap::new()).end
    };
    assert_ne!(read("\"resp_1\""), read("\"resp_2\""));
    assert_ne!(read("\"resp_1\""), read("null"));
    assert_eq!(read("\"resp_1\""), read("\"resp_1\""));
}

#[test]
fn a_string_is_an_item_of_the_user() {
    let read =
        |input: &str| read_body(Dialect::OpenaiResponses, &format!(r#"{{"input":{input}}}"#), &mut HashMap::new()).end;
    let text = read(r#""go""#);
    assert_eq!(text, read(r#"[{"role":"user","content":"go"}]"#));
    let item = r#"[{"type":"message","id":"msg_1","status":"completed","role":"user","content":[{"type":"input_text","text":"go"}]}]"#;
    assert_eq!(text, read(item));
}

#[test]
fn old_function_calls_are_calls() {
    let first = chat(r#"{"messages":[{"role":"user","content":"go"}]}"#);
    let next = chat(
        r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"function_call":{"name":"ls","arguments":"{}"}},
        {"role":"function","name":"ls","content":"a"}]}"#,
    );
    assert_eq!(next.after_answers, [first.followed_by(&reply("", &[("", "ls", "{}")])).after]);
}
