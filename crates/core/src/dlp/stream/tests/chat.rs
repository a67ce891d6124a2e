//! Chunks of chat completions.

use serde_json::json;

use crate::dlp::stream::testing::*;
use crate::wire::Dialect::{OpenaiChat, OpenaiCompletions};

fn chunk(choices: serde_json::Value) -> String {
    format!("data: {}\n\n", json!({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choices}))
}

fn delta(delta: serde_json::Value) -> String {
    chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]))
}

fn finish(reason: &str) -> String {
    chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]))
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn every_field_that_goes_on_is_followed() {
    let fields = [
        (json!({"content": "@"}), "/choices/0/delta/content"),
        (json!({"refusal": "@"}), "/choices/0/delta/refusal"),
        (json!({"content": null, "reasoning_content": "@"}), "/choices/0/delta/reasoning_content"),
        (json!({"reasoning": "@"}), "/choices/0/delta/reasoning"),
        (json!({"thinking": "@"}), "/choices/0/delta/thinking"),
        (json!({"reasoning_text": "@"}), "/choices/0/delta/reasoning_text"),
        (json!({"something_new": "@"}), "/choices/0/delta/something_new"),
        (
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "@", "signature": null, "index": 0}]}),
            "/choices/0/delta/reasoning_details/0/text",
        ),
        (
            json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "@", "format": "f"}]}),
            "/choices/0/delta/reasoning_details/0/summary",
        ),
        (json!({"content": [{"type": "thinking", "thinking": "@"}]}), "/choices/0/delta/content/0/thinking"),
        (json!({"audio": {"transcript": "@"}}), "/choices/0/delta/audio/transcript"),
        (json!({"content": [{"type": "text", "text": "@"}]}), "/choices/0/delta/content/0/text"),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "@"}]}]}),
            "/choices/0/delta/content/0/thinking/0/text",
        ),
        (json!({"function_call": {"arguments": "@"}}), "/choices/0/delta/function_call/arguments"),
        (
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "@"}}]}),
            "/choices/0/delta/tool_calls/0/function/arguments",
        ),
        (json!({"tool_calls": [{"index": 0, "custom": {"input": "@"}}]}), "/choices/0/delta/tool_calls/0/custom/input"),
    ];
    for (shape, pointer) in fields {
        for (end, name) in [(finish("stop") + DONE, "finish"), (DONE.to_owned(), "done"), (String::new(), "cut")] {
            let of = |text: &str| delta(serde_json::from_str(&shape.to_string().replace('@', text)).unwrap());
            let sse = [of("My key is sk-12345"), of("67890"), of("abcdef"), end].concat();
            let out = filtered(inspector(), OpenaiChat, &sse);
            assert_eq!(joined(&out, pointer), format!("My key is {HIDDEN}"), "{pointer} {name}");
        }
    }
}

#[test]
fn legacy_completions_are_followed() {
    let text = |text: &str| chunk(json!([{"text": text, "index": 0, "logprobs": null, "finish_reason": null}]));
    let sse = [text("a sk-12345"), text("67890abcdef"), DONE.to_owned()].concat();
    assert_eq!(joined(&filtered(inspector(), OpenaiCompletions, &sse), "/choices/0/text"), format!("a {HIDDEN}"));
}

#[test]
fn text_flows_and_the_rest_comes_before_the_finish() {
    let sse = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "the quick bro"})),
        delta(json!({"content": "wn fo"})),
        delta(json!({"content": "x"})),
        finish("stop"),
        DONE.to_owned(),
    ]
    .concat();
    let (steps, _) = steps(inspector(), OpenaiChat, &sse);
    let texts: Vec<Vec<String>> = steps
        .iter()
        .map(|out| {
            out.iter().map(|event| joined(std::str::from_utf8(event).unwrap(), "/choices/0/delta/content")).collect()
        })
        .collect();
    assert_eq!(texts[..4], [vec![""], vec!["the quick "], vec!["brown "], vec![""]]);
    assert_eq!(texts[4], ["fox", ""]);
    let event = std::str::from_utf8(&steps[4][0]).unwrap();
    assert_eq!(
        event,
        "data: {\"id\":\"c1\",\"model\":\"m\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"finish_reason\":null,\
         \"index\":0,\"delta\":{\"content\":\"fox\"}}]}\n\n"
    );
    let input = events(&sse);
    for untouched in [0, 4, 5] {
        let last = steps[untouched].last().unwrap();
        assert_eq!(*last, input[untouched]);
    }
}

#[test]
fn interleaved_choices_and_calls_have_each_their_own_text() {
    let piece = |choice: u64, text: &str| chunk(json!([{"index": choice, "delta": {"content": text}}]));
    let both =
        |a: &str, b: &str| chunk(json!([{"index": 0, "delta": {"content": a}}, {"index": 1, "delta": {"content": b}}]));
    let sse = [
        piece(0, "a sk-123"),
        piece(1, "b sk-1"),
        piece(0, "4567890"),
        both("abcdef", "234567890abcdef."),
        DONE.into(),
    ];
    let out = filtered(inspector(), OpenaiChat, &sse.concat());
    let mut texts = [String::new(), String::new()];
    for value in values(&out) {
        for choice in value["choices"].as_array().unwrap() {
            let index = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
            texts[index].push_str(choice["delta"]["content"].as_str().unwrap());
        }
    }
    assert_eq!(texts, [format!("a {HIDDEN}"), format!("b {HIDDEN}.")]);

    let call =
        |index: u64, text: &str| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}));
    let sse = [
        call(0, r#"{"a":"sk-123"#),
        call(1, r#"{"b":"sk-1234"#),
        call(0, r#"4567890abcdef"}"#),
        call(1, r#"567890abcdef"}"#),
        finish("tool_calls"),
    ];
    let out = filtered(inspector(), OpenaiChat, &sse.concat());
    let mut texts = [String::new(), String::new()];
    for value in values(&out) {
        for call in value["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            texts[index].push_str(call["function"]["arguments"].as_str().unwrap());
        }
    }
    assert_eq!(texts, [format!(r#"{{"a":"{HIDDEN}"}}"#), format!(r#"{{"b":"{HIDDEN}"}}"#)]);
}

#[test]
fn words_end_where_a_call_or_other_words_begin() {
    let call = delta(json!({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}]}));
    let answer = delta(json!({"content": "yes "}));
    for (first, next, pointer) in [
        (json!({"content": "one two"}), call, "/choices/0/delta/content"),
        (json!({"reasoning_content": "one two"}), answer, "/choices/0/delta/reasoning_content"),
    ] {
        let (steps, _) = steps(inspector(), OpenaiChat, &(delta(first) + &next));
        assert_eq!(steps[1].len(), 2, "{pointer}");
        assert_eq!(joined(std::str::from_utf8(&steps[1][0]).unwrap(), pointer), "two");
        assert_eq!(steps[1][1], next.as_bytes());
    }
}

#[test]
fn calls_without_numbers_or_all_with_the_same_are_told_apart() {
    let named = |index: Option<u64>, id: &str, text: &str| {
        let mut call = json!({"id": id, "type": "function", "function": {"name": "f", "arguments": text}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        delta(json!({"tool_calls": [call]}))
    };
    let more = |text: &str| delta(json!({"tool_calls": [{"function": {"arguments": text}}]}));
    for index in [None, Some(0)] {
        let sse = [
            named(index, "t1", r#"{"a":"sk-12345"#),
            named(index, "t2", r#"{"b":"67890abcdef"}"#),
            finish("tool_calls"),
        ];
        let out = filtered(inspector(), OpenaiChat, &sse.concat());
        let pointer = "/choices/0/delta/tool_calls/0/function/arguments";
        assert_eq!(joined(&out, pointer), r#"{"a":"sk-12345{"b":"67890abcdef"}"#, "{index:?}");
        assert_eq!(values(&out)[1]["choices"][0]["delta"]["tool_calls"][0].get("id"), None, "joined to the first");
    }
    let sse = [named(None, "t1", r#"{"a":"sk-12345"#), more(r#"67890abcdef"}"#)].concat();
    let out = filtered(inspector(), OpenaiChat, &sse);
    assert_eq!(joined(&out, "/choices/0/delta/tool_calls/0/function/arguments"), format!(r#"{{"a":"{HIDDEN}"}}"#));
}

#[test]
fn usage_and_errors_do_not_overtake_text() {
    let usage = chunk(json!([])).replace("\"choices\":[]", "\"choices\":[],\"usage\":{\"total_tokens\":1}");
    let error = "data: {\"error\":{\"message\":\"bad key sk-1234567890abcdef\",\"code\":\"x\"}}\n\n".to_owned();
    for last in [usage, error] {
        let (steps, _) = steps(inspector(), OpenaiChat, &(delta(json!({"content": "on"})) + &last));
        assert_eq!(steps[1].len(), 2);
        assert_eq!(joined(std::str::from_utf8(&steps[1][0]).unwrap(), "/choices/0/delta/content"), "on");
        assert_eq!(std::str::from_utf8(&steps[1][1]).unwrap(), last.replace(KEY, HIDDEN));
    }
}

#[test]
fn token_probabilities_do_not_spell_what_was_hidden() {
    let event = |text: &str| {
        chunk(
            json!([{"index": 0, "delta": {"content": text}, "logprobs": {"content": [{"token": text, "logprob": -1}]}}]),
        )
    };
    let out = filtered(
        inspector(),
        OpenaiChat,
        &[event("a "), event("sk-12345"), event("67890abcdef"), event(" ok ")].concat(),
    );
    let spelled: Vec<bool> = values(&out).iter().map(|value| value["choices"][0]["logprobs"].is_object()).collect();
    assert_eq!(spelled, [true, false, false, false]);
    assert!(!out.contains("12345") && !out.contains("abcdef"));
}

#[test]
fn ids_roles_and_pictures_are_left_alone() {
    let picture = format!("data:image/png;base64,{}", "c2stMTIzNDU2Nzg5MGFiY2RlZg".repeat(20));
    let sse = delta(json!({"role": KEY, "images": [{"type": "image_url", "image_url": {"url": picture}}],
        "tool_calls": [{"index": 0, "id": KEY, "type": KEY, "function": {"name": KEY, "arguments": ""}}],
        "reasoning_details": [{"text": KEY, "signature": "s"}]}));
    let (steps, filter) = steps(inspector(), OpenaiChat, &sse);
    assert_eq!(steps[0], [sse.as_bytes()]);
    assert_eq!(filter.sightings().total, 0);
}

#[test]
fn arguments_that_come_as_an_object_are_looked_at() {
    let sse =
        delta(json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {"id": KEY, "n": [1]}}}]}));
    assert_eq!(filtered(inspector(), OpenaiChat, &sse), sse.replace(KEY, HIDDEN));
}

#[test]
fn who_says_in_every_event_that_it_is_over_is_not_believed() {
    let piece =
        |text: &str, reason: &str| chunk(json!([{"index": 0, "delta": {"content": text}, "finish_reason": reason}]));
    for (reason, before) in [("", "a "), ("stop", "a b")] {
        let sse =
            [piece("a b", reason), piece(" sk-12345", reason), piece("67890abcdef", reason), DONE.to_owned()].concat();
        let (steps, _) = steps(inspector(), OpenaiChat, &sse);
        let said = |event: &[u8]| joined(std::str::from_utf8(event).unwrap(), "/choices/0/delta/content");
        assert_eq!(said(&steps[0][0]), before, "{reason}");
        assert_eq!(said(&steps.concat().concat()), format!("a b {HIDDEN}"), "{reason}");
    }
}

#[test]
fn reasoning_that_is_signed_or_sealed_is_left_alone() {
    let piece = |index: u64, text: &str| json!({"type": "reasoning.text", "text": text, "index": index});
    let signed = json!({"type": "reasoning.text", "text": KEY, "signature": KEY, "index": 0});
    let sealed = json!({"type": "reasoning.encrypted", "data": KEY, "index": 1});
    let of = |details: &[serde_json::Value]| delta(json!({"reasoning_details": details}));
    let sse = [
        of(&[piece(0, "a sk-123"), piece(1, "b sk-1")]),
        of(&[piece(1, "234567890abcdef")]),
        of(&[piece(0, "45 c")]),
        of(&[signed, sealed]),
    ];
    let (steps, _) = steps(inspector(), OpenaiChat, &sse.concat());
    // What is held back comes before the signature.
    assert_eq!(steps[3].len(), 2);
    assert_eq!(
        values(std::str::from_utf8(&steps[3][0]).unwrap())[0]["choices"][0]["delta"],
        json!({"reasoning_details": [piece(0, "c")]})
    );
    assert_eq!(steps[3][1], sse[3].as_bytes());
    let mut texts = [String::new(), String::new()];
    let unsigned = steps.concat().concat();
    let unsigned = std::str::from_utf8(&unsigned).unwrap().replace(&sse[3], "");
    for value in values(&unsigned) {
        for detail in value["choices"][0]["delta"]["reasoning_details"].as_array().unwrap() {
            let index = usize::try_from(detail["index"].as_u64().unwrap()).unwrap();
            texts[index].push_str(detail["text"].as_str().unwrap());
        }
    }
    assert_eq!(texts, ["a sk-12345 c".to_owned(), format!("b {HIDDEN}")]);
}

#[test]
fn words_of_a_delta_that_clients_do_not_join_are_not_divided() {
    let sse =
        delta(json!({"role": "assistant", "channel": "analysis", "phase": "final", "reasoning_opaque": "b3BhcXVl"}));
    let (steps, _) = steps(inspector(), OpenaiChat, &sse);
    assert_eq!(steps, [vec![sse], vec![]]);
    let sse = delta(json!({"channel": KEY}));
    assert_eq!(filtered(inspector(), OpenaiChat, &sse), sse.replace(KEY, HIDDEN));
}

#[test]
fn reasoning_that_will_be_signed_is_left_alone() {
    let text = json!({"type": "reasoning.text", "text": KEY, "format": "anthropic-claude-v1", "index": 0});
    let signature = json!({"type": "reasoning.text", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0});
    let sse = [text, signature].map(|detail| delta(json!({"reasoning_details": [detail]})));
    let (steps, _) = steps(inspector(), OpenaiChat, &sse.concat());
    assert_eq!(steps.concat().concat(), sse.concat().as_bytes());
}
