use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    is_last: bool,
    #[serde(borrow, default)]
    parts: Vec<Message<'a>>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Message<'a>>),
    Other(Value),
}

#[derive(Debug, Deserialize)]
struct Raws<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

/// Reading must give the same, and what is read quickly must not be wrong.
fn agree<'a, T: Deserialize<'a> + Debug>(text: &'a str) {
    let (ours, theirs) = (from_str::<T>(text), serde_json::from_str::<T>(text));
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}");
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{text}"),
        (Err(ours), Err(theirs)) => assert_eq!(ours.to_string(), theirs.to_string(), "{text}"),
        _ => unreachable!(),
    }
}

fn agree_in_every_form(text: &str) {
    agree::<Value>(text);
    agree::<IgnoredAny>(text);
    agree::<&RawValue>(text);
    agree::<Vec<&RawValue>>(text);
    agree::<BTreeMap<String, &RawValue>>(text);
    agree::<Cow<'_, str>>(text);
    agree::<Message<'_>>(text);
    agree::<Raws<'_>>(text);
    agree::<f64>(text);
}

#[test]
fn ordinary_bodies_are_read_quickly() {
    let body = r#" {"role":"user","content":[{"role":"x","content":"two words\n"}],"other":[1,-2,{"a":0.5e3}],
        "count":7,"is_last":true,"parts":[{"content":"é 世界"},{"content":null}]} "#;
    let message: Message<'_> = quickly(body).unwrap();
    assert_eq!(message, serde_json::from_str(body).unwrap());
    assert!(matches!(message.parts[0].content, Some(Content::Text(Cow::Borrowed(_) | Cow::Owned(_)))));
    let raws: Raws<'_> = quickly(body).unwrap();
    assert_eq!(raws.parts[0].get(), r#"{"content":"é 世界"}"#);
    assert_eq!((raws.role.map(RawValue::get), raws.content.map(|raw| raw.get().len())), (Some("\"user\""), Some(38)));
    assert_eq!(quickly::<&RawValue>("  [1, 2 ] ").unwrap().get(), "[1, 2 ]");
}

#[test]
fn what_is_wrong_is_told_by_serde_json() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "[1 2]",
        "nul",
        "truex",
        "01",
        "-",
        "-0",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "1 1",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud83d\"",
        "\"\u{1}\"",
        "[}",
        "{]",
        "{\"a\":1]",
        "[1}",
        "{\"role\":1,\"role\":2}",
        "{\"r\\u006fle\":\"x\"}",
        "[\"role\"]",
        "1e999",
        "18446744073709551616",
        "-9223372036854775809",
        "{\"count\":-1}",
        "{\"count\":1.0}",
        "\u{feff}1",
        "[1]]",
    ] {
        agree_in_every_form(text);
    }
}

#[test]
fn depth_is_bounded_and_left_to_serde_json() {
    for depth in [1, 63, 64, 65, 100, 127, 128, 129, 500] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"parts\":[", "]}")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            agree_in_every_form(&text);
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_left_to_serde_json() {
    let bytes = b"{\"role\":\"\xff\"}";
    let (ours, theirs) = (from_slice::<Value>(bytes), serde_json::from_slice::<Value>(bytes));
    assert_eq!(ours.unwrap_err().to_string(), theirs.unwrap_err().to_string());
    assert!(from_slice::<Value>(b"{\"role\":\"\xc3\xa9\"}").is_ok());
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        "\"([a-zé ]|\\\\[ntrbf\"/\\\\]|\\\\u00e9|\\\\ud83d\\\\ude00|\\\\ud83d){0,90}\"",
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof!["role", "content", "count", "is_last", "parts", "[a-c]{1,2}", "\\\\u0061", "a\\\\n"];
        let member = (key, inner.clone()).prop_map(|(key, value)| format!("\"{key}\" : {value}"));
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(" ,\n"))),
            proptest::collection::vec(member, 0..5).prop_map(|members| format!("{{ {}\t}}", members.join(", "))),
        ]
    })
}

proptest! {
    #[test]
    fn both_ways_agree(text in json(), cut in 0_usize..300, sign in "[ -~\u{1}\u{e9}]") {
        agree_in_every_form(&text);
        let cut = text.floor_char_boundary(cut);
        agree_in_every_form(&text[..cut]);
        agree_in_every_form(&format!("{}{sign}{}", &text[..cut], &text[cut..]));
    }
}
