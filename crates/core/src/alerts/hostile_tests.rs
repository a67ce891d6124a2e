//! Whatever agents, tools and models are called: no message is formatted, ended, hidden or addressed by it.

use serde_json::{Value, json};

use super::*;
use crate::event::{Event, EventKind};
use crate::time::Timestamp;

/// What each form must not let through, all in one.
const HOSTILE: &str = "<!channel> <@U123> @everyone <https://evil.example|ok> [x](https://evil.example) **b** _i_ ~s~ \
    `c` ||d|| \"><img src=x onerror=alert(1)> </code></b><script> & \r\nBcc: eve@example.com\r\n.\r\n \u{202e}txt";

/// An alert with a text in each field that others can choose.
fn alert(text: &str) -> Alert {
    let occurrence = Occurrence {
        agent: text.to_owned(),
        run: Some(text.to_owned()),
        reason: text.to_owned(),
        score: Some(1.0),
        threshold: Some(1.0),
        window: Some(text.to_owned()),
        blocked_requests: 3,
        cost_usd: Some(1.5),
        proof: Some(json!({"compared": text, "steps": [{"step": 1, "tools": [text]}]})),
    };
    let mut alert = Alert::new((text, AlertKind::UnpricedModel), text, AlertState::Digest, Timestamp(0), 7, occurrence);
    alert.link = Some("https://sprag.example.com/run?agent=bot&id=task".to_owned());
    alert
}

fn links() -> Vec<ActLink> {
    // As long as one gets.
    let url = format!("https://sprag.example.com/act?t={}", "x".repeat(1250));
    [LinkAct::Approve, LinkAct::Kill].map(|act| ActLink { act, url: url.clone() }).to_vec()
}

/// Every text in a message, with the name that it stands under.
fn texts(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) => vec![(name.clone(), text.clone())],
                value => texts(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Short and hostile, long and harmless, and long with marks only, in characters of one to four bytes.
fn cases() -> Vec<Alert> {
    ["<&>", "*", "é", "😀", "]("]
        .map(|c| c.repeat(5000))
        .iter()
        .map(String::as_str)
        .chain([HOSTILE])
        .map(alert)
        .collect()
}

#[test]
fn slack_shows_every_name_as_plain_text() {
    for alert in cases() {
        let message = forms::slack(&alert, &links());
        assert_eq!(message["mrkdwn"], false);
        for (name, text) in texts(&message) {
            assert!(name == "url" || (!text.contains(['<', '>']) && units(&text) <= 2000), "{name}: {text}");
            assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
        }
        let blocks = message["blocks"].as_array().unwrap();
        assert!(units(blocks[0]["text"]["text"].as_str().unwrap()) <= 150);
        let fields: Vec<&Value> = blocks.iter().filter_map(|block| block["fields"].as_array()).flatten().collect();
        for pair in fields.chunks(2) {
            let label = pair[0]["text"].as_str().unwrap();
            assert!(label.chars().all(|c| c.is_ascii_alphabetic() || " *".contains(c)), "{label}");
            assert_eq!((&pair[0]["type"], &pair[1]["type"]), (&json!("mrkdwn"), &json!("plain_text")));
        }
        assert!(blocks.iter().all(|block| block["fields"].as_array().is_none_or(|fields| fields.len() <= 10)));
    }
}

#[test]
fn discord_mentions_and_formats_nothing_and_takes_its_limits() {
    for alert in cases() {
        let message = forms::discord(&alert, &links());
        assert_eq!(message["allowed_mentions"], json!({"parse": []}));
        assert_eq!(message["content"], Value::Null);
        let embed = &message["embeds"][0];
        let title = embed["title"].as_str().unwrap();
        assert!(units(title) <= 256, "{title}");
        let mut all = units(title) + units(embed["description"].as_str().unwrap());
        for field in embed["fields"].as_array().unwrap() {
            let (name, value) = (field["name"].as_str().unwrap(), field["value"].as_str().unwrap());
            assert!(units(value) <= 1024 && !value.is_empty(), "{value}");
            assert!(is_escaped(value, r"*_~`|[](){}<>#@:-+.!"), "{value}");
            all += units(name) + units(value);
        }
        assert!(is_escaped(title, r"*_~`|[]()<>#@:"), "{title}");
        assert!(all <= 6000, "{all}");
    }
}

/// Whether each of these marks stands behind a backslash of its own, and no backslash is left alone at the end.
fn is_escaped(text: &str, marks: &str) -> bool {
    let mut is_behind = false;
    for c in text.chars() {
        if !is_behind && marks.contains(c) {
            return false;
        }
        is_behind = !is_behind && c == '\\';
    }
    !is_behind
}

#[test]
fn teams_formats_nothing() {
    for alert in cases() {
        let message = forms::teams(&alert, &links());
        assert!(message.to_string().len() < 28_000, "what Teams takes");
        let card = &message["attachments"][0]["content"];
        let facts = card["body"][1]["facts"].as_array().unwrap();
        for text in facts.iter().map(|fact| &fact["value"]).chain([&card["body"][0]["text"]]) {
            let text = text.as_str().unwrap();
            assert!(is_escaped(text, r"*_~`|[]<>#"), "{text}");
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
}

#[test]
fn telegram_gets_whole_tags_and_every_name_as_code() {
    for alert in cases() {
        let message = forms::telegram(&alert, "7", &links());
        let text = message["text"].as_str().unwrap();
        assert_eq!(message["parse_mode"], "HTML");
        // Without the tags that Sprag writes there is none.
        let mut rest = text.to_owned();
        for link in links() {
            rest = rest.replace(&format!("<a href=\"{}\">", link.url), "");
        }
        for tag in ["<b>", "</b>", "<code>", "</code>", "</a>"] {
            rest = rest.replace(tag, "");
        }
        assert!(!rest.contains(['<', '>']), "{rest}");
        assert!(units(&rest) <= 4096, "{}", units(&rest));
        for line in text.lines().skip(1).filter(|line| !line.contains("://sprag.example.com")) {
            let (_, value) = line.split_once(": ").unwrap();
            assert!(value.starts_with("<code>") && value.ends_with("</code>"), "{line}");
        }
        assert!(text.contains(">Kill run</a>") && text.ends_with("id=task"), "links are never cut off: {text}");
    }
}

#[test]
fn mail_has_one_line_of_subject_and_escaped_html() {
    for alert in cases() {
        let mail = forms::email(&alert, &links());
        assert!(!mail.subject.chars().any(char::is_control) && units(&mail.subject) <= 140, "{:?}", mail.subject);
        assert!(!mail.html.contains("<img") && !mail.html.contains("<script"), "{}", mail.html);
        let tags = mail.html.matches('<').count();
        let plain = forms::email(&self::alert("bot"), &links());
        assert_eq!(tags, plain.html.matches('<').count(), "{}", mail.html);
        assert_eq!(mail.text.lines().count(), plain.text.lines().count(), "{}", mail.text);
    }
}

#[test]
fn pagerduty_gets_fields_that_it_takes() {
    for alert in cases() {
        let event = forms::pagerduty(&alert, "k", &links());
        let text = |name: &str| event["payload"][name].as_str().unwrap().to_owned();
        assert!(text("summary").chars().count() <= 1024 && !text("summary").chars().any(char::is_control));
        assert!(!text("source").chars().any(char::is_control));
        assert!(event["dedup_key"].as_str().unwrap().chars().count() <= 255);
        assert_eq!(event["links"].as_array().unwrap().len(), 3);
    }
    let key = |subject: String| {
        let mut alert = alert("bot");
        alert.subject = subject;
        forms::pagerduty(&alert, "k", &[])["dedup_key"].clone()
    };
    let long = "m".repeat(400);
    assert_ne!(key(format!("{long}1")), key(format!("{long}2")), "two subjects are two incidents");
    assert_eq!(key(format!("{long}1")), key(format!("{long}1")));
}

#[test]
fn a_webhook_carries_names_as_they_are() {
    let sent: Value = serde_json::from_str(&forms::webhook(&alert(HOSTILE), &links())).unwrap();
    assert_eq!((&sent["agent"], &sent["run"], &sent["reason"]), (&json!(HOSTILE), &json!(HOSTILE), &json!(HOSTILE)));
    assert_eq!(sent["actions"][1]["act"], "kill");
}

#[test]
fn an_alert_about_secrets_carries_no_text_of_the_call() {
    let mut event = Event::new("req_1".to_owned(), Timestamp(0), EventKind::LlmCall);
    let seen = |entity: &str, hint: &str| {
        json!({"entity": entity, "direction": "request", "outcome": "redacted", "path": "messages[0].salary_of_eve",
               "start": 0, "length": 5, "hint": hint})
    };
    let list = [seen("EMAIL", "eve@***"), seen("EMAIL", "bob@***"), seen("OPENAI_KEY", "sk-1***")];
    event.dlp = serde_json::from_value(json!({"total": 3, "list": list})).unwrap();
    let signal = Observation::of(&event).signals.remove(0);
    let proof = signal.proof.unwrap();
    assert_eq!(
        proof,
        json!([
            {"entity": "EMAIL", "direction": "request", "outcome": "redacted", "count": 2},
            {"entity": "OPENAI_KEY", "direction": "request", "outcome": "redacted", "count": 1},
        ])
    );
    let mut alert = alert("bot");
    alert.occurrence.proof = Some(proof);
    let mail = forms::email(&alert, &[]);
    assert!(mail.text.contains("3 findings, without their values"), "{}", mail.text);
}
