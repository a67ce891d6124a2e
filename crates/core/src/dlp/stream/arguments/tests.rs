use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::dlp::stream::testing::{HIDDEN, KEY, inspector, strict, with_vault};
use crate::dlp::stream::watch::Watch;

/// What comes out for each part, then for the end.
fn read(watch: &mut Watch, parts: &[&[u8]]) -> Result<Vec<String>, Vec<String>> {
    let mut arguments = Arguments::new();
    let mut said = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let mut out = Vec::new();
        let mut spot = Spot { watch, path: &|| "arguments".to_owned(), is_repeat: false };
        let result = arguments.push(&mut spot, part, place + 1 == parts.len(), &mut out);
        said.push(String::from_utf8(out).unwrap());
        if result.is_err() {
            return Err(said);
        }
    }
    assert!(!arguments.is_holding());
    Ok(said)
}

fn by(text: &str, size: usize) -> Vec<&[u8]> {
    text.as_bytes().chunks(size).collect()
}

#[test]
fn values_are_hidden_at_every_cut_and_all_else_stays_as_it_was_written() {
    let cases = [
        (r#"{"path":"a/b","n":[1, -2.5e3,true, null],"e":{}, "x":[]}"#.to_owned(), None),
        (r#"{"caf\u00e9":"\ud83e\udd80 \/ \"q\" \u0041"}"#.to_owned(), None),
        (format!(r#"{{"text":"key {KEY}"}}"#), Some(format!(r#"{{"text":"key {HIDDEN}"}}"#))),
        (format!(r#"{{"text":"a\n{KEY}\nb"}}"#), Some(format!(r#"{{"text":"a\n{HIDDEN}\nb"}}"#))),
        (r#"{"t":"s\u006b-1234567890abcd\u0065f","u":1}"#.to_owned(), Some(format!(r#"{{"t":"{HIDDEN}","u":1}}"#))),
        (format!(r#"{{"{KEY}":1}}"#), Some(format!(r#"{{"{HIDDEN}":1}}"#))),
        (format!(r#"  ["{KEY}","{KEY}" ] "#), Some(format!(r#"  ["{HIDDEN}","{HIDDEN}" ] "#))),
        (format!(r#""{KEY}""#), Some(format!(r#""{HIDDEN}""#))),
        // Not JSON, from the start or from some place on.
        (format!("run {KEY} now"), Some(format!("run {HIDDEN} now"))),
        (format!("{{'a': '{KEY}'}}"), Some(format!("{{'a': '{HIDDEN}'}}"))),
        (format!(r#"{{"a":1}} {KEY}"#), Some(format!(r#"{{"a":1}} {HIDDEN}"#))),
        (format!(r#"{{"a":{KEY}}}"#), Some(format!(r#"{{"a":{HIDDEN}}}"#))),
        // Cut off.
        (r#"{"a":"b"#.to_owned(), None),
        (r#"{"a":"\u00"#.to_owned(), None),
        (r#"{"a":123"#.to_owned(), None),
    ];
    for (text, expected) in cases {
        let expected = expected.unwrap_or_else(|| text.clone());
        for size in 1..=text.len() {
            let mut watch = Watch::new(inspector());
            assert_eq!(read(&mut watch, &by(&text, size)).unwrap().concat(), expected, "{text} by {size}");
        }
    }
}

#[test]
fn structure_and_prose_flow() {
    let mut watch = Watch::new(inspector());
    let parts: [&[u8]; 5] = [br#"{"path": "the qui"#, br#"ck fox", "n": 1"#, b"2, ", br#""x": tr"#, b"ue}"];
    let said = read(&mut watch, &parts).unwrap();
    assert_eq!(said, [r#"{"path": "the "#, r#"quick fox", "n": "#, "12, ", r#""x": "#, "true}"]);
}

#[test]
fn placeholders_come_back_with_their_escapes() {
    let text = r#"{"to":"[EMAIL_1], [email\u005f1]","x":"[EMAIL_2]"}"#;
    for size in 1..=text.len() {
        let said = read(&mut Watch::new(with_vault()), &by(text, size)).unwrap().concat();
        let value: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(value, json!({"to": "\"mia\"@example.org, \"mia\"@example.org", "x": "[EMAIL_2]"}), "by {size}");
    }
}

#[test]
fn a_stop_lets_out_what_came_before_it() {
    let text = format!(r#"{{"a":"one","b":"two {KEY} three"}}"#);
    for size in 1..=text.len() {
        let said = read(&mut Watch::new(strict()), &by(&text, size)).unwrap_err().concat();
        assert_eq!(said, r#"{"a":"one","b":"two "#, "by {size}");
    }
}

#[test]
fn depth_and_scalars_are_bounded() {
    let number = |digits: usize| format!("[{}]", "1".repeat(digits));
    for text in [number(ARGUMENT_SCALAR_BYTES), number(ARGUMENT_SCALAR_BYTES + 1), "[".repeat(EVENT_DEPTH + 1)] {
        let mut arguments = Arguments::new();
        let (mut watch, mut out) = (Watch::new(inspector()), Vec::new());
        let mut spot = Spot { watch: &mut watch, path: &String::new, is_repeat: false };
        arguments.push(&mut spot, text.as_bytes(), false, &mut out).unwrap();
        let is_json = !matches!(arguments.state, State::NotJson(_));
        assert_eq!(is_json, text.len() == ARGUMENT_SCALAR_BYTES + 2, "{text}");
        assert!(arguments.open.len() <= EVENT_DEPTH);
        arguments.push(&mut spot, b"", true, &mut out).unwrap();
        assert_eq!(out, text.as_bytes());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~é漢🦀\n\t\"\\\\]{0,20}",
        "[a-z ]{0,8}".prop_map(|around| format!("{around} {KEY} {around}")),
        Just(format!("\u{1f980}{KEY}\n{KEY}")),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-zé\"]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn hidden(value: &Value) -> Value {
    match value {
        Value::String(text) => text.replace(KEY, HIDDEN).into(),
        Value::Array(list) => list.iter().map(hidden).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), hidden(value))).collect(),
        other => other.clone(),
    }
}

/// Writes everything but plain letters as `\uXXXX`, here and there.
fn escaped(json: &str) -> String {
    let mut out = String::new();
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

proptest! {
    #[test]
    fn any_cut_of_any_arguments_gives_the_same(
        value in value(), cuts in proptest::collection::vec(0..400_usize, 0..12), is_escaped: bool, is_pretty: bool,
    ) {
        let value = json!({"a": value});
        let text = if is_pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let text = if is_escaped { escaped(&text) } else { text };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        let said = read(&mut Watch::new(inspector()), &parts).map_err(|_| TestCaseError::fail("stopped"));
        let said = said?.concat();
        prop_assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), hidden(&value), "{}", said);
        prop_assert!(text.contains(KEY) || said == text);
    }
}
