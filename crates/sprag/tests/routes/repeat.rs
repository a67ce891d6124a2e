//! The same request again on a route: throttled, rejected, warned of, or only reported.

use std::time::{Duration, Instant};

use sprag_core::loops::Action;

use crate::configured::stopped;
use crate::tools::Tools;

const BODY: &str = "{\"query\": \"weather in Paris\"}";

fn repeat(keys: &str) -> String {
    format!("[routes.repeat]\nmode = \"enforce\"\nwindow_seconds = 45\n{keys}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_one_is_told_the_window() {
    let tools = Tools::start(&repeat("action = \"reject\""), "[responses]\ncompat = [\"fairvisor\"]").await;
    for _ in 0..3 {
        assert_eq!(tools.post("/v1/tools/x", BODY, &[]).await.status, 200);
    }
    let answer = tools.post("/v1/tools/x", BODY, &[]).await;
    assert_eq!((answer.status.as_u16(), stopped(&answer)), (429, "loop_detected"));
    assert_eq!(answer.header("retry-after"), "45");
    assert_eq!(answer.header("x-fairvisor-reason"), "loop_detected");
    assert_eq!(answer.header("x-should-retry"), "false");
    assert_eq!(answer.json()["error"]["loop_type"], "identical_request");
    assert_eq!(answer.json()["retry_after_seconds"], 45);
    assert_eq!(tools.reached(), 3);
    // A hit begins the window anew, a refused one too.
    tools.place.pass_seconds(44);
    assert_eq!(tools.post("/v1/tools/x", BODY, &[]).await.status, 429);
    tools.place.pass_seconds(44);
    assert_eq!(tools.post("/v1/tools/x", BODY, &[]).await.status, 429);
    tools.place.pass_seconds(46);
    assert_eq!(tools.post("/v1/tools/x", BODY, &[]).await.status, 200, "nobody asked for a whole window");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_window_is_told_whole_in_the_other_gateways_form_only() {
    let keys = "[routes.repeat]\nmode = \"enforce\"\nwindow_seconds = 300\nthreshold_identical_requests = 2";
    for (rest, header) in [("", "60"), ("[responses]\ncompat = [\"fairvisor\"]", "300")] {
        let tools = Tools::start(keys, rest).await;
        tools.post("/v1/tools/x", BODY, &[]).await;
        let answer = tools.post("/v1/tools/x", BODY, &[]).await;
        assert_eq!(answer.header("retry-after"), header, "{rest}");
        assert_eq!(answer.json()["retry_after_seconds"], 300);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_one_waits_longer_each_time() {
    let keys = repeat("action = \"throttle\"\nthreshold_identical_requests = 2");
    let tools = Tools::start(&keys, "[responses]\ncompat = [\"fairvisor\"]").await;
    let mut delays = Vec::new();
    for _ in 0..4 {
        let begun = Instant::now();
        let answer = tools.post("/v1/tools/x", BODY, &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-sprag-loop-delay"), answer.header("x-fairvisor-loop-delay"));
        let delay: u64 = answer.header("x-sprag-loop-delay").parse().unwrap_or(0);
        assert!(begun.elapsed() >= Duration::from_millis(delay));
        delays.push(delay);
    }
    assert_eq!(delays, [0, 200, 300, 400]);
    assert_eq!(tools.reached(), 4);
    let events = tools.place.sprag.settled(4).await;
    let actions: Vec<Option<Action>> = events.iter().map(|e| e.verdict.as_ref().map(|v| v.action)).collect();
    assert_eq!(actions, [None, Some(Action::Throttle), Some(Action::Throttle), Some(Action::Throttle)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_one_still_meets_the_rate_limit() {
    let keys = repeat("action = \"throttle\"\nthreshold_identical_requests = 2")
        + "[[routes.rate_limits]]\nrequests = 2\nwindow_seconds = 60";
    let tools = Tools::start(&keys, "").await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(tools.post("/v1/tools/x", BODY, &[]).await);
    }
    let told: Vec<(u16, &str)> = answers.iter().map(|answer| (answer.status.as_u16(), stopped(answer))).collect();
    assert_eq!(told, [(200, ""), (200, ""), (429, "rate_limited")]);
    assert_eq!(answers[1].header("x-sprag-loop-delay"), "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_changes_nothing_but_the_record() {
    let tools = Tools::start(&repeat("action = \"warn\"\nthreshold_identical_requests = 2"), "").await;
    for _ in 0..3 {
        let answer = tools.post("/v1/tools/x", BODY, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header("x-sprag-loop-delay")), (200, ""));
    }
    let events = tools.place.sprag.settled(3).await;
    let actions: Vec<Option<Action>> = events.iter().map(|e| e.verdict.as_ref().map(|v| v.action)).collect();
    assert_eq!(actions, [None, Some(Action::Warn), Some(Action::Warn)]);
    assert!(events.iter().all(|event| !event.blocked));
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_counts_for_itself() {
    let keys = "[routes.repeat]\nmode = \"shadow\"\nthreshold_identical_requests = 2";
    let rest = "[[routes]]\nname = \"other\"\npath = \"/other\"\nupstream = \"UPSTREAM\"\n\
                [routes.repeat]\nmode = \"enforce\"\nthreshold_identical_requests = 2";
    let tools = Tools::start(keys, rest).await;
    for _ in 0..4 {
        let answer = tools.post("/v1/tools/x", BODY, &[]).await;
        assert_eq!((answer.status.as_u16(), stopped(&answer)), (200, ""));
    }
    let shadows = tools.place.sprag.settled(4).await.iter().filter(|event| event.shadow.is_some()).count();
    assert_eq!(shadows, 3);
    assert_eq!(tools.post("/other", BODY, &[]).await.status, 200);
    assert_eq!(tools.post("/other", BODY, &[]).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tells_requests_apart() {
    let keys = repeat("threshold_identical_requests = 2")
        + "[[routes.rate_limits]]\nlimit_keys = [\"header:x-tool-name\", \"jwt:org_id\"]\nrps = 1000\n\
           [[routes.rate_limits]]\nlimit_keys = [\"header:x-tried-out\"]\nrps = 1000\nmode = \"shadow\"\n";
    let rest = "[[routes]]\nname = \"twin\"\npath_prefix = \"/v1/twin/\"\nupstream = \"UPSTREAM\"\n\
                [routes.repeat]\nmode = \"enforce\"\nthreshold_identical_requests = 2\n\
                [agents.bot]\nrate_limits = [{ limit_keys = [\"header:x-own\"], rps = 1000 }]";
    let tools = Tools::start(&keys, rest).await;
    type Sent<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
    let first: Sent = ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search")]);
    let send = async |(path, body, headers): Sent<'_>| tools.post(path, body, headers).await.status.as_u16();
    assert_eq!(send(first).await, 200);
    for other in [
        ("/v1/tools/y?a=1&b=2", BODY, &[("x-tool-name", "search")][..]),
        ("/v1/twin/x?a=1&b=2", BODY, &[("x-tool-name", "search")]),
        ("/v1/tools/x?a=1&b=3", BODY, &[("x-tool-name", "search")]),
        ("/v1/tools/x?a=1&b=2", "{}", &[("x-tool-name", "search")]),
        ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "read")]),
        ("/v1/tools/x?a=1&b=2", BODY, &[]),
        ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search"), ("x-agent-id", "bot")]),
        ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search"), ("x-agent-id", "bot"), ("x-own", "1")]),
    ] {
        assert_eq!(send(other).await, 200, "{other:?} is another one");
        assert_eq!(send(other).await, 429, "{other:?} again");
    }
    for same in [
        ("/v1/tools/x?b=2&a=1", BODY, &[("x-tool-name", "search")][..]),
        ("/agents/default/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search")]),
        ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search"), ("x-request-id", "7")]),
        ("/v1/tools/x?a=1&b=2", BODY, &[("x-tool-name", "search"), ("x-tried-out", "7")]),
        (
            "/v1/tools/x?a=1&b=2",
            BODY,
            &[("x-tool-name", "search"), ("authorization", "Bearer e30.eyJvcmdfaWQiOiI3In0.x")],
        ),
    ] {
        assert_eq!(send(same).await, 429, "{same:?} is the first one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mode_nothing_is_counted() {
    let tools = Tools::start("", "[detection.repeat]\nmode = \"enforce\"\nthreshold_identical_requests = 2").await;
    for _ in 0..5 {
        assert_eq!(tools.post("/v1/tools/x", BODY, &[]).await.status, 200, "the agent's rules are for models");
    }
}
