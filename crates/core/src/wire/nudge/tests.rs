use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::outgoing;

const NOTE: &str = "Same \"call\" again.\nTry another.";
/// The note as it stands inside a JSON string.
const QUOTED: &str = r#"Same \"call\" again.\nTry another."#;

fn nudged(dialect: Dialect, body: &str) -> Option<String> {
    let call = Call::parse(dialect, "/", body.as_bytes()).unwrap();
    nudge(&call, body.as_bytes(), NOTE).map(|body| String::from_utf8(body).unwrap())
}

/// `body` has a `^` where the note is expected; `mark` is what then stands there.
fn check(dialect: Dialect, body: &str, mark: &str) {
    let expected = body.replace('^', &mark.replace("NOTE", QUOTED));
    let found = nudged(dialect, &body.replace('^', "")).unwrap_or_else(|| panic!("no place in {body}"));
    assert_eq!(found, expected);
    serde_json::from_str::<Value>(&found).unwrap();
}

#[test]
fn chat_takes_it_behind_the_last_result_or_text() {
    let cases = [
        (r#"{"messages":[{"role":"user","content":"hi^"}]}"#, r"\n\nNOTE"),
        (r#"{"messages" : [ {"content":"a\"b^" , "role":"tool"} ] , "x":1}"#, r"\n\nNOTE"),
        (
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"tool","content":"c^"}]}"#,
            r"\n\nNOTE",
        ),
        (r#"{"messages":[{"role":"user","content":"a^"},{"role":"system","content":"s"}]}"#, r"\n\nNOTE"),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}^]}]}"#,
            r#",{"type":"text","text":"NOTE"}"#,
        ),
        (r#"{"messages":[{"role":"tool","content":[ ^]}]}"#, r#"{"type":"text","text":"NOTE"}"#),
    ];
    for (body, mark) in cases {
        check(Dialect::OpenaiChat, body, mark);
    }
}

#[test]
fn anthropic_takes_text_after_the_results() {
    let mark = r#",{"type":"text","text":"NOTE"}"#;
    let body = r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}^]}]}"#;
    check(Dialect::Anthropic, body, mark);
    check(Dialect::Anthropic, r#"{"messages":[{"role":"user","content":"a^"}]}"#, r"\n\nNOTE");
    let body = r#"{"messages":[{"role":"user","content":"a^"},{"role":"assistant","content":"{"}]}"#;
    check(Dialect::Anthropic, body, r"\n\nNOTE");
}

#[test]
fn responses_takes_it_in_an_output_or_a_message() {
    let cases = [
        (r#"{"input":"a^"}"#, r"\n\nNOTE"),
        (r#"{"input":[{"role":"user","content":"a^"}]}"#, r"\n\nNOTE"),
        (
            r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}^]}]}"#,
            r#",{"type":"input_text","text":"NOTE"}"#,
        ),
        (
            r#"{"input":[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c","output":"x^"}]}"#,
            r"\n\nNOTE",
        ),
        (
            r#"{"input":[{"type":"custom_tool_call_output","output":[{"type":"input_text","text":"a"}^]}]}"#,
            r#",{"type":"input_text","text":"NOTE"}"#,
        ),
        (r#"{"input":[{"role":"user","content":"a^"},{"type":"reasoning","content":[]}]}"#, r"\n\nNOTE"),
    ];
    for (body, mark) in cases {
        check(Dialect::OpenaiResponses, body, mark);
    }
}

#[test]
fn gemini_takes_it_as_a_part_or_in_the_last_function_response() {
    let cases = [
        (r#"{"contents":[{"role":"user","parts":[{"text":"a"}^]}]}"#, r#",{"text":"NOTE"}"#),
        (r#"{"contents":[{"parts":[{"text":"a"}^]},{"role":"model","parts":[{"text":"b"}]}]}"#, r#",{"text":"NOTE"}"#),
        (
            r#"{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"^}}}]}]}"#,
            r#","sprag_note":"NOTE""#,
        ),
        (
            r#"{"contents":[{"role":"function","parts":[{"function_response":{"name":"f","response":{^}}}]}]}"#,
            r#""sprag_note":"NOTE""#,
        ),
    ];
    for (body, mark) in cases {
        check(Dialect::Gemini, body, mark);
    }
}

#[test]
fn completions_take_it_behind_the_prompt() {
    check(Dialect::OpenaiCompletions, r#"{"prompt":"a^"}"#, r"\n\nNOTE");
    check(Dialect::OpenaiCompletions, r#"{"prompt":["a","b^"]}"#, r"\n\nNOTE");
}

#[test]
fn where_there_is_no_place_nothing_is_done() {
    let cases = [
        (Dialect::OpenaiEmbeddings, r#"{"input":"a"}"#),
        (Dialect::OpenaiCompletions, r#"{"prompt":[1,2]}"#),
        (Dialect::OpenaiChat, r#"{"messages":[]}"#),
        (Dialect::OpenaiChat, r#"{"messages":[{"role":"assistant","content":"a"}]}"#),
        (Dialect::OpenaiChat, r#"{"messages":[{"role":"user","content":null}]}"#),
        (Dialect::OpenaiChat, r#"{"messages":[{"role":"user","content":"a","content":"b"}]}"#),
        (Dialect::Gemini, r#"{"contents":[{"parts":[{"functionResponse":{"name":"f"}}]}]}"#),
        (Dialect::OpenaiResponses, r#"{"input":[{"type":"computer_call_output","output":{}}]}"#),
    ];
    for (dialect, body) in cases {
        assert_eq!(nudged(dialect, body), None, "{body}");
    }
}

#[test]
fn it_goes_together_with_the_other_changes() {
    let body = r#"{"sprag_run_id":"r","stream":true,"messages":[{"role":"user","content":"a"}],"sprag_agent":"b"}"#;
    let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
    let out = outgoing(&call, body.as_bytes(), true, Some("n"), Vec::new()).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"stream_options":{"include_usage":true},"stream":true,"messages":[{"role":"user","content":"a\n\nn"}]}"#
    );
    let body = r#"{"messages":[{"role":"user","content":"a"}],"stream_options":null,"sprag_agent":"b"}"#;
    let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
    let out = outgoing(&call, body.as_bytes(), true, Some("n"), Vec::new()).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"messages":[{"role":"user","content":"a\n\nn"}],"stream_options":{"include_usage":true}}"#
    );
}

proptest! {
    #[test]
    fn the_rest_keeps_its_bytes(
        texts in proptest::collection::vec(".*", 1..5),
        note in ".*",
        as_parts in any::<bool>(),
        is_pretty in any::<bool>(),
        which in 0usize..4,
    ) {
        let part = |text: &String| if as_parts { json!([{"type": "text", "text": text}]) } else { json!(text) };
        let (dialect, body) = match which {
            0 => (Dialect::OpenaiChat, json!({"messages": texts.iter().map(|t| json!({"role": "tool", "content": part(t)})).collect::<Vec<_>>()})),
            1 => (Dialect::Anthropic, json!({"messages": texts.iter().map(|t| json!({"role": "user", "content": part(t)})).collect::<Vec<_>>(), "z": [1]})),
            2 => (Dialect::OpenaiResponses, json!({"input": texts.iter().map(|t| json!({"type": "function_call_output", "output": part(t)})).collect::<Vec<_>>()})),
            _ => (Dialect::Gemini, json!({"contents": texts.iter().map(|t| json!({"role": "user", "parts": [{"text": t}]})).collect::<Vec<_>>()})),
        };
        let before = if is_pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
        let call = Call::parse(dialect, "/", before.as_bytes()).unwrap();
        let after = String::from_utf8(nudge(&call, before.as_bytes(), &note).unwrap()).unwrap();
        let read: Value = serde_json::from_str(&after).unwrap();
        let added = after.len() - before.len();
        let at = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        // One insertion: what stands before it and behind it is what stood there.
        prop_assert!((0..=at).any(|at| before.as_bytes()[..at] == after.as_bytes()[..at] && before.as_bytes()[at..] == after.as_bytes()[at + added..]));
        let quoted = Value::from(note.as_str()).to_string();
        prop_assert!(read.to_string().contains(&quoted[1..quoted.len() - 1]));
    }
}
