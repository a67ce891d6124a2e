//! Values of the client come back to it, and only to where they were asked for.

use super::*;
use crate::dlp::redact_text;

const MAIL: &str = "me@example.com";

/// Has sent `me@example.com` and a value that needs escapes, which no detector of addresses would find.
fn knowing() -> Inspector {
    let inspector = inspector();
    let mut vault = inspector.vault.as_ref().unwrap().lock().unwrap();
    assert_eq!(vault.keep(EMAIL, MAIL), Some(1));
    assert_eq!(vault.keep(EMAIL, "\"o\\x\"@example.com"), Some(2));
    drop(vault);
    inspector
}

fn answer(text: &str) -> String {
    inspected(&knowing(), Direction::Answer, Dialect::OpenaiChat, text).0
}

#[test]
fn placeholders_become_values_at_their_depth() {
    for (text, expected) in [
        (r#"{"content":"to [EMAIL_1]."}"#, r#"{"content":"to me@example.com."}"#),
        (r#"{"content":"[EMAIL_1][EMAIL_1]"}"#, r#"{"content":"me@example.comme@example.com"}"#),
        (r#"{"content":"[email_1] [ Email_1 ]"}"#, r#"{"content":"me@example.com me@example.com"}"#),
        (r#"{"content":"\\[EMAIL\\_1\\]"}"#, r#"{"content":"\\me@example.com"}"#),
        (r#"{"content":"\u005bEMAIL_1\u005d"}"#, r#"{"content":"me@example.com"}"#),
        (r#"{"content":"[EMAIL_2]"}"#, r#"{"content":"\"o\\x\"@example.com"}"#),
        (r#"{"arguments":"{\"to\":\"[EMAIL_2]\"}"}"#, r#"{"arguments":"{\"to\":\"\\\"o\\\\x\\\"@example.com\"}"}"#),
        (r#"{"arguments":"{\"[EMAIL_1]\":1}"}"#, r#"{"arguments":"{\"me@example.com\":1}"}"#),
        (r#"{"input":{"to":["[EMAIL_1]"]}}"#, r#"{"input":{"to":["me@example.com"]}}"#),
    ] {
        assert_eq!(answer(text), expected);
    }
}

#[test]
fn what_the_vault_does_not_know_stays() {
    for text in
        ["[EMAIL_3]", "[EMAIL_0]", "[EMAIL_]", "[EMAIL]", "[PHONE_1]", "[ ]", "[[", "[EMAIL_99999999999]", "[EMAIL_+1]"]
    {
        let body = format!(r#"{{"content":"{text}"}}"#);
        assert_eq!(answer(&body), body);
    }
    let id = r#"{"id":"[EMAIL_1]"}"#;
    assert_eq!(answer(id), id);
}

#[test]
fn one_pass_hides_and_restores() {
    let text =
        r#"{"content":"[EMAIL_1] wrote to other@example.org about sk-1234567890abcdef, cc me@example.com [EMAIL_1]"}"#;
    let expected = r#"{"content":"me@example.com wrote to [REDACTED:EMAIL] about [REDACTED:OPENAI_KEY], cc me@example.com me@example.com"}"#;
    assert_eq!(answer(text), expected);
    let plain =
        redact_text(&knowing(), Direction::Answer, "[EMAIL_1], a@b.org, me@example.com", &mut Sightings::default());
    assert_eq!(plain, "me@example.com, [REDACTED:EMAIL], me@example.com");
}

#[test]
fn nothing_is_restored_towards_the_provider() {
    let body = r#"{"content":"[EMAIL_1]"}"#;
    assert_eq!(inspected(&knowing(), Direction::Request, Dialect::OpenaiChat, body).0, body);
}

#[test]
fn a_value_goes_out_and_comes_back() {
    let inspector = inspector();
    let body = r#"{"messages":[{"content":"write to jo\u0065@example.com"},{"content":"not to ann@example.com"}]}"#;
    let (out, _) = inspected(&inspector, Direction::Request, Dialect::OpenaiChat, body);
    assert_eq!(out, r#"{"messages":[{"content":"write to [EMAIL_1]"},{"content":"not to [EMAIL_2]"}]}"#);
    let answer = r#"{"content":"I wrote to [EMAIL_1], not to [EMAIL_2]"}"#;
    let (back, _) = inspected(&inspector, Direction::Answer, Dialect::OpenaiChat, answer);
    assert_eq!(back, r#"{"content":"I wrote to joe@example.com, not to ann@example.com"}"#);
}

#[test]
fn a_placeholder_that_a_request_has_by_itself_stands_for_nothing() {
    for own in ["[EMAIL_1]", "[ Email 1 ]", r"[EMAIL\\_1]"] {
        let inspector = inspector();
        let body = format!(r#"{{"messages":[{{"content":"jo@example.com"}},{{"content":"a template: {own}"}}]}}"#);
        let (out, _) = inspected(&inspector, Direction::Request, Dialect::OpenaiChat, &body);
        assert_eq!(out, body.replace("jo@example.com", "[EMAIL_2]"), "{own}");
        let answer = r#"{"content":"[EMAIL_1] is not [EMAIL_2]"}"#;
        let (back, _) = inspected(&inspector, Direction::Answer, Dialect::OpenaiChat, answer);
        assert_eq!(back, r#"{"content":"[EMAIL_1] is not jo@example.com"}"#);
        // What has a number keeps it, and the next value gets the next one.
        let (again, _) = inspected(&inspector, Direction::Request, Dialect::OpenaiChat, &body);
        assert_eq!(again, out);
        let more = r#"{"messages":[{"content":"ann@example.com, [EMAIL_2], jo@example.com"}]}"#;
        let (out, _) = inspected(&inspector, Direction::Request, Dialect::OpenaiChat, more);
        assert_eq!(out, r#"{"messages":[{"content":"[EMAIL_3], [EMAIL_2], [EMAIL_2]"}]}"#);
    }
    let plain = redact_text(&inspector(), Direction::Request, "jo@example.com [EMAIL_4]", &mut Sightings::default());
    assert_eq!(plain, "[EMAIL_5] [EMAIL_4]");
}

#[test]
fn many_placeholders_take_no_time() {
    let body = format!(r#"{{"content":"{}"}}"#, "[EMAIL_1]a@b.org ".repeat(20_000));
    assert_eq!(
        answer(&body),
        body.replace("[EMAIL_1]", "\u{1}").replace("a@b.org", "[REDACTED:EMAIL]").replace('\u{1}', MAIL)
    );
}
