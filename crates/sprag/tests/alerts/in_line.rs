//! Who waits for whom: a message that fails or hangs holds up no other, and settings count for the next message.

use std::time::Duration;

use serde_json::json;
use sprag_testkit::Script;
use tokio::sync::watch;

use crate::binary::wait_until;
use crate::configured::Configured;
use crate::receiver::Receiver;
use crate::{REJECTING, loop_of};

fn text(receiver: &Receiver) -> String {
    format!(
        "{REJECTING}[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\ncooldown_minutes = 1000\n",
        receiver.url("/")
    )
}

fn agents(receiver: &Receiver) -> Vec<String> {
    receiver.messages().iter().map(|message| message.json()["agent"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_nobody_takes_does_not_hold_up_the_others() {
    let receiver = Receiver::judging(|message| match message.body.contains("\"agent\":\"bad\"") {
        true => "500 Oh No",
        false => "200 OK",
    })
    .await;
    let place = Configured::start_with(Script::new(), &text(&receiver), false).await;
    loop_of(&place.sprag.url(""), "bad", "task").await;
    // The clock moves when a try is over, not while one is: its wait would begin after the move.
    let failures = || place.sprag.app.alerts.health("ops").failures;
    for tries in 1..=7 {
        receiver.has(tries).await;
        wait_until(|| failures() as usize == tries, || format!("{} of {tries} tries failed", failures())).await;
        place.pass_seconds(if tries < 7 { 76 } else { 0 });
    }
    // Without a moment passing on the clock: nothing waits for the one that fails.
    for agent in ["anna", "ben", "carl"] {
        loop_of(&place.sprag.url(""), agent, "task").await;
    }
    wait_until(|| agents(&receiver).contains(&"carl".to_owned()), || format!("{:?}", agents(&receiver))).await;
    let got = agents(&receiver);
    assert!(["anna", "ben", "carl"].iter().all(|agent| got.iter().filter(|one| one == agent).count() == 1), "{got:?}");
    let backlog = || place.sprag.app.alerts.outbox.backlog().unwrap();
    wait_until(|| backlog().waiting == 1, || format!("{:?}", backlog())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_hangs_does_not_hold_up_the_others() {
    let (release, gate) = watch::channel(false);
    let receiver = Receiver::holding(gate, |message| message.body.contains("\"agent\":\"slow\"")).await;
    let place = Configured::start_with(Script::new(), &text(&receiver), false).await;
    loop_of(&place.sprag.url(""), "slow", "task").await;
    wait_until(|| receiver.arrived() == 1, || "it never came".to_owned()).await;
    loop_of(&place.sprag.url(""), "quick", "task").await;
    receiver.has(1).await;
    assert_eq!(agents(&receiver), ["quick"]);
    release.send(true).unwrap();
    receiver.has(2).await;
    assert_eq!(agents(&receiver), ["quick", "slow"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_channel_can_be_mended_before_anything_is_given_up() {
    for answer in ["302 Found", "401 Unauthorized", "403 Forbidden", "404 Not Found", "503 Busy"] {
        let broken = Receiver::answering(answer).await;
        let place = Configured::start_with(Script::new(), &text(&broken), false).await;
        loop_of(&place.sprag.url(""), "anna", "task").await;
        broken.has(1).await;
        let alerts = &place.sprag.app.alerts;
        wait_until(|| alerts.health("ops").failures == 1, || answer.to_owned()).await;
        // The next try goes where the settings say then.
        let mended = Receiver::start().await;
        let mut settings = (*place.sprag.app.settings.load_full()).clone();
        let other = Configured::start_with(Script::new(), &text(&mended), false).await;
        settings.alerts = other.sprag.app.settings.load().alerts.clone();
        place.sprag.app.replace_settings(settings).unwrap();
        place.pass_seconds(5);
        mended.has(1).await;
    }
    for answer in ["400 Bad Request", "413 Too Large", "422 Unprocessable"] {
        let receiver = Receiver::answering(answer).await;
        let place = Configured::start_with(Script::new(), &text(&receiver), false).await;
        loop_of(&place.sprag.url(""), "anna", "task").await;
        let alerts = &place.sprag.app.alerts;
        wait_until(|| alerts.outbox.backlog().unwrap().given_up == 1, || answer.to_owned()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_does_not_keep_messages_waiting() {
    let receiver = Receiver::judging_in_turn(&["500 Oh No", "200 OK"]).await;
    let place = Configured::start_with(Script::new(), &text(&receiver), false).await;
    loop_of(&place.sprag.url(""), "anna", "task").await;
    receiver.has(1).await;
    let alerts = &place.sprag.app.alerts;
    wait_until(|| alerts.health("ops").failures == 1, || "it did not fail".to_owned()).await;
    place.pass_seconds(-3600);
    let messages = receiver.has(2).await;
    assert_eq!(messages[0].json()["id"], messages[1].json()["id"]);
    assert_eq!(messages[1].json()["state"], json!("firing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_alerts_of_one_moment_both_arrive() {
    let receiver = Receiver::start().await;
    let text = text(&receiver).replace("cooldown_minutes = 1000", "cooldown_minutes = 0");
    let place = Configured::start_with(Script::new(), &text, false).await;
    // The clock of the test stands still.
    for run in 0..10 {
        loop_of(&place.sprag.url(""), "anna", &format!("task-{run}")).await;
    }
    let all = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let told: u64 = receiver
                .messages()
                .iter()
                .map(|message| message.json())
                .filter(|alert| alert["state"] != "recovered")
                .map(|alert| 1 + alert["suppressed"].as_u64().unwrap())
                .sum();
            if told >= 10 {
                return told;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(all.await.unwrap(), 10, "{:?}", receiver.messages());
    let ids: std::collections::BTreeSet<String> =
        receiver.messages().iter().map(|message| message.header("x-sprag-id")).collect();
    assert_eq!(ids.len(), receiver.messages().len());
}
