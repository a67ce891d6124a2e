//! Receivers that are down, and a Sprag that is killed meanwhile: what was raised arrives once they are back, each once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sprag_testkit::{ClosedPort, Provider, Script, client};

use crate::binary::{Binary, wait_until};
use crate::configured::Configured;
use crate::receiver::{Message, Receiver};
use crate::{REJECTING, loop_of};

/// Ports that nobody listens on.
fn closed<const N: usize>() -> [ClosedPort; N] {
    std::array::from_fn(|_| ClosedPort::new().unwrap())
}

fn channels(addresses: &[SocketAddr]) -> String {
    let mut text = REJECTING.to_owned();
    for (number, address) in addresses.iter().enumerate() {
        text.push_str(&format!(
            "[alerts.channels.c{number}]\ntype = \"webhook\"\nurl = \"http://{address}/\"\nallow_private = true\n"
        ));
    }
    text + "[[alerts.rules]]\non = \"loop_detected\"\ncooldown_minutes = 1000\n"
}

/// How often each id arrived.
fn by_id(messages: &[Message]) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    messages.iter().for_each(|message| *ids.entry(message.header("x-sprag-id")).or_default() += 1);
    ids
}

const TOKEN: &str = "an-admin-token-of-the-tests";
const AGENTS: [&str; 5] = ["anna", "ben", "carl", "dora", "emil"];

#[tokio::test(flavor = "multi_thread")]
async fn every_alert_arrives_once_on_every_channel_after_an_outage_and_a_kill() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let ports: [ClosedPort; 3] = closed();
    let text = format!("admin.token = \"{TOKEN}\"\n{}", channels(&ports.each_ref().map(|port| port.address)));
    let mut binary = Binary::start(home.path(), &provider, &text);
    for agent in AGENTS {
        loop_of(&binary.url(""), agent, "task").await;
    }
    counted(&binary, "waiting", 3 * AGENTS.len() as u64).await;
    binary.says("an alert could not be delivered", 3).await;
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);

    let mut binary = Binary::start(home.path(), &provider, &text);
    binary.says("an alert could not be delivered", 3).await;
    let mut receivers = Vec::new();
    for port in ports {
        receivers.push(Receiver::on(port.listen().unwrap()));
    }
    let mut expected = None;
    for receiver in &receivers {
        let ids = by_id(&receiver.has(AGENTS.len()).await);
        assert_eq!((ids.len(), ids.values().max()), (AGENTS.len(), Some(&1)), "{ids:?}");
        assert_eq!(*expected.get_or_insert(ids.clone()), ids, "the same on every channel");
    }
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    for receiver in &receivers {
        assert_eq!(by_id(&receiver.messages()), expected.clone().unwrap(), "none came twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_minutes_without_a_receiver_lose_nothing_and_give_nothing_up() {
    let ports: [ClosedPort; 2] = closed();
    let place =
        Configured::start_with(Script::new(), &channels(&ports.each_ref().map(|port| port.address)), false).await;
    for agent in AGENTS {
        loop_of(&place.sprag.url(""), agent, "task").await;
    }
    let health = |channel: &str| place.sprag.app.alerts.health(channel);
    let mut tried = 0;
    for _ in 0..10 {
        place.pass_seconds(76);
        // Each time somebody finds out that it is still down.
        let is_tried = || ["c0", "c1"].iter().all(|channel| health(channel).failures > tried);
        wait_until(is_tried, || format!("{:?}", health("c0"))).await;
        tried = ["c0", "c1"].map(|channel| health(channel).failures).into_iter().min().unwrap();
    }
    let backlog = place.sprag.app.alerts.outbox.backlog().unwrap();
    assert_eq!((backlog.waiting, backlog.given_up), (10, 0));
    assert!(health("c0").is_down() && tried < 60, "one at a time, not all of them: {tried}");

    let receivers = ports.map(|port| Receiver::on(port.listen().unwrap()));
    place.pass_seconds(76);
    for receiver in &receivers {
        let ids = by_id(&receiver.has(AGENTS.len()).await);
        assert_eq!((ids.len(), ids.values().max()), (AGENTS.len(), Some(&1)), "{ids:?}");
    }
    wait_until(
        || place.sprag.app.alerts.outbox.backlog().unwrap().waiting == 0,
        || format!("{:?}", place.sprag.app.alerts.outbox.backlog()),
    )
    .await;
    assert_eq!(health("c0").failures, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_day_it_is_given_up_where_everybody_sees_it() {
    let ports: [ClosedPort; 1] = closed();
    let place =
        Configured::start_with(Script::new(), &channels(&ports.each_ref().map(|port| port.address)), false).await;
    loop_of(&place.sprag.url(""), "anna", "task").await;
    let alerts = &place.sprag.app.alerts;
    wait_until(|| alerts.health("c0").failures == 1, || format!("{:?}", alerts.health("c0"))).await;
    place.pass_seconds(24 * 3600);
    wait_until(|| alerts.counts().given_up == 1, || format!("{:?}", alerts.counts())).await;
    let backlog = || alerts.outbox.backlog().unwrap();
    wait_until(|| backlog().given_up == 1, || format!("{:?}", backlog())).await;
    let sent = alerts.outbox.list(None, 1).unwrap().remove(0);
    let error = sent.deliveries[0].error.clone().unwrap();
    assert!(error.starts_with("given up after 24 hours: no connection"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing_that_a_cooldown_holds_back() {
    let receiver = Receiver::start().await;
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let text = format!("admin.token = \"{TOKEN}\"\n{}", channels(&[receiver.address]));
    let mut binary = Binary::start(home.path(), &provider, &text);
    for run in 0..8 {
        loop_of(&binary.url(""), "anna", &format!("task-{run}")).await;
    }
    counted(&binary, "held_back", 7).await;
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);
    let binary = Binary::start(home.path(), &provider, &text);
    // It is still known, and goes on.
    counted(&binary, "held_back", 7).await;
    loop_of(&binary.url(""), "anna", "another").await;
    counted(&binary, "held_back", 8).await;
    assert_eq!(receiver.messages().len(), 1);
}

/// Waits until the API counts so many.
async fn counted(binary: &Binary, what: &str, expected: u64) {
    let greeting = std::fs::read_to_string(binary.home.join("stdout")).unwrap();
    let line = greeting.lines().find(|line| line.contains("dashboard  http://")).unwrap();
    let admin = line.rsplit("http://").next().unwrap().trim_end_matches('/').to_owned();
    let begun = Instant::now();
    loop {
        let call = client::get(format!("http://{admin}/api/v1/alerts/counts"));
        let answer = call.header("authorization", &format!("Bearer {TOKEN}")).fetch().await.unwrap().json();
        if answer[what] == expected {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "not {expected} {what}: {answer}");
    }
}
