//! The real program under a budget, killed in the middle of traffic again and again.

use std::sync::{Arc, Mutex};

use sprag_core::event::{Ending, Event};
use sprag_core::money::NanoUsd;
use sprag_testkit::{Provider, Script};

use crate::binary::{Binary, events_of, wait_until};
use crate::purse::{cents, reason, wordy_at};
use crate::wire::STREAMING;

const ROUNDS: u64 = 4;
const HELD: u64 = 3;
/// The longest answer that a caller accepts.
const LIMIT: u64 = 20;
const BUDGET: i64 = 6000;

fn config() -> String {
    let mut text = format!(
        "prices.unpriced = \"block\"\ndefaults.run_limits.max_steps = 0\ndefaults.run_limits.timeout_seconds = 0\n\
         detection.exact.mode = \"off\"\ndetection.progress.mode = \"off\"\n\
         [budget]\nmode = \"enforce\"\nreserve = \"worst_case\"\nmonthly_limit = \"{}.00\"\n",
        BUDGET / 100
    );
    for model in ["gpt-4o", "gpt-3.5-turbo-instruct", "claude-sonnet-4-5", "gemini-2.5-flash"] {
        text.push_str(&format!("[[price]]\nmodel = \"{model}\"\ninput = 0\noutput = 10000\n"));
    }
    text
}

fn charged(events: &[Event]) -> NanoUsd {
    events.iter().filter_map(|event| event.cost).sum()
}

/// What the provider charges for all that it ever got.
fn billed(provider: &Provider) -> NanoUsd {
    let words = |usage: &str| usage.rsplit('=').next().unwrap().parse::<i64>().unwrap();
    cents(provider.log().view().requests.iter().map(|request| words(request.header("x-mock-usage"))).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_is_on_record_when_the_provider_has_the_call() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    // Several times: it may be written by itself in the very moment before the kill.
    for round in 1..=4 {
        let mut binary = Binary::start(home.path(), &provider, &config());
        let call = wordy_at(&binary.url(""), STREAMING[0], false, 7, Some(LIMIT)).header("x-mock-hold", "");
        tokio::spawn(call.fetch());
        provider.gate().reached(round).await;
        binary.signal("KILL");
        assert_eq!(binary.exit_code().await, None);
        assert_eq!(charged(&events_of(&binary.data())), cents((round * LIMIT) as i64), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_aside_is_charged_after_a_kill_and_nothing_is_lost_or_doubled() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut delivered = 0;
    for round in 1..=ROUNDS {
        let mut binary = Binary::start(home.path(), &provider, &config());
        for _ in 0..HELD {
            let call = wordy_at(&binary.url(""), STREAMING[0], false, 7, Some(LIMIT)).header("x-mock-hold", "");
            tokio::spawn(call.fetch());
        }
        provider.gate().reached(round * HELD).await;
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        let workers: Vec<_> = (0..8_usize)
            .map(|worker| {
                let (base, seen) = (binary.url(""), seen.clone());
                tokio::spawn(async move {
                    for turn in 0.. {
                        // Half of what is accepted: a stream that seems to come further has more set aside, and the kill may come right then.
                        let words = 1 + (worker as u64 * 7 + turn * 3) % (LIMIT / 2);
                        let dialect = STREAMING[(worker + turn as usize) % 5];
                        let call = wordy_at(&base, dialect, worker % 2 == 0, words, Some(LIMIT));
                        let call = call.header("x-sprag-run-id", &format!("task-{}", worker % 3));
                        let Ok(answer) = call.fetch().await else { return };
                        if answer.broken.is_some() || answer.status != 200 {
                            return;
                        }
                        seen.lock().unwrap().push(words);
                    }
                })
            })
            .collect();
        wait_until(|| seen.lock().unwrap().len() > 40, || format!("no traffic: {}", binary.log())).await;
        binary.signal("KILL");
        assert_eq!(binary.exit_code().await, None);
        for worker in workers {
            worker.await.unwrap();
        }
        delivered += seen.lock().unwrap().iter().sum::<u64>();
        let events = events_of(&binary.data());
        let lost: Vec<&Event> = events.iter().filter(|event| event.ending == Ending::Lost).collect();
        assert!(lost.len() as u64 >= round * HELD, "{} of {}", lost.len(), round * HELD);
        assert!(lost.iter().all(|event| event.cost == Some(cents(LIMIT as i64))), "what was set aside: {lost:?}");
        let (charged, billed) = (charged(&events), billed(&provider));
        let told = format!("round {round}: {delivered} cents delivered, {billed} billed, {charged} charged");
        assert!(cents(delivered as i64) <= billed && billed <= charged && charged <= cents(BUDGET), "{told}");
    }

    // All that is left can be spent, and nothing beyond; a restart in good order changes nothing.
    for _ in 0..2 {
        let mut binary = Binary::start(home.path(), &provider, &config());
        let ask = async |words: u64| {
            wordy_at(&binary.url(""), STREAMING[0], false, words, Some(words)).fetch().await.unwrap()
        };
        let before = spent_by_a_refusal(&ask).await;
        binary.signal("TERM");
        assert_eq!(binary.exit_code().await, Some(0));
        let events = events_of(&binary.data());
        assert_eq!(charged(&events), cents(before), "what the limit says is what is on record");
        let mut binary = Binary::start(home.path(), &provider, &config());
        let ask = async |words: u64| {
            wordy_at(&binary.url(""), STREAMING[0], false, words, Some(words)).fetch().await.unwrap()
        };
        let left = (BUDGET - before) as u64;
        assert_eq!(reason(&ask(left + 1).await), "budget_exceeded");
        assert_eq!(ask(left.min(50)).await.status, 200);
        binary.signal("TERM");
        assert_eq!(binary.exit_code().await, Some(0));
        assert_eq!(charged(&events_of(&binary.data())), cents(before + left.min(50) as i64));
    }
}

/// What a refusal says is spent, in cents, with nothing set aside.
async fn spent_by_a_refusal(ask: &impl AsyncFn(u64) -> sprag_testkit::client::Whole) -> i64 {
    let refused = ask(BUDGET as u64 + 1).await;
    let error = refused.json()["error"].clone();
    assert_eq!(
        (reason(&refused).as_str(), &error["reserved"]),
        ("budget_exceeded", &serde_json::json!(0.0)),
        "{error}"
    );
    (error["current_cost"].as_f64().unwrap() * 100.0).round() as i64
}
