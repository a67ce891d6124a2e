//! Streams that say far more than was set aside for them.

use sprag_core::event::Ending;
use sprag_core::money::NanoUsd;
use sprag_core::policy::Window;
use sprag_core::wire::Dialect;
use sprag_testkit::Script;
use sprag_testkit::client::{Answer, Call};
use sprag_testkit::sse;

use crate::binary::wait_until;
use crate::purse::{Purse, budget, cents, reason, wordy};
use crate::wire::STREAMING;

const LIMIT: i64 = 1000;

/// A purse in which an answer of this dialect has three words by habit.
async fn purse(window: Window, dialect: Dialect) -> Purse {
    let purse = Purse::start_with(Script::new(), |settings| settings.policies.defaults.budget = budget(window, LIMIT));
    let purse = purse.await;
    let usual = wordy(&purse, dialect, true, 3, None).header("x-sprag-run-id", "task").fetch().await.unwrap();
    assert_eq!((usual.status.as_u16(), usual.broken), (200, None), "{dialect:?}");
    purse.quiet().await;
    purse
}

fn long(purse: &Purse, dialect: Dialect, words: u64, stall_after: u64) -> Call {
    let call = wordy(purse, dialect, true, words, None).header("x-sprag-run-id", "task");
    call.header("x-mock-stall", &stall_after.to_string())
}

fn account(window: Window) -> &'static str {
    if window == Window::Run { "run:default/task run" } else { "agent:default daily" }
}

async fn read_words(answer: &mut Answer, words: usize) -> Vec<u8> {
    let mut seen = Vec::new();
    while String::from_utf8_lossy(&seen).matches("word").count() < words {
        seen.extend_from_slice(&answer.next().await.unwrap().unwrap());
    }
    seen
}

/// Whether the last event is the error of its dialect, and names the reason.
fn ends_in_its_own_form(dialect: Dialect, stream: &[u8]) {
    let events = sse::events(stream);
    let last = events.iter().rev().find(|event| event.data != "[DONE]").unwrap();
    let told = last.json();
    let (name, error) = match dialect {
        Dialect::Anthropic => ("error", &told["error"]),
        Dialect::OpenaiResponses if last.event == "response.failed" => ("response.failed", &told["response"]["error"]),
        Dialect::OpenaiResponses => ("error", &told),
        _ => ("", &told["error"]),
    };
    assert_eq!(last.event, name, "{dialect:?} {told}");
    assert!(told.to_string().contains("budget"), "{dialect:?} {told}");
    assert!(error["message"].as_str().unwrap().contains("Budget exceeded"), "{dialect:?} {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reserves_more_as_it_goes_and_is_cut_when_there_is_none() {
    for dialect in STREAMING {
        for window in [Window::Run, Window::Day] {
            let case = format!("{dialect:?} {window:?}");
            let purse = purse(window, dialect).await;
            let mut answer = long(&purse, dialect, 1200, 300).send().await.unwrap();
            let mut seen = read_words(&mut answer, 280).await;
            let held = || purse.account(account(window)).reserved;
            wait_until(|| held() > cents(200), || format!("{case}: {} is reserved", held())).await;
            assert!(held() < cents(LIMIT) && purse.account(account(window)).settled == cents(3), "{case}");

            purse.provider.gate().open();
            while let Some(piece) = answer.next().await.unwrap() {
                seen.extend_from_slice(&piece);
            }
            ends_in_its_own_form(dialect, &seen);
            purse.quiet().await;
            let event = purse.all_events().into_iter().rfind(|event| event.ending == Ending::CutOff).unwrap();
            assert_eq!((event.error.as_deref(), event.status), (Some("budget_exceeded"), 200), "{case}");
            // Settled at what was produced: every word that came, and not those that did not.
            let words = String::from_utf8_lossy(&seen).matches("word").count() as i64;
            assert!((900..1150).contains(&words), "{case}: {words}");
            let settled = purse.account(account(window)).settled;
            assert_eq!(settled, event.cost.unwrap() + cents(3), "{case}");
            let off_by = event.cost.unwrap().0 / cents(1).0 - words;
            // The last piece may end in a space, which is a token of its own until a word follows.
            // Gemini counts ahead by its own numbers.
            assert!((0..=2).contains(&off_by), "{case}: {settled} for {words} words");
            purse.nothing_is_reserved();

            let next = async || {
                let call = wordy(&purse, dialect, true, 3, None).header("x-sprag-run-id", "task");
                reason(&call.fetch().await.unwrap())
            };
            let (now, tomorrow) =
                if window == Window::Run { ("run_killed", "run_killed") } else { ("budget_exceeded", "") };
            assert_eq!(next().await, now, "{case}");
            purse.pass_seconds(24 * 3600);
            assert_eq!(next().await, tomorrow, "{case}: only a run that has spent its own money is killed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_streams_share_one_budget_to_its_end() {
    for dialect in STREAMING {
        let purse = purse(Window::Day, dialect).await;
        let mut streams = Vec::new();
        for _ in 0..2 {
            let mut answer = long(&purse, dialect, 1500, 250).send().await.unwrap();
            let seen = read_words(&mut answer, 200).await;
            streams.push((answer, seen));
        }
        let held = || purse.account("agent:default daily").reserved;
        wait_until(|| held() > cents(300), || format!("{dialect:?}: {}", held())).await;
        purse.provider.gate().open();
        let reading = streams.into_iter().map(|(mut answer, mut seen)| {
            tokio::spawn(async move {
                while let Some(piece) = answer.next().await.unwrap() {
                    seen.extend_from_slice(&piece);
                }
                seen
            })
        });
        let mut words = 0;
        for reading in reading.collect::<Vec<_>>() {
            let seen = reading.await.unwrap();
            ends_in_its_own_form(dialect, &seen);
            words += String::from_utf8_lossy(&seen).matches("word").count() as i64;
        }
        purse.quiet().await;
        purse.nothing_is_reserved();
        let settled = purse.account("agent:default daily").settled;
        // What came in one piece with the word at the limit was produced too.
        assert!(cents(words) <= settled && settled <= cents(LIMIT + 150), "{dialect:?}: {words} words, {settled}");
        let recorded: NanoUsd = purse.all_events().iter().filter_map(|event| event.cost).sum();
        assert_eq!(settled, recorded, "{dialect:?}");
        assert!(settled > cents(LIMIT - 50), "{dialect:?}: {settled}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_words_are_long_is_not_cut_before_its_money_is_spent() {
    // Two hundred words are a thousand letters. Four letters to a token would make them 250 cents.
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 210)).await;
    let call = |words| wordy(&purse, Dialect::OpenaiChat, true, words, None);
    assert_eq!(call(3).fetch().await.unwrap().status, 200);
    let mut answer = call(200).header("x-mock-stall", "190").send().await.unwrap();
    let mut seen = read_words(&mut answer, 180).await;
    purse.provider.gate().open();
    while let Some(piece) = answer.next().await.unwrap() {
        seen.extend_from_slice(&piece);
    }
    assert!(String::from_utf8_lossy(&seen).ends_with("data: [DONE]\n\n"), "{}", String::from_utf8_lossy(&seen));
    assert_eq!(purse.account("agent:default daily").settled, cents(203));
}
