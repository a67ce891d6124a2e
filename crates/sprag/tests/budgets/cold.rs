//! Many calls at once of which nobody knows what they cost: the first goes ahead, the others wait for it.

use std::time::Duration;

use sprag_core::policy::{Budget, Reserve, Window};
use sprag_core::wire::Dialect;
use sprag_testkit::Script;
use sprag_testkit::client::Whole;

use crate::purse::{Purse, budget, cents, reason, wordy};
use crate::wire::STREAMING;

async fn purse(window: Window) -> Purse {
    let purse = Purse::start_with(Script::new(), |settings| {
        settings.policies.defaults.budget = Budget { reserve: Reserve::Expected, ..budget(window, 100) };
        settings.budget.budget = budget(Window::Month, 100);
    });
    purse.await
}

/// So many calls of 30 words at once; gives how many passed.
async fn storm(purse: &Purse, count: usize, dialects: &[Dialect], is_stream: bool) -> usize {
    let call = |number: usize| wordy(purse, dialects[number % dialects.len()], is_stream, 30, None);
    let calls = (0..count).map(|number| tokio::spawn(call(number).header("x-sprag-run-id", "task").fetch()));
    let mut passed = 0;
    for call in calls.collect::<Vec<_>>() {
        let answer: Whole = call.await.unwrap().unwrap();
        match reason(&answer).as_str() {
            "" => passed += usize::from(answer.status == 200 && answer.broken.is_none()),
            "budget_exceeded" | "run_killed" => {}
            other => panic!("{other}"),
        }
    }
    purse.quiet().await;
    purse.nothing_is_reserved();
    passed
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_calls_at_once_stay_within_the_budget_from_the_first_on() {
    for (count, is_stream, dialects) in
        [(200, false, &STREAMING[..]), (200, true, &STREAMING), (500, true, &STREAMING[..1])]
    {
        for &dialect in dialects {
            let window = if is_stream { Window::Day } else { Window::Run };
            let purse = purse(window).await;
            let passed = storm(&purse, count, &[dialect], is_stream).await;
            assert_eq!((passed, purse.forwarded()), (3, 3), "{count} {dialect:?} {is_stream}");
            let settled = purse.account("everything monthly").settled;
            assert_eq!(settled, cents(90), "{count} {dialect:?} {is_stream}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_nobody_knows_do_not_overrun_together() {
    let purse = purse(Window::Day).await;
    storm(&purse, 300, &STREAMING, true).await;
    let settled = purse.account("everything monthly").settled;
    assert!(settled <= cents(100 + 30) && settled >= cents(30), "one call's error at most: {settled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_wait_for_the_first_and_one_that_fails_lets_them_go() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 10_000)).await;
    // Longer than this test takes: nobody goes on because of that.
    purse.sprag.app.pilots.set_patience(Duration::from_secs(600));
    let call = || wordy(&purse, Dialect::OpenaiChat, false, 30, Some(300)).header("x-mock-hold", "");
    let first = tokio::spawn(call().header("x-mock-status", "500").fetch());
    purse.provider.gate().reached(1).await;
    let others: Vec<_> = (0..20).map(|_| tokio::spawn(call().fetch())).collect();
    let app = &purse.sprag.app;
    crate::binary::wait_until(|| app.state.counts().in_flight == 21, || format!("{:?}", app.state.counts())).await;
    // All have arrived and none has gone on; nor has any been refused because of a guess.
    assert_eq!((purse.forwarded(), others.iter().filter(|other| other.is_finished()).count()), (1, 0));
    purse.provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 500);
    purse.provider.gate().close();
    // Each on its own guess, all at once.
    purse.provider.wait_for(|log| log.total == 21).await.unwrap();
    purse.provider.gate().open();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap().status, 200);
    }
    assert_eq!(purse.account("agent:default daily").settled, cents(20 * 30));
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_holds_nobody_for_ever_and_nobody_overruns_beside_it() {
    let purse = purse(Window::Day).await;
    purse.sprag.app.pilots.set_patience(Duration::from_millis(50));
    let call = || wordy(&purse, Dialect::OpenaiChat, false, 30, None);
    let hanging = tokio::spawn(call().header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    // What the first may cost is all there is, so the next is told to come again, and soon.
    let refused = call().fetch().await.unwrap();
    assert_eq!(reason(&refused), "budget_exceeded");
    assert_eq!(refused.json()["retry_after_seconds"], 1, "{}", refused.json());
    // One that says how long it gets does not guess; a smaller one than what is left would pass.
    assert_eq!(purse.account("everything monthly").reserved, cents(100));
    hanging.abort();
    drop(hanging.await);
    purse.quiet().await;
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_it_waits_leaves_nothing_behind() {
    let purse = purse(Window::Day).await;
    let call = || wordy(&purse, Dialect::OpenaiChat, true, 30, None);
    let first = tokio::spawn(call().header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    let waiting: Vec<_> = (0..30).map(|_| tokio::spawn(call().fetch())).collect();
    let app = &purse.sprag.app;
    let in_flight = || app.state.counts().in_flight;
    crate::binary::wait_until(|| in_flight() == 31, || format!("{}", in_flight())).await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    crate::binary::wait_until(|| in_flight() == 1, || format!("{}", in_flight())).await;
    purse.provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 200);
    assert_eq!(call().fetch().await.unwrap().status, 200, "the way is free");
    purse.quiet().await;
    assert_eq!((purse.forwarded(), purse.account("everything monthly").settled), (2, cents(60)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dear_answer_locks_nobody_out() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Run, 100)).await;
    assert_eq!(purse.ask("dear", 500).await.status, 200, "nobody could know");
    assert_eq!(reason(&purse.ask("dear", 1).await), "budget_exceeded");
    // By the average it would cost five dollars, which no run ever has.
    for run in ["fresh", "another"] {
        assert_eq!(purse.ask(run, 1).await.status, 200, "{run}");
    }
    assert_eq!(purse.ask("fresh", 1).await.status, 200, "a run knows best what its own calls cost");
    let other = purse.call("elsewhere", 1).header("x-sprag-agent", "other").fetch().await.unwrap();
    assert_eq!(other.status, 200, "another agent does not pay for it");
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_guesses_do_not_share_what_one_of_them_may_need() {
    // A guess is 4096 tokens: there is room for one, and for something that is known to be small.
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Day, 5000)).await;
    purse.sprag.app.pilots.set_patience(Duration::from_millis(50));
    let call = |limit| wordy(&purse, Dialect::OpenaiChat, false, 30, limit);
    let hanging = tokio::spawn(call(None).header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    assert_eq!(reason(&call(None).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(call(Some(30)).fetch().await.unwrap().status, 200);
    purse.provider.gate().open();
    assert_eq!(hanging.await.unwrap().unwrap().status, 200);
    purse.quiet().await;
    purse.nothing_is_reserved();
    assert_eq!(purse.account("agent:default daily").settled, cents(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_anyway_waits_for_nobody() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(Window::Day, 5000);
        settings.proxy.max_requests_per_agent = 1;
    })
    .await;
    purse.sprag.app.pilots.set_patience(Duration::from_secs(3600));
    let call = || wordy(&purse, Dialect::OpenaiChat, false, 30, None);
    let first = tokio::spawn(call().header("x-mock-hold", "").fetch());
    purse.provider.gate().reached(1).await;
    // By the number of calls under way, not by the money, and while the first holds everybody else up.
    assert_eq!(reason(&call().fetch().await.unwrap()), "rate_limited");
    assert!(!first.is_finished());
    purse.provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 200);
    purse.nothing_is_reserved();
}
