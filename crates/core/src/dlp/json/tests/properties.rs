//! Any JSON with anything planted anywhere, written with any escapes: what is parsed from the result is what was parsed
//! before, but for the values.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::dlp::redact_text;

/// Texts in which the planted stand apart from other words.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => Just("word".to_owned()),
        1 => Just("\u{e9}\u{1f600}\n\t\"\\/".to_owned()),
        1 => Just("[EMAIL_1]".to_owned()),
        2 => "[a-f0-9]{16,20}1".prop_map(|tail| format!("sk-{tail}")),
        1 => "[a-z]{1,8}@example\\.com".prop_map(|mail| mail),
    ];
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(|number| Value::from(number % 1_000_000_000)),
        1 => Just(Value::Null),
        1 => Just(Value::Bool(true)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let key = prop_oneof![Just("alpha"), Just("beta"), Just("text"), Just("id"), Just("l\u{e4}nge \"2\"")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.prop_map(str::to_owned), inner.clone(), 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

/// Writes JSON with escapes and spaces where `dice` says so.
fn written(value: &Value, dice: &mut dyn FnMut(u32) -> bool, out: &mut String) {
    let space = |dice: &mut dyn FnMut(u32) -> bool, out: &mut String| {
        if dice(4) {
            out.push_str("\r\n ");
        }
    };
    let string = |text: &str, dice: &mut dyn FnMut(u32) -> bool, out: &mut String| {
        out.push('"');
        for c in text.chars() {
            if dice(12) {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            } else if c == '/' && dice(2) {
                out.push_str("\\/");
            } else {
                let quoted = Value::from(c.to_string()).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
        out.push('"');
    };
    space(dice, out);
    match value {
        Value::String(text) => string(text, dice, out),
        Value::Array(list) => {
            out.push('[');
            for (place, one) in list.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                written(one, dice, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (place, (key, one)) in map.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                string(key, dice, out);
                space(dice, out);
                out.push(':');
                written(one, dice, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
    space(dice, out);
}

/// What is expected: every text by itself, and JSON in texts as JSON.
fn hidden(inspector: &Inspector, value: &Value, level: usize) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) if level < crate::limits::JSON_LEVELS => {
                Value::from(hidden(inspector, &inner, level + 1).to_string())
            }
            _ => Value::from(redact_text(inspector, Direction::Request, text, &mut Sightings::default())),
        },
        Value::Array(list) => list.iter().map(|one| hidden(inspector, one, level)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, one)| (key.clone(), hidden(inspector, one, level))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_json_stays_as_it_was_but_for_the_values(value in json(), seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut dice = |sides: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % u64::from(sides) == 0
        };
        let mut body = String::new();
        written(&value, &mut dice, &mut body);
        prop_assert_eq!(&serde_json::from_str::<Value>(&body).unwrap(), &value);
        let inspector = inspector();
        let (out, _) = inspected(&inspector, Direction::Request, Dialect::Opaque, &body);
        let out: Value = serde_json::from_str(&out).unwrap();
        prop_assert_eq!(out, hidden(&inspector, &value, 0));
    }

    #[test]
    fn no_bytes_make_it_panic(
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[\\[\\]{}\",:\\\\u0-9 a-z@.\\-]{0,200}".prop_map(String::into_bytes),
            json().prop_map(|value| value.to_string().into_bytes()),
        ],
        cut in any::<prop::sample::Index>(),
        items in prop::collection::vec((0..220_usize, 0..220_usize), 0..4),
    ) {
        let body = &body[..cut.index(body.len() + 1)];
        let items: Vec<Range<usize>> = items.into_iter().map(|(start, end)| start..end).collect();
        let inspector = inspector();
        for way in [Direction::Request, Direction::Answer] {
            for dialect in [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini, Dialect::Opaque] {
                let (seen, mut sightings) = (Seen::new(1), Sightings::default());
                let done = inspect_json(&inspector, way, dialect, body, &items, Some(&seen), &mut sightings);
                let _ = apply_edits(body, &done.edits);
            }
        }
    }

    #[test]
    fn a_value_cut_anywhere_into_parts_is_hidden(cuts in prop::collection::vec(0..40_usize, 1..6)) {
        let whole = "My key is sk-1234567890abcdef, \"right\"?";
        let mut cuts = cuts;
        cuts.retain(|cut| *cut <= whole.len());
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let part = |pair: &[usize]| format!(r#"{{"type":"text","text":{}}}"#, Value::from(&whole[pair[0]..pair[1]]));
        let parts: Vec<String> = cuts.windows(2).map(part).collect();
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{}]}}]}}"#, parts.join(","));
        let (out, sightings) = inspected(&inspector(), Direction::Request, Dialect::Anthropic, &body);
        let out: Value = serde_json::from_str(&out).unwrap();
        let texts = out["messages"][0]["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap());
        let joined: String = texts.collect();
        prop_assert_eq!(joined.replace("[REDACTED]", ""), whole.replace(SECRET, HIDDEN));
        prop_assert_eq!(sightings.total, 1);
    }
}
