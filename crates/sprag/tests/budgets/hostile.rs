//! Callers and providers that try to get around a budget, or to break it.

use serde_json::{Value, json};
use sprag_core::event::Ending;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Reserve, Window};
use sprag_core::wire::Dialect;
use sprag_testkit::client;
use sprag_testkit::{Reply, Script};

use crate::binary::wait_until;
use crate::purse::{Purse, budget, cents, chat, reason, wordy};
use crate::wire::{path, request};

fn strict(limit: i64) -> Budget {
    Budget { reserve: Reserve::WorstCase, kill_run: false, ..budget(Window::Day, limit) }
}

async fn strict_purse(limit: i64) -> Purse {
    Purse::start_with(Script::new().lenient(), |settings| settings.policies.defaults.budget = strict(limit)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_way_of_writing_a_limit_makes_a_call_look_cheaper() {
    let purse = strict_purse(100).await;
    // Each may be a longer answer than a hundred cents pay for.
    for (name, value) in [
        ("max_tokens", json!(0)),
        ("max_tokens", json!(-5)),
        ("max_tokens", json!(101)),
        ("max_tokens", json!(u64::MAX)),
        ("max_tokens", json!(1e300)),
        ("max_tokens", json!(5.5)),
        ("max_tokens", json!("5")),
        ("max_tokens", json!([5])),
        ("max_tokens", json!({"n": 5})),
        ("max_tokens", json!(null)),
        ("max_output_tokens", json!(5)),
        ("maxOutputTokens", json!(5)),
        ("generationConfig", json!({"maxOutputTokens": 5})),
    ] {
        let mut body = chat("hello");
        body[name] = value;
        let answer = purse.send("task", 101, &body).fetch().await.unwrap();
        assert_eq!(reason(&answer), "budget_exceeded", "{name}: {body}");
    }
    for n in [json!(1000), json!("1000"), json!(1000.0), json!(1e18), json!(u64::MAX)] {
        let mut body = chat("hello");
        (body["max_tokens"], body["n"]) = (json!(1), n);
        assert_eq!(reason(&purse.send("task", 1000, &body).fetch().await.unwrap()), "budget_exceeded", "{body}");
    }
    for twice in [
        r#"{"model":"gpt-4o","messages":[],"max_tokens":1,"max_tokens":5000}"#,
        r#"{"model":"gpt-4o","messages":[],"max_tokens":1,"n":1,"n":500}"#,
        r#"{"model":"gpt-3.5-nobody-knows","messages":[],"model":"gpt-4o"}"#,
    ] {
        let answer = client::post(purse.sprag.url("/v1/chat/completions"), twice).fetch().await.unwrap();
        assert_eq!(answer.status, 400, "{twice}");
    }
    assert_eq!(purse.forwarded(), 0);
    let mut body = chat("hello");
    body["max_tokens"] = json!(100);
    assert_eq!(purse.send("task", 100, &body).fetch().await.unwrap().status, 200, "nobody is blocked for no reason");
    assert_eq!(purse.account("agent:default daily").settled, cents(100));
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_numbers_of_a_provider_break_nothing() {
    let answer = |usage: Value| {
        let message = json!({"role": "assistant", "content": "word word word"});
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        let body =
            json!({"id": "x", "object": "chat.completion", "model": "gpt-4o", "choices": choices, "usage": usage});
        Reply::raw(200, "application/json", body.to_string())
    };
    let usage = |output: Value| json!({"prompt_tokens": 0, "completion_tokens": output, "total_tokens": 0});
    // What cannot be is no number: the words are counted.
    for output in [json!(-1), json!("many"), json!(-1e18), json!(1e18), json!(null)] {
        let script = Script::always(answer(usage(output.clone())));
        let purse = Purse::start_with(script, |settings| settings.policies.defaults.budget = strict(1000)).await;
        let mut body = chat("hello");
        body["max_tokens"] = json!(5);
        assert_eq!(purse.send("task", 0, &body).fetch().await.unwrap().status, 200, "{output}");
        let settled = purse.account("agent:default daily").settled;
        assert!(NanoUsd::ZERO <= settled && settled <= cents(5), "{output}: {settled}");
        purse.nothing_is_reserved();
    }
    // What is absurd is believed, and nothing overflows; not in memory, and not on record.
    for output in [json!(u64::MAX), json!(10_u64.pow(18))] {
        let script = Script::always(answer(usage(output.clone())));
        let change = |settings: &mut sprag::config::Settings| {
            settings.policies.defaults.budget = strict(1000);
            settings.budget.budget = Budget { mode: sprag_core::loops::Mode::Shadow, ..budget(Window::Month, 100) };
        };
        let purse = Purse::start_with(script, change).await;
        let mut body = chat("hello");
        body["max_tokens"] = json!(5);
        let calls: Vec<_> = (0..4).map(|_| purse.send("task", 0, &body).fetch()).collect();
        for answered in futures_util::future::join_all(calls).await {
            assert!([200, 402].contains(&answered.unwrap().status.as_u16()));
        }
        purse.nothing_is_reserved();
        assert!(purse.account("agent:default daily").settled > cents(1000), "{output}");
        assert_eq!(reason(&purse.send("task", 0, &body).fetch().await.unwrap()), "budget_exceeded", "{output}");
        let (purse, _data) = purse.restarted(change).await;
        assert_eq!(reason(&purse.send("task", 0, &body).fetch().await.unwrap()), "budget_exceeded", "{output}");
        purse.nothing_is_reserved();
        purse.pass_seconds(24 * 3600);
        assert_eq!(purse.send("task", 0, &body).fetch().await.unwrap().status, 200, "{output}: another day");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_dodges_its_own_budget_and_neither_everybodys_nor_that_of_a_key() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = strict(100);
        settings.budget.budget = strict(350);
    })
    .await;
    let key = purse.issue("bot", Budget::default()).await;
    let bearer = format!("Bearer {}", key.secret.reveal());
    let mut spent = 0;
    for number in 0..20 {
        let call = wordy(&purse, Dialect::OpenaiChat, false, 50, Some(50));
        let answer = call.header("x-sprag-agent", &format!("name-{number}")).fetch().await.unwrap();
        spent += if answer.status == 200 { 50 } else { 0 };
    }
    assert_eq!(spent, 350, "everybody's money holds, whatever they call themselves");
    let call = wordy(&purse, Dialect::OpenaiChat, false, 50, Some(50)).header("authorization", &bearer);
    let answer = call.header("x-sprag-agent", "somebody").fetch().await.unwrap();
    assert_eq!(answer.status, 401, "a key says who calls");
    assert!(purse.all_events().iter().all(|event| event.key.is_none() || event.agent.as_str() == "bot"));
    purse.nothing_is_reserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_spends_the_run_of_anothers_key() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Run, 100)).await;
    let (one, other) = (purse.issue("bot", Budget::default()).await, purse.issue("bot", Budget::default()).await);
    let ask = async |secret: Option<&str>, run: &str| {
        let mut call = wordy(&purse, Dialect::OpenaiChat, false, 60, Some(60)).header("x-sprag-run-id", run);
        call = match secret {
            Some(secret) => call.header("authorization", &format!("Bearer {secret}")),
            None => call.header("x-sprag-agent", "bot"),
        };
        call.fetch().await.unwrap().status.as_u16()
    };
    assert_eq!(ask(Some(one.secret.reveal()), "task").await, 200);
    assert_eq!(ask(Some(other.secret.reveal()), "task").await, 200, "another run of the same name");
    assert_eq!(ask(None, "task").await, 200, "and a third");
    let foreign = format!("task#{}", one.entry.key.id);
    assert_eq!(ask(Some(other.secret.reveal()), &foreign).await, 400);
    assert_eq!(ask(None, &foreign).await, 400);
    let spent = |run: &str| purse.account(&format!("run:bot/{run} run")).settled;
    assert_eq!((spent("task"), spent(&foreign)), (cents(60), cents(60)));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_left_hold_what_they_may_cost_and_are_charged_for_it() {
    const STREAMS: usize = 300;
    const MOST: i64 = 3 * STREAMS as i64;
    let purse = strict_purse(MOST + 3).await;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let call = wordy(&purse, Dialect::Anthropic, true, 3, Some(3)).header("x-mock-stall", "2");
        open.push(call.send().await.unwrap());
    }
    assert_eq!(purse.account("agent:default daily").reserved, cents(MOST));
    let refused = wordy(&purse, Dialect::Anthropic, true, 4, Some(4)).fetch().await.unwrap();
    assert_eq!(reason(&refused), "budget_exceeded");
    assert_eq!(refused.json()["retry_after_seconds"], 1, "when they are over there is room: {}", refused.json());
    drop(open);
    purse.quiet().await;
    purse.nothing_is_reserved();
    // Nobody has said what they cost, and not a cent may be passed.
    assert_eq!(purse.account("agent:default daily").settled, cents(MOST));
    assert_eq!(wordy(&purse, Dialect::Anthropic, true, 3, Some(3)).fetch().await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_retries_reaches_nobody() {
    let purse = strict_purse(10).await;
    assert_eq!(wordy(&purse, Dialect::OpenaiChat, false, 10, Some(10)).fetch().await.unwrap().status, 200);
    let calls = (0..200).map(|_| tokio::spawn(wordy(&purse, Dialect::OpenaiChat, true, 10, Some(10)).fetch()));
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("x-should-retry")), (402, "false"));
    }
    assert_eq!(purse.forwarded(), 1);
    purse.quiet().await;
    purse.nothing_is_reserved();
    let refused =
        purse.all_events().iter().filter(|event| event.ending == Ending::Refused && event.cost.is_none()).count();
    assert_eq!(refused, 200, "each is on record, and none cost anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_ignores_the_limit_of_a_stream_is_cut() {
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
        let purse = strict_purse(100).await;
        let mut answer =
            wordy(&purse, dialect, true, 900, Some(20)).header("x-mock-stall", "200").send().await.unwrap();
        wait_until(|| purse.provider.open_responses() <= 1, String::new).await;
        purse.provider.gate().open();
        let mut seen = Vec::new();
        while let Some(piece) = answer.next().await.unwrap() {
            seen.extend_from_slice(&piece);
        }
        assert!(String::from_utf8_lossy(&seen).contains("Budget exceeded"), "{dialect:?}");
        purse.quiet().await;
        purse.nothing_is_reserved();
        assert!(purse.account("agent:default daily").settled < cents(900), "{dialect:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_left_to_the_provider_is_charged() {
    // An answer that is made later, out of sight.
    let later = json!({"id": "resp_1", "object": "response", "status": "queued", "model": "gpt-4o", "output": [], "usage": null});
    let script = Script::always(Reply::raw(200, "application/json", later.to_string()));
    let purse = Purse::start_with(script, |settings| settings.policies.defaults.budget = strict(100)).await;
    let mut body = request(Dialect::OpenaiResponses, false, "hello");
    (body["background"], body["max_output_tokens"]) = (json!(true), json!(60));
    let ask = async || {
        let call = client::post_json(purse.sprag.url(path(Dialect::OpenaiResponses, false)), &body);
        call.fetch().await.unwrap().status.as_u16()
    };
    assert_eq!((ask().await, ask().await), (200, 402));
    purse.quiet().await;
    assert_eq!(purse.account("agent:default daily").settled, cents(60));
}
