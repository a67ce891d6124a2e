//! A loop is told on every channel within seconds, once in a cooldown, however often it trips.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use sprag_testkit::Script;

use crate::binary::wait_until;
use crate::configured::Configured;
use crate::mail_server::{MailServer, Way};
use crate::receiver::Receiver;
use crate::{REJECTING, loop_until_refused};

const TRIPS: usize = 1000;
const CHATS: [(&str, &str); 6] = [
    ("webhook", ""),
    ("slack", ""),
    ("discord", ""),
    ("teams", ""),
    ("telegram", "token = \"12:ab\"\nchat = \"7\"\n"),
    ("pagerduty", "routing_key = \"R1\"\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_trips_are_told_once_on_every_channel() {
    let (receiver, mail) = (Receiver::start().await, MailServer::start(Way::Clear).await);
    let mut text = format!("{REJECTING}[[alerts.rules]]\non = \"loop_detected\"\n");
    for (kind, more) in CHATS {
        let url = receiver.url(&format!("/{kind}"));
        text.push_str(&format!(
            "[alerts.channels.{kind}]\ntype = \"{kind}\"\nurl = \"{url}\"\nallow_private = true\n{more}"
        ));
    }
    text.push_str(&format!(
        "[alerts.channels.mail]\ntype = \"email\"\nserver = \"127.0.0.1:{}\"\nsecurity = \"none\"\n\
         from = \"sprag@example.com\"\nrecipients = [\"ops@example.com\"]\nallow_private = true\n",
        mail.address.port()
    ));
    let place = Configured::start_with(Script::new(), &text, false).await;
    let base = place.sprag.url("");
    loop_until_refused(&base, "task").await;
    let tripped = Instant::now();
    receiver.has(CHATS.len()).await;
    mail.has(1).await;
    assert!(tripped.elapsed() < Duration::from_secs(2), "{:?}", tripped.elapsed());

    let runs: Vec<String> = (1..TRIPS).map(|number| format!("task-{number}")).collect();
    for some in runs.chunks(50) {
        join_all(some.iter().map(|run| loop_until_refused(&base, run))).await;
    }
    // The cooldown must not end before the last of them was seen.
    let held_back = || place.sprag.app.alerts.outbox.backlog().unwrap().held_back;
    wait_until(|| held_back() == TRIPS as u64 - 1, || format!("{} held back", held_back())).await;
    place.pass_seconds(15 * 60);
    let messages = receiver.has(2 * CHATS.len()).await;
    assert_eq!(mail.has(2).await.len(), 2);
    assert_eq!(messages.len(), 2 * CHATS.len(), "one alert and, after the cooldown, one digest for each channel");
    let of = |path: &str| messages.iter().filter(|m| m.head.starts_with(&format!("post {path} "))).collect::<Vec<_>>();
    for path in ["/webhook", "/slack", "/discord", "/teams", "/telegram/bot12:ab/sendmessage", "/pagerduty"] {
        assert_eq!(of(path).len(), 2, "{path}: {messages:?}");
    }
    let (first, digest) = (of("/webhook")[0].json(), of("/webhook")[1].json());
    assert_eq!(
        (&first["state"], &first["kind"], &first["agent"]),
        (&json!("firing"), &json!("loop_detected"), &json!("bot"))
    );
    assert_eq!(first["run"], "task");
    assert!(
        first["proof"]["steps"].is_array() && first["score"].is_number() && first["cost_usd"].is_number(),
        "{first}"
    );
    assert!(first["link"].as_str().unwrap().ends_with("/run?agent=bot&id=task"), "{first}");
    assert_eq!((&digest["state"], &digest["suppressed"]), (&json!("digest"), &json!(TRIPS - 1)));
    assert_ne!(first["id"], digest["id"]);
    assert_eq!(of("/webhook")[0].header("x-sprag-id"), first["id"].as_str().unwrap());
}
