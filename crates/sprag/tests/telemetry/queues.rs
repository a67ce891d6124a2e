//! What waits is read when somebody asks: events for the database, alerts, spans, throttled calls, ends of calls, and what
//! is on its way to Redis and ClickHouse.

use std::time::{Duration, Instant};

use sprag_testkit::{ClickHouseServer, ClosedPort, RedisServer};

use crate::binary::wait_until;
use crate::collector::{Collector, Manner};
use crate::configured::Configured;
use crate::page::Page;
use crate::scene::{chat, fetch, looping, metrics, place};

/// Longer than any of this takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One sample without labels, which must be there.
fn of(page: &Page, name: &str) -> f64 {
    let samples = page.families.values().flat_map(|family| &family.samples);
    let found = samples.filter(|(sample, labels, _)| sample == name && labels.is_empty());
    let [value] = found.map(|(_, _, value)| *value).collect::<Vec<_>>()[..] else { panic!("no {name}: {}", page.text) };
    value
}

/// Waits until a sample is as it should be.
async fn becomes(place: &Configured, name: &str, is_so: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    while !is_so(of(&metrics(place).await, name)) {
        assert!(begun.elapsed() < PATIENCE, "{name} stays {}", of(&metrics(place).await, name));
        tokio::task::yield_now().await;
    }
}

async fn call(place: &Configured, agent: &str) {
    assert_eq!(fetch(chat(place, agent, "gpt-4o", "hello")).await.status, 200);
}

#[tokio::test]
async fn events_wait_in_files_until_the_database_has_them() {
    // The longest time that it may take, so that the page is asked before.
    let place = place("[events]\nflush_ms = 1000\n").await;
    let page = metrics(&place).await;
    assert_eq!((of(&page, "sprag_spool_bytes"), of(&page, "sprag_spool_held_bytes")), (0.0, 0.0));
    // A batch may go at any moment; what one call leaves is seen in one of a few turns.
    let (begun, mut seen) = (Instant::now(), 0.0);
    while seen == 0.0 {
        assert!(begun.elapsed() < PATIENCE, "no event was seen to wait");
        call(&place, "plain").await;
        let page = metrics(&place).await;
        seen = of(&page, "sprag_spool_bytes");
        assert!(seen == 0.0 || seen > 100.0 && of(&page, "sprag_spool_segments") >= 1.0, "{seen} bytes: {}", page.text);
    }
    place.sprag.app.history.flush().unwrap();
    becomes(&place, "sprag_spool_bytes", |bytes| bytes == 0.0).await;
    assert_eq!(of(&metrics(&place).await, "sprag_spool_segments"), 0.0);
}

#[tokio::test]
async fn alerts_wait_until_somebody_takes_them() {
    let closed = ClosedPort::new().unwrap();
    let channel = format!(
        "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"http://{}/\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\n",
        closed.address
    );
    let place = looping(&channel).await;
    let page = metrics(&place).await;
    assert_eq!((of(&page, "sprag_alert_queue"), of(&page, "sprag_alert_outbox")), (0.0, 0.0));
    for _ in 0..2 {
        fetch(chat(&place, "plain", "gpt-4o", "the same").header("x-sprag-run-id", "circle")).await;
    }
    becomes(&place, "sprag_alert_outbox", |messages| messages == 1.0).await;
    becomes(&place, "sprag_alert_queue", |events| events == 0.0).await;
}

#[tokio::test]
async fn spans_wait_while_the_collector_takes_its_time() {
    let collector = Collector::start(Manner::Hangs).await;
    let place = place(&collector.config()).await;
    call(&place, "plain").await;
    // The first batch is on its way and stays there, so what ends now waits.
    wait_until(|| place.sprag.app.tracer.as_ref().unwrap().queued() == 0, || "nobody takes spans".to_owned()).await;
    let (begun, mut waiting) = (Instant::now(), 0.0);
    while waiting < 2.0 {
        assert!(begun.elapsed() < PATIENCE, "{waiting} spans wait");
        call(&place, "plain").await;
        waiting = of(&metrics(&place).await, "sprag_trace_queue");
    }
}

#[tokio::test]
async fn throttled_calls_and_ends_of_calls_are_counted_while_they_wait() {
    let place = place(
        "[agents.slow.budget]\ndaily_limit = 1\nstages = [{ at = 1, action = \"throttle\", delay_ms = 30000 }]\n",
    )
    .await;
    let page = metrics(&place).await;
    assert_eq!((of(&page, "sprag_throttle_waiting"), of(&page, "sprag_settling")), (0.0, 0.0));
    let spending = chat(&place, "slow", "gpt-4o", "hello").header("x-mock-usage", "input=0 output=5000");
    assert_eq!(fetch(spending).await.status, 200);
    let waiting = tokio::spawn(chat(&place, "slow", "gpt-4o", "again").fetch());
    becomes(&place, "sprag_throttle_waiting", |calls| calls == 1.0).await;
    waiting.abort();
    becomes(&place, "sprag_throttle_waiting", |calls| calls == 0.0).await;

    let ending = place.sprag.app.settling.token();
    assert_eq!(of(&metrics(&place).await, "sprag_settling"), 1.0);
    drop(ending);
    assert_eq!(of(&metrics(&place).await, "sprag_settling"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_is_still_to_be_told_waits_until_it_is_back() {
    let Some(mut redis) = RedisServer::start() else { return };
    let config = format!("[state]\nredis = \"{}\"\ntimeout_ms = 2000\n", redis.url());
    let place = place(&config).await;
    let link = || place.sprag.app.link.as_ref().unwrap();
    wait_until(|| link().is_connected(), || "Redis is not reached".to_owned()).await;
    let before = of(&metrics(&place).await, "sprag_shared_state_seconds_count");
    call(&place, "plain").await;
    wait_until(|| link().untold_runs().0 == 0 && link().status().untold == 0, || "Redis is not told".to_owned()).await;
    let page = metrics(&place).await;
    assert_eq!(of(&page, "sprag_shared_state_seconds_count") - before, 2.0, "once to begin, once to end");
    assert!(of(&page, "sprag_shared_state_seconds_sum") > 0.0);
    assert_eq!((of(&page, "sprag_shared_state_untold"), of(&page, "sprag_shared_state_lost_total")), (0.0, 0.0));

    // Its end is to be told to a Redis that goes away meanwhile.
    let held = tokio::spawn(chat(&place, "plain", "gpt-4o", "hello").header("x-mock-hold", "").fetch());
    wait_until(|| place.provider.log().view().total == 2, || "the call does not come".to_owned()).await;
    redis.kill();
    place.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
    becomes(&place, "sprag_shared_state_untold", |ends| ends == 1.0).await;
    redis.restart();
    becomes(&place, "sprag_shared_state_untold", |ends| ends == 0.0).await;
    assert_eq!(of(&metrics(&place).await, "sprag_shared_state_lost_total"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_for_clickhouse_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(dir.path()) else { return };
    let config = format!("[events]\nclickhouse = \"{}\"\nbatch_ms = 100\n", server.url("waiting"));
    let place = place(&config).await;
    call(&place, "plain").await;
    place.sprag.app.history.flush().unwrap();
    let counts = |page: &Page| {
        ["sprag_shared_history_sent_total", "sprag_shared_history_waiting", "sprag_shared_history_dropped_total"]
            .map(|name| of(page, name))
    };
    assert_eq!(counts(&metrics(&place).await), [1.0, 0.0, 0.0]);
    server.kill();
    for _ in 0..3 {
        call(&place, "plain").await;
    }
    becomes(&place, "sprag_shared_history_waiting", |events| events == 3.0).await;
    server.restart();
    becomes(&place, "sprag_shared_history_waiting", |events| events == 0.0).await;
    assert_eq!(counts(&metrics(&place).await), [4.0, 0.0, 0.0]);
}
