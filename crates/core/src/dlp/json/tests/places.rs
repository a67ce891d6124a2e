//! Where things are found: keys, numbers, escapes, strings in strings, seams; and what goes on record.

use super::*;
use crate::dlp::json::found::{Form, What};
use crate::dlp::json::treat::treat_all;
use crate::dlp::{Outcome, Tier, redact_text};
use crate::limits::{JSON_DEPTH, JSON_LEVELS};

#[test]
fn a_finding_has_a_path_and_a_place_and_never_a_value() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"é\n sk-1234567890abcdef"}]},
 {"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":[\"x\",{\"b-1\":\"at sk-1234567890abcdef\"}],\"me@example.com\":\"sk-1234567890abcdef\"}"}}]}]}"#;
    let (_, sightings) = inspected(&inspector(), Direction::Request, Dialect::OpenaiChat, body);
    let seen: Vec<_> =
        sightings.list.iter().map(|one| (one.path.as_str(), one.start, one.length, one.outcome)).collect();
    let arguments = "messages[1].tool_calls[0].function.arguments";
    assert_eq!(
        seen,
        [
            ("messages[0].content[0].text", 4, 19, Outcome::Redacted),
            (format!("{arguments}.a[1].b-1").as_str(), 3, 19, Outcome::Redacted),
            (format!("{arguments}.*").as_str(), 0, 14, Outcome::Covered),
            (format!("{arguments}.*").as_str(), 0, 19, Outcome::Redacted),
        ]
    );
    let record = serde_json::to_string(&sightings).unwrap();
    assert!(!record.contains("1234567890") && !record.contains("me@example.com"), "{record}");
}

#[test]
fn escapes_are_read_and_never_split() {
    for (raw, expected) in [
        (r"k: \u0073k-12345678\u0039\u0030abcdef", "k: [REDACTED:OPENAI_KEY]"),
        (r"\n\u0073k\u002d1234567890abcde\u0066\n", r"\n[REDACTED:OPENAI_KEY]\n"),
        (r"a\/sk-1234567890abcdef\/b", r"a\/[REDACTED:OPENAI_KEY]\/b"),
        (r"\ud83d\ude00sk-1234567890abcdef\ud83d\ude00", r"\ud83d\ude00[REDACTED:OPENAI_KEY]\ud83d\ude00"),
        (r"\\sk-1234567890abcdef\\", r"\\[REDACTED:OPENAI_KEY]\\"),
        (r#"\"sk-1234567890abcdef\""#, r#"\"[REDACTED:OPENAI_KEY]\""#),
    ] {
        let body = |text: &str| format!(r#"{{"messages":[{{"content":"{text}"}}]}}"#);
        assert_eq!(request(Dialect::OpenaiChat, &body(raw)), body(expected));
    }
}

#[test]
fn json_in_strings_in_strings_stays_json() {
    let mut body = r#"{"k\"ey":"a \"quote\" sk-1234567890abcdef","n":[1]}"#.to_owned();
    for level in 0..JSON_LEVELS + 2 {
        let expected = body.replace(SECRET, HIDDEN);
        assert_eq!(request(Dialect::Opaque, &body), expected, "{level}");
        body = format!(r#"{{"arguments":{}}}"#, serde_json::Value::from(body));
    }
}

#[test]
fn keys_are_looked_at_and_stay_apart() {
    let body =
        r#"{"metadata":{"sk-1234567890abcdef":1,"sk-1234567890abcdefg":{"x":2},"user@example.com":3,"plain_key":4}}"#;
    let expected =
        r#"{"metadata":{"[REDACTED:OPENAI_KEY]":1,"[REDACTED:OPENAI_KEY]_2":{"x":2},"[EMAIL_1]":3,"plain_key":4}}"#;
    assert_eq!(request(Dialect::OpenaiChat, body), expected);
}

#[test]
fn a_number_becomes_a_text() {
    let body = br#"{"card": 4111111111111111, "a":"{\"card\":4111111111111111}"}"#;
    let number = |first: Range<usize>, level: u8| Found { form: Form::Number, first, level, ..some_found() };
    let places: Vec<usize> = memchr::memmem::find_iter(body, b"4111111111111111").collect();
    let mut found = [number(places[0]..places[0] + 16, 0), number(places[1]..places[1] + 16, 1)];
    found.iter_mut().for_each(|one| one.what = What::Finding(OPENAI_KEY, Tier::Proof));
    let treated = treat_all(&inspector(), Direction::Request, body, &found, Vec::new(), &mut Sightings::default());
    let expected = r#"{"card": "[REDACTED:OPENAI_KEY]", "a":"{\"card\":\"[REDACTED:OPENAI_KEY]\"}"}"#;
    assert_eq!(String::from_utf8(apply_edits(body, &treated.edits)).unwrap(), expected);
}

#[test]
fn a_value_cut_across_parts_of_a_message_is_one() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"key sk-12345"},{"type":"text","text":"67890abc"},{"type":"text","text":"def. And"}]}]}"#;
    let expected = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"key [REDACTED:OPENAI_KEY]"},{"type":"text","text":"[REDACTED]"},{"type":"text","text":". And"}]}]}"#;
    let (out, sightings) = inspected(&inspector(), Direction::Request, Dialect::Anthropic, body);
    assert_eq!(out, expected);
    assert_eq!((sightings.total, sightings.list[0].length, sightings.list[0].start), (1, 19, 4));
    assert_eq!(sightings.list[0].path, "messages[0].content[0].text");
    // Something between them: they are not neighbours.
    let apart = body.replace(r#"{"type":"text","text":"67890abc"}"#, r#"{"type":"image"}"#);
    assert_eq!(request(Dialect::Anthropic, &apart), apart);
    // A part that is a finding by itself becomes a part of the whole.
    let gemini = r#"{"contents":[{"parts":[{"text":"sk-1234567890abcdef"},{"text":"0987\n"},{"text":" rest"}]}]}"#;
    let expected = r#"{"contents":[{"parts":[{"text":"[REDACTED:OPENAI_KEY]"},{"text":"\n"},{"text":" rest"}]}]}"#;
    assert_eq!(request(Dialect::Gemini, gemini), expected);
    // A whole value is followed by a word, or by another value: they are not one.
    for next in ["Please", "sk-1234567890abcdef"] {
        let two = format!(r#"{{"contents":[{{"parts":[{{"text":"x sk-1234567890abcdef"}},{{"text":"{next}"}}]}}]}}"#);
        assert_eq!(request(Dialect::Gemini, &two), two.replace(SECRET, HIDDEN));
    }
    // A word boundary at the seam does not hide what stands behind it.
    let glued = r#"{"contents":[{"parts":[{"text":"word"},{"text":"sk-1234567890abcdef"}]}]}"#;
    assert_eq!(request(Dialect::Gemini, glued), glued.replace(SECRET, HIDDEN));
}

#[test]
fn a_seam_of_long_texts_is_looked_at() {
    let long = "word ".repeat(20_000);
    let part = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let body = |one: &str, two: &str| {
        format!(r#"{{"system":[{},{},{}]}}"#, part(&format!("{long}{one}")), part(&format!("{two} {long}")), part("x"))
    };
    assert_eq!(request(Dialect::Anthropic, &body("sk-12345", "67890abcdef")), body(HIDDEN, ""));
}

#[test]
fn hostile_depth_costs_nothing_but_paths() {
    let open = "[".repeat(1 << 20);
    assert_eq!(request(Dialect::OpenaiChat, &open), open);
    for depth in [JSON_DEPTH - 1, JSON_DEPTH, JSON_DEPTH + 1, 10 * JSON_DEPTH] {
        let text = r#"{"a":"sk-1234567890abcdef","id":1}"#;
        let body = format!("{}{text}{},\"sk-1234567890abcdef\"", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(request(Dialect::OpenaiChat, &body), body.replace(SECRET, HIDDEN), "{depth}");
    }
    let objects = r#"{"a":"#.repeat(1 << 16);
    assert_eq!(request(Dialect::OpenaiChat, &objects), objects);
}

#[test]
fn what_is_never_touched_is_passed_over_and_no_more() {
    // The key stands so many objects or lists below `usage`, which is as deep as is passed over in one go, and deeper.
    for depth in 0..9 {
        let below = format!(r#"{}{{"x":"}}]{SECRET}"}}{}"#, "[{\"a\":".repeat(depth), "}]".repeat(depth));
        let body = |text: &str| format!(r#"{{"usage":{below},"messages":[{{"content":"{text}"}}],"usage":{{}}}}"#);
        assert_eq!(request(Dialect::OpenaiChat, &body(SECRET)), body(HIDDEN), "{depth}");
    }
    // Without an end, or with a string that has none.
    for body in [r#"{"usage":{"a":[1,"#, r#"{"usage":{"a":"x"#, "{\"usage\":{\"a\":\"x\ny\"}"] {
        assert_eq!(request(Dialect::OpenaiChat, body), body);
    }
}

#[test]
fn a_strict_policy_stops_and_says_where() {
    let mut strict = inspector();
    let mut policy = DlpPolicy::default();
    policy.set(OPENAI_KEY, Direction::Request, Action::Stop);
    strict.policy = Arc::new(policy);
    let body = br#"{"messages":[{"content":"sk-1234567890abcdef"}]}"#;
    let mut sightings = Sightings::default();
    let inspected = inspect_json(&strict, Direction::Request, Dialect::OpenaiChat, body, &[], None, &mut sightings);
    assert!(inspected.is_stopped && inspected.edits.is_empty());
    assert_eq!((sightings.list[0].outcome, sightings.list[0].path.as_str()), (Outcome::Blocked, "messages[0].content"));
    let mut sightings = Sightings::default();
    let text = redact_text(&strict, Direction::Request, "at sk-1234567890abcdef", &mut sightings);
    assert_eq!(text, "at [REDACTED:OPENAI_KEY]");
    assert_eq!(sightings.list[0].outcome, Outcome::Redacted, "it was hidden and not stopped");
}

#[test]
fn a_key_is_context_however_it_is_written() {
    let plain = r#"{"metadata":{"password":"hunter2Xk9!","card":4111111111111111}}"#;
    let hidden = request(Dialect::OpenaiChat, plain);
    if !hidden.contains("PASSWORD]") || !hidden.contains("CARD]") {
        println!("skipped: no detectors of passwords and cards");
        return;
    }
    let expected: serde_json::Value = serde_json::from_str(&hidden).unwrap();
    for body in [
        plain.replace("hunter2", r"hun\u0074er2"),
        plain.replace("password", r"pass\u0077ord"),
        plain.replace("password", r"pass\u0077ord").replace("hunter2", r"hun\u0074er2").replace("card", r"c\u0061rd"),
    ] {
        let hidden: serde_json::Value = serde_json::from_str(&request(Dialect::OpenaiChat, &body)).unwrap();
        assert_eq!(hidden, expected, "{body}");
        let nested = format!(r#"{{"arguments":{}}}"#, serde_json::Value::from(body));
        let hidden: serde_json::Value = serde_json::from_str(&request(Dialect::OpenaiChat, &nested)).unwrap();
        let inside: serde_json::Value = serde_json::from_str(hidden["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(inside, expected);
    }
}
