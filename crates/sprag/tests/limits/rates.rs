//! How often: requests, tokens and buckets, all or nothing, exactly under a storm.

use serde_json::json;
use sprag_testkit::client;

use crate::configured::{Configured, stopped};
use crate::{ask, call, passed};

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_a_window() {
    let place =
        Configured::start("[[defaults.rate_limits]]\nname = \"calm\"\nrequests = 3\nwindow_seconds = 600").await;
    assert_eq!(passed(&place, 5, &[]).await, 3);
    let answer = ask(&place, &[]).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (429, "60"), "never large");
    let told = answer.json();
    assert_eq!(told["retry_after_seconds"], 600, "the body says how long it takes");
    assert_eq!(told["error"]["exceeded_limit"], "calm");
    assert_eq!(told["error"]["limit"], 3);
    place.pass_seconds(599);
    assert_eq!(passed(&place, 1, &[]).await, 0);
    // A window is counted in slots, so its end comes a little late. What is told then is exact.
    let wait: i64 = ask(&place, &[]).await.header("retry-after").parse().unwrap();
    assert!((1..=21).contains(&wait), "{wait}");
    place.pass_seconds(wait);
    assert_eq!(passed(&place, 5, &[]).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_fills_again() {
    let place = Configured::start("[[defaults.rate_limits]]\nrps = 2\nburst = 6").await;
    assert_eq!(passed(&place, 10, &[]).await, 6);
    place.pass_ms(1500);
    assert_eq!(passed(&place, 10, &[]).await, 3);
    place.pass_seconds(3600);
    assert_eq!(passed(&place, 10, &[]).await, 6, "no more than it holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_set_aside_and_corrected() {
    let place = Configured::start("[[defaults.rate_limits]]\ntokens = 1000\nwindow_seconds = 60").await;
    let big = json!({"model": "gpt-4o", "max_tokens": 900, "messages": [{"role": "user", "content": "hi"}]});
    let send = || client::post_json(place.sprag.url("/v1/chat/completions"), &big);
    let first = tokio::spawn(send().header("x-mock-usage", "input=10 output=10").header("x-mock-hold", "").fetch());
    place.provider.gate().reached(1).await;
    let answer = send().fetch().await.unwrap();
    assert_eq!(stopped(&answer), "rate_limited", "900 are expected of the one under way");
    place.provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 200);
    for _ in 0..10 {
        let answer = send().header("x-mock-usage", "input=10 output=10").fetch().await.unwrap();
        assert_eq!(answer.status, 200, "what it did not use is room again");
    }
    // And one that used far more than expected takes it from those that follow.
    assert_eq!(ask(&place, &[("x-mock-usage", "input=5 output=2000")]).await.status, 200);
    assert_eq!(stopped(&ask(&place, &[]).await), "rate_limited");
    place.pass_seconds(63);
    assert_eq!(ask(&place, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rules_or_none_count_a_call() {
    let place = Configured::start(
        "[[defaults.rate_limits]]\nname = \"wide\"\nrequests = 5\nwindow_seconds = 3600\n\
         [[defaults.rate_limits]]\nname = \"narrow\"\nrequests = 2\nwindow_seconds = 10",
    )
    .await;
    let refused_by =
        async || ask(&place, &[]).await.json()["error"]["exceeded_limit"].as_str().unwrap_or_default().to_owned();
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(refused_by().await);
    }
    assert_eq!(told, ["", "", "narrow", "narrow"]);
    place.pass_seconds(11);
    assert_eq!(passed(&place, 4, &[]).await, 2, "what narrow refused took nothing of wide");
    place.pass_seconds(11);
    assert_eq!([refused_by().await, refused_by().await], ["", "wide"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_an_agent_takes_the_place_of_the_defaults() {
    let place = Configured::start(
        "[[defaults.rate_limits]]\nrequests = 1\nwindow_seconds = 60\nlimit_keys = [\"agent\"]\n\
         [agents.quick]\nrate_limits = [{ requests = 4, window_seconds = 60 }]\n[agents.free]\nrate_limits = []",
    )
    .await;
    for (agent, expected) in [("plain", 1), ("other", 1), ("quick", 4), ("free", 6)] {
        assert_eq!(passed(&place, 6, &[("x-agent-id", agent)]).await, expected, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_tells_and_counts_for_itself() {
    let place = Configured::start(
        "[[defaults.rate_limits]]\nname = \"tried\"\nrequests = 1\nwindow_seconds = 60\nmode = \"shadow\"\n\
         [[defaults.rate_limits]]\nname = \"held\"\nrequests = 3\nwindow_seconds = 60\n\
         [defaults.run_limits]\nmax_steps = 1\napplies_to = \"all\"\nmode = \"shadow\"",
    )
    .await;
    assert_eq!(passed(&place, 4, &[("x-sprag-run-id", "r")]).await, 3, "what is in shadow takes nothing away");
    let events = place.sprag.settled(4).await;
    let told = |at: usize| -> Vec<(&str, Option<&str>)> {
        let would = events[at].would_block.iter();
        would.map(|would| (would.reason.as_str(), would.exceeded_limit.as_deref())).collect()
    };
    assert_eq!(told(0), []);
    let both = [("rate_limited", Some("tried")), ("run_limit_exceeded", Some("max_steps"))];
    assert_eq!(told(1)[0], both[0]);
    assert_eq!(told(1)[1].0, both[1].0);
    assert!(events[..3].iter().all(|event| !event.blocked) && events[3].blocked);
    assert!(place.sprag.app.catalog.snapshot().kills.iter().next().is_none(), "no run is killed in shadow");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_at_once_exactly_so_many_pass() {
    let place = Configured::start(
        "[[defaults.rate_limits]]\nrequests = 100\nwindow_seconds = 60\n\
         [[defaults.rate_limits]]\nrps = 1000\nburst = 1000",
    )
    .await;
    let mut under_way = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let call = call(&place, &[]).http2();
        let url = place.sprag.url("/v1/chat/completions");
        under_way.spawn(async move {
            let mut session = client::Session::open(&url, true).await.unwrap();
            let mut passed = 0;
            for _ in 0..50 {
                let answer = session.send(call.clone()).await.unwrap().whole().await;
                passed += usize::from(stopped(&answer).is_empty());
            }
            passed
        });
    }
    let passed: usize = under_way.join_all().await.into_iter().sum();
    assert_eq!(passed, 100);
    assert_eq!(place.provider.log().view().total, 100);
    place.sprag.settled(1000).await;
}
