//! What receivers get, to the byte: recorded by real servers, with ids and times taken out. A change of any of it is a
//! change for everybody who reads these messages.

use std::fmt::Write;

use sprag::acts::KillOrder;
use sprag_core::policy::KillKind;

use crate::configured::Configured;
use crate::mail_server::{MailServer, Way};
use crate::receiver::{Message, Receiver};

const CHANNELS: [(&str, &str); 6] = [
    ("webhook", "secret = \"sign-with-me\"\n"),
    ("slack", ""),
    ("discord", ""),
    ("teams", ""),
    ("telegram", "token = \"12:AB\"\nchat = \"-7\"\n"),
    ("pagerduty", "routing_key = \"R1\"\n"),
];

/// Puts `name` in the place of what follows `before`, as far as it is made of these characters.
fn masked(text: &str, before: &str, is_part: fn(char) -> bool, name: &str) -> String {
    let mut parts = text.split(before);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let _ = write!(masked, "{before}{name}{}", part.trim_start_matches(is_part));
    }
    masked
}

fn without_ids(text: &str) -> String {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let text = masked(text, "alert_", |c| c.is_ascii_hexdigit(), "ID");
    let text = masked(&text, "/act?t=", is_token, "TOKEN");
    masked(&text, ",v1=", |c| c.is_ascii_hexdigit(), "HEX")
}

fn shown(message: &Message) -> String {
    let mut shown = message.first_line.clone();
    for line in message.head.lines().skip(1) {
        let (name, value) = line.split_once(": ").unwrap();
        let value = match name {
            "host" => "HOST",
            "content-length" => "LENGTH",
            _ => value,
        };
        let _ = write!(shown, "\n{name}: {value}");
    }
    let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
    without_ids(&format!("{shown}\n\n{}\n", serde_json::to_string_pretty(&body).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_channel_gets_exactly_this() {
    let (receiver, mail) = (Receiver::start().await, MailServer::start(Way::Clear).await);
    let mut text = "[alerts]\ndashboard_url = \"https://sprag.example.com\"\n\
        [[alerts.rules]]\non = \"run_killed\"\n"
        .to_owned();
    for (kind, more) in CHANNELS {
        let url = receiver.url(&format!("/{kind}"));
        let _ =
            write!(text, "[alerts.channels.{kind}]\ntype = \"{kind}\"\nurl = \"{url}\"\nallow_private = true\n{more}");
    }
    let _ = write!(
        text,
        "[alerts.channels.mail]\ntype = \"email\"\nserver = \"127.0.0.1:{}\"\nsecurity = \"none\"\n\
         from = \"sprag@example.com\"\nrecipients = [\"ops@example.com\", \"anna@example.com\"]\nallow_private = true\n",
        mail.address.port()
    );
    let place = Configured::start(&text).await;
    crate::same_call(&place.sprag.url(""), "task <é>").fetch().await.unwrap();
    place.sprag.settled(1).await;
    let order = KillOrder {
        kind: KillKind::Pause,
        scope: "run:bot/task <é>".parse().unwrap(),
        reason: "it wants to delete the *production* database".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    };
    place.sprag.app.kill(order).await.unwrap();
    let messages = receiver.has(CHANNELS.len()).await;
    assert_eq!(messages.len(), CHANNELS.len());
    for (kind, _) in CHANNELS {
        let message = messages.iter().find(|message| message.first_line.contains(&format!("/{kind}"))).unwrap();
        insta::assert_snapshot!(kind, shown(message));
    }
    let talk = mail.has(1).await.remove(0);
    let said = talk.clear.join("\n");
    // Where lines are folded depends on the ids in them.
    let unfolded = talk.mail.replace("\r\n", "\n").replace("=\n", "");
    insta::assert_snapshot!("mail", without_ids(&format!("{said}\n\n{unfolded}")));
    assert!(talk.mail.split("\r\n").all(|line| !line.contains(['\r', '\n']) && line.len() <= 998), "{}", talk.mail);
    assert!(talk.mail.is_ascii(), "every server takes it");
}
