//! However a text is cut into events, what comes out says the same.

use proptest::prelude::*;
use serde_json::json;

use crate::dlp::scan::Scanner;
use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::wire::Dialect;

/// A way in which a text comes in events, and where it stands in them.
#[derive(Clone, Copy, Debug)]
enum Style {
    Chat,
    Completions,
    Responses,
    Anthropic,
    Gemini,
}

const STYLES: [Style; 5] = [Style::Chat, Style::Completions, Style::Responses, Style::Anthropic, Style::Gemini];

impl Style {
    fn dialect(self) -> Dialect {
        match self {
            Style::Chat => Dialect::OpenaiChat,
            Style::Completions => Dialect::OpenaiCompletions,
            Style::Responses => Dialect::OpenaiResponses,
            Style::Anthropic => Dialect::Anthropic,
            Style::Gemini => Dialect::Gemini,
        }
    }

    fn pointer(self) -> &'static str {
        match self {
            Style::Chat => "/choices/0/delta/content",
            Style::Completions => "/choices/0/text",
            Style::Responses => "/delta",
            Style::Anthropic => "/delta/text",
            Style::Gemini => "/candidates/0/content/parts/0/text",
        }
    }

    fn event(self, number: usize, text: &str, is_ascii: bool) -> String {
        let value = match self {
            Style::Chat => {
                json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
            }
            Style::Completions => json!({"id": "c", "choices": [{"index": 0, "text": text, "finish_reason": null}]}),
            Style::Responses => {
                json!({"type": "response.output_text.delta", "sequence_number": number, "item_id": "m", "delta": text})
            }
            Style::Anthropic => {
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
            }
            Style::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}]}),
        };
        let data = if is_ascii { ascii(&value.to_string()) } else { value.to_string() };
        format!("data: {data}\n\n")
    }

    fn close(self, number: usize, text: &str) -> String {
        match self {
            Style::Chat | Style::Completions => {
                let finish = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
                format!("data: {finish}\n\ndata: [DONE]\n\n")
            }
            Style::Responses => {
                let done = json!({"type": "response.output_text.done", "sequence_number": number, "item_id": "m", "text": text});
                format!("data: {done}\n\n")
            }
            Style::Anthropic => "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n".to_owned(),
            Style::Gemini => "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n".to_owned(),
        }
    }

    fn stream(self, pieces: &[&str]) -> String {
        let mut sse: String = pieces.iter().enumerate().map(|(n, text)| self.event(n, text, n % 3 == 0)).collect();
        sse += &self.close(pieces.len(), &pieces.concat());
        sse
    }
}

fn ascii(json: &str) -> String {
    let mut out = String::new();
    for character in json.chars() {
        let mut units = [0; 2];
        match character.is_ascii() {
            true => out.push(character),
            false => character.encode_utf16(&mut units).iter().for_each(|unit| out += &format!("\\u{unit:04X}")),
        }
    }
    out
}

/// What the whole text becomes: keys hidden, addresses not.
fn redacted(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for found in Scanner::default().scan(text.as_bytes(), 0, true).findings {
        if found.entity == entity("OPENAI_KEY") {
            out = out + &text[at..found.start] + HIDDEN;
            at = found.end;
        }
    }
    out + &text[at..]
}

fn pieces<'t>(text: &'t str, cuts: &[usize]) -> Vec<&'t str> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

#[test]
fn the_example_is_hidden_at_every_cut_in_every_dialect() {
    let text = "My API key is sk-1234567890abcdef";
    for style in STYLES {
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let sse = style.stream(&[&text[..first], &text[first..second], &text[second..]]);
                let out = filtered(inspector(), style.dialect(), &sse);
                let said = joined(&out, style.pointer());
                assert_eq!(said, "My API key is [REDACTED:OPENAI_KEY]", "{style:?} {first} {second}");
            }
        }
    }
}

#[test]
fn no_part_of_a_value_is_out_at_any_time() {
    let text = "keys: sk-1234567890abcdef, sk-abcdefgh12345678; done";
    for style in STYLES {
        for size in 1..=8 {
            let cuts: Vec<usize> = (0..text.len()).step_by(size).collect();
            let mut filter = StreamFilter::new(inspector(), style.dialect());
            let mut sent = String::new();
            for event in events(&style.stream(&pieces(text, &cuts))) {
                let mut out = Vec::new();
                assert_eq!(filter.push(event, &mut out), Flow::Passed);
                sent += std::str::from_utf8(&out.concat()).unwrap();
                let said = joined(&sent, style.pointer());
                assert!(redacted(text).starts_with(&said), "{style:?} {size}: {said}");
                assert!(!said.contains("sk-") && !said.contains("123"), "{style:?} {size}: {said}");
            }
        }
    }
}

#[test]
fn a_stop_lets_out_what_came_before_and_nothing_else() {
    let text = "one two sk-1234567890abcdef three four";
    for style in STYLES {
        for size in 1..=text.len() {
            let cuts: Vec<usize> = (0..text.len()).step_by(size).collect();
            let (steps, mut filter) = steps(strict(), style.dialect(), &style.stream(&pieces(text, &cuts)));
            let out = String::from_utf8(steps.concat().concat()).unwrap();
            assert_eq!(joined(&out, style.pointer()), "one two ", "{style:?} {size}");
            let (mut more, last) = (Vec::new(), style.event(99, "more", false));
            assert_eq!(filter.push(last.into(), &mut more), Flow::Stopped);
            assert_eq!(filter.end(&mut more), Flow::Stopped);
            assert!(more.is_empty());
        }
    }
}

#[test]
fn placeholders_come_back_at_every_cut_in_every_dialect() {
    let text = "write to [EMAIL_1] and [EMAIL_2], [email 1]";
    for style in STYLES {
        for size in 1..=text.len() {
            let cuts: Vec<usize> = (0..text.len()).step_by(size).collect();
            let out = filtered(with_vault(), style.dialect(), &style.stream(&pieces(text, &cuts)));
            let expected = "write to \"mia\"@example.org and [EMAIL_2], \"mia\"@example.org";
            assert_eq!(joined(&out, style.pointer()), expected, "{style:?} {size}");
        }
    }
}

#[test]
fn arguments_get_values_back_with_both_escapes() {
    let call = |text: &str| {
        let call = json!({"index": 0, "function": {"arguments": text}});
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
    };
    let text = json!({"to": "[EMAIL_1]"}).to_string();
    for size in 1..=text.len() {
        let sse: String = text.as_bytes().chunks(size).map(|part| call(std::str::from_utf8(part).unwrap())).collect();
        let out = filtered(with_vault(), Dialect::OpenaiChat, &sse);
        let said = joined(&out, "/choices/0/delta/tool_calls/0/function/arguments");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said, json!({"to": "\"mia\"@example.org"}));
    }
}

#[test]
fn halves_of_a_character_may_come_in_two_events() {
    let event =
        |half: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{half}\"}}}}]}}\n\n");
    let sse = event(r"x\ud83e") + &event(r"\udd80 y ");
    let out = filtered(inspector(), Dialect::OpenaiChat, &sse);
    let texts: Vec<&str> = out.split("\"content\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(texts.concat().to_lowercase(), r"x\ud83e\udd80 y ");
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z ,.\n]{0,12}",
        1 => "[ -~éß漢🦀]{0,8}",
        2 => "sk-[a-z0-9]{10,24}",
        1 => Just("mia@example.org".to_owned()),
        1 => Just("sk-".to_owned()),
        1 => Just("\"\\\t".to_owned()),
    ];
    proptest::collection::vec(part, 0..10).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_cut_of_any_text_gives_what_the_whole_gives(
        text in text(), cuts in proptest::collection::vec(0..200_usize, 0..20), style in 0..STYLES.len(),
    ) {
        let style = STYLES[style];
        let sse = style.stream(&pieces(&text, &cuts));
        let (steps, filter) = steps(inspector(), style.dialect(), &sse);
        for (event, out) in events(&sse).iter().zip(&steps) {
            prop_assert!(!out.is_empty(), "an event is gone: {:?}", event);
        }
        let out = String::from_utf8(steps.concat().concat()).unwrap();
        let expected = redacted(&text);
        prop_assert_eq!(joined(&out, style.pointer()), &*expected, "{:?}", style);
        if let Style::Responses = style {
            prop_assert_eq!(joined(&out, "/text"), &*expected);
            let numbers: Vec<u64> = values(&out).iter().filter_map(|value| value["sequence_number"].as_u64()).collect();
            prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        }
        let found = expected.matches(HIDDEN).count() as u64;
        prop_assert_eq!(filter.sightings().total, found);
    }
}
