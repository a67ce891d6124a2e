//! Rate limits and routes: which requests they take, what is counted, what a caller is told.

use serde_json::Value;
use sprag::config::{Flags, Sources, load};
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Reply, Script};

use crate::configured::{Configured, stopped};
use crate::{Case, Outcome};

/// A Sprag with this configuration before something that says "done" to everything.
async fn start(text: &str) -> Configured {
    let script = Script::always(Reply::raw(200, "text/plain", "done"));
    Configured::start_with(script, text, true).await
}

/// The same with routes, whose `UPSTREAM` is that something. Its address is known only after the start.
async fn start_routed(text: &str) -> Configured {
    let place = start(&text.replace("UPSTREAM", "http://127.0.0.1:9")).await;
    let mut settings = (**place.sprag.app.settings.load()).clone();
    let there = settings.providers["openai"].base.clone();
    for route in &mut settings.routes {
        let mut rule = (**route).clone();
        let mut upstream = (*rule.upstream).clone();
        upstream.base = there.clone();
        rule.upstream = upstream.into();
        *route = rule.into();
    }
    place.sprag.app.replace_settings(settings).unwrap();
    place
}

async fn send(place: &Configured, method: &str, path: &str, headers: &[(&str, &str)]) -> Whole {
    let call = client::get(place.sprag.url(path)).method(method.parse().unwrap());
    headers.iter().fold(call, |call, (name, value)| call.header(name, value)).fetch().await.unwrap()
}

pub(crate) async fn select(case: &Case) -> Outcome {
    let Some(selector) = case.input.get("selector") else {
        return Outcome::Left("clients reach Sprag under one address; a route is chosen by its path");
    };
    let mut text = "[[routes]]\nname = \"case\"\nupstream = \"UPSTREAM\"\n".to_owned();
    for (theirs, ours) in [("pathExact", "path"), ("pathPrefix", "path_prefix"), ("methods", "methods")] {
        if let Some(value) = selector.get(theirs) {
            text += &format!("{ours} = {value}\n");
        }
    }
    let place = start_routed(&text).await;
    let input = |key: &str| case.input[key].as_str().unwrap();
    send(&place, input("method"), input("path"), &[]).await;
    let is_taken = place.sprag.events().iter().any(|event| event.provider == "case");
    assert_eq!(Value::from(is_taken), case.expected["match"], "{}", case.title());
    Outcome::Held
}

pub(crate) async fn are_evaluated(case: &Case) -> Outcome {
    let title = case.title();
    match case.name.as_str() {
        "all_policies_must_pass" => {
            let place = start(
                "[[defaults.rate_limits]]\nname = \"p1\"\nrequests = 9\nwindow_seconds = 60\n\
                 [[defaults.rate_limits]]\nname = \"p2\"\nrequests = 1\nwindow_seconds = 60\n",
            )
            .await;
            send(&place, "GET", "/v1/files", &[]).await;
            let answer = send(&place, "GET", "/v1/files", &[]).await;
            assert_eq!(answer.json()["error"]["exceeded_limit"], case.expected["policy_id"], "{title}");
        }
        "loop_throttle" => {
            let expected = case.expected["delay_ms"].as_u64().unwrap();
            let times = expected / 100;
            let place = start_routed(&format!(
                "[[routes]]\nname = \"case\"\npath = \"/x\"\nupstream = \"UPSTREAM\"\n\
                 [routes.repeat]\nmode = \"enforce\"\naction = \"throttle\"\nthreshold_identical_requests = {times}\n\
                 [[routes.rate_limits]]\nrequests = {times}\nwindow_seconds = 60\n"
            ))
            .await;
            let mut answer = send(&place, "GET", "/x", &[]).await;
            for _ in 1..times {
                answer = send(&place, "GET", "/x", &[]).await;
            }
            let told = (answer.status.as_u16(), answer.header("x-sprag-loop-delay").to_owned());
            assert_eq!(told, (200, expected.to_string()), "{title}");
            assert_eq!(stopped(&send(&place, "GET", "/x", &[]).await), "rate_limited", "{title}: and all else holds");
        }
        "duplicate_matches_evaluated_once" => {
            let route = "[[routes]]\nname = \"NAME\"\npath = \"/x\"\nupstream = \"UPSTREAM\"\n\
                         [[routes.rate_limits]]\nrequests = 2\nwindow_seconds = 60\n";
            let place = start_routed(&(route.replace("NAME", "p1") + &route.replace("NAME", "p2"))).await;
            let mut passed = 0;
            for _ in 0..4 {
                passed += usize::from(stopped(&send(&place, "GET", "/x", &[]).await).is_empty());
            }
            assert_eq!(passed, 2, "{title}: each request is counted once");
        }
        "match_is_AND" => return Outcome::Left("limits have no conditions: they tell calls apart by their keys"),
        "fallback_limit" => return Outcome::Left("a limit holds for all calls, so none is left to fall back to"),
        "loop_before_breaker_and_limits" => return Outcome::Left("rates are asked before loops: they cost less"),
        "missing_descriptor_fail_open" => return Outcome::Left("what is missing shares a bucket, it does not escape"),
        _ => return Outcome::Left("each rule has its own shadow; the preset `observe` is that of all detectors"),
    }
    Outcome::Held
}

pub(crate) fn are_configured(case: &Case) -> Outcome {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("sprag.toml");
    let mut text = "[[defaults.rate_limits]]\n".to_owned();
    for (key, value) in case.input.as_object().unwrap() {
        text += &format!("{} = {value}\n", key.replace("tokens_per_second", "rps"));
    }
    std::fs::write(&file, text).unwrap();
    let flags = Flags { config: Some(file), data: Some(files.path().to_owned()), ..Flags::default() };
    let loaded = load(&Sources { flags, ..Sources::default() });
    assert_eq!(Value::from(loaded.is_ok()), case.expected["valid"], "{}", case.title());
    if let Some(rate) = case.expected["tokens_per_second"].as_f64() {
        let rules = &loaded.unwrap().settings.policies.defaults.rate_limits;
        let measure = sprag_core::policy::RateMeasure::Bucket { rps: rate, burst: rate };
        assert_eq!(rules[0].measure, measure, "{}", case.title());
    }
    Outcome::Held
}

pub(crate) async fn are_decided(case: &Case) -> Outcome {
    match case.name.as_str() {
        "jwt_payload_decoded" => {
            // A kill may go by what anybody claims: it only takes away. Limits go by what was verified.
            let token = [("authorization", case.input["Authorization"].as_str().unwrap())];
            for (claim, value) in case.expected["claims"].as_object().unwrap() {
                let place = start("").await;
                assert_eq!(send(&place, "GET", "/v1/files", &token).await.status, 200, "{}", case.title());
                place.kill(&format!("jwt:{claim}={}", value.as_str().unwrap())).await;
                assert_eq!(send(&place, "GET", "/v1/files", &token).await.status, 403, "{}", case.title());
            }
            Outcome::Held
        }
        "throttle_sleeps_then_allows" => Outcome::Left("waiting is shown with loops and budgets"),
        "no_bundle_503" => Outcome::Left("without a file the defaults hold"),
        "original_headers_used" => Outcome::Left("Sprag is the proxy; it decides on no requests of others"),
        _ => Outcome::Left("what is told is how long it takes, without jitter"),
    }
}

pub(crate) async fn are_told(case: &Case) -> Outcome {
    let (title, limit) = (case.title(), &case.input["limit"]);
    let place = start(&format!(
        "[[defaults.rate_limits]]\nrequests = {}\nwindow_seconds = {}\n",
        limit["max_requests"], limit["window_seconds"]
    ))
    .await;
    let mut answers = Vec::new();
    for _ in 0..case.input["requests"].as_u64().unwrap() {
        answers.push(send(&place, "GET", "/v1/files", &[]).await);
    }
    let statuses: Vec<Value> = answers.iter().map(|answer| answer.status.as_u16().into()).collect();
    assert_eq!(Value::from(statuses), case.expected["statuses"], "{title}");
    let last = answers.last().unwrap();
    assert!(last.headers.contains_key(case.expected["header"].as_str().unwrap()), "{title}");
    let told = last.json();
    let words = case.expected["error_message_contains"].as_str().unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains(words), "{title}: {told}");
    assert!(told["retry_after_seconds"].as_u64() >= case.expected["retry_after_seconds_gte"].as_u64(), "{title}");
    Outcome::Held
}

/// Their keys are `agent:provider`; an agent's limits are ours.
pub(crate) async fn are_replaced(case: &Case) -> Outcome {
    let text = |limits: &Value| -> String {
        let limits = limits.as_object().unwrap().iter();
        let table = |(key, limit): (&String, &Value)| {
            let agent = key.split(':').next().unwrap();
            format!("[agents.{agent}]\nrate_limits = [{{ requests = {}, window_seconds = {} }}]\n", limit[0], limit[1])
        };
        limits.map(table).collect()
    };
    let place = start(&text(&case.input["initial"])).await;
    let other = start(&text(&case.input["update"])).await;
    let mut settings = (**place.sprag.app.settings.load()).clone();
    settings.policies = other.sprag.app.settings.load().policies.clone();
    place.sprag.app.replace_settings(settings).unwrap();
    for (key, has) in case.expected["has"].as_object().unwrap() {
        let agent = key.split(':').next().unwrap();
        let mut is_limited = false;
        for _ in 0..10 {
            is_limited |= !stopped(&send(&place, "GET", "/v1/files", &[("x-agent-id", agent)]).await).is_empty();
        }
        assert_eq!(Value::from(is_limited), *has, "{}: {agent}", case.title());
    }
    Outcome::Held
}
