use std::sync::Arc;

use http::Request;
use serde_json::{Value, json};

use super::*;
use crate::config::{Sources, load};
use crate::gateway::route;

/// A caller without habits of its own, and a configuration that imitates these gateways.
fn audience(compat: &[Compat]) -> Audience {
    let mut settings = load(&Sources::default()).unwrap().settings;
    settings.responses.compat = compat.to_vec();
    let settings = Arc::new(settings);
    let (head, ()) = Request::post("/v1/chat/completions").body(()).unwrap().into_parts();
    let route = route::find(&settings, &head.method, head.uri.path(), &head.headers).unwrap();
    let mut audience = Audience::new(settings.clone(), &route, &head);
    let call = sprag_core::wire::Call::parse(route.dialect, &route.plain, b"{}").unwrap();
    audience.listen(Some(&call), &head);
    audience
}

fn refused(audience: &Audience, refusal: Refusal) -> (u16, HeaderMap, Value) {
    let refusal = audience.put(refusal);
    let mut response = error(audience.family(), &refusal);
    mark_stop(response.headers_mut(), audience, &refusal);
    let (head, Body::Full(body)) = response.into_parts() else { panic!("an error is whole") };
    (head.status.as_u16(), head.headers, serde_json::from_slice(&body).unwrap())
}

fn rejected(window_seconds: u32) -> Refusal {
    let refusal = Refusal::new(Reason::LoopDetected, "The same request again.");
    Refusal { retry_after_seconds: Some(window_seconds), ..refusal }
}

#[test]
fn the_body_says_how_long_it_takes_and_the_header_no_more_than_the_bound() {
    for (window, header) in [(45, "45"), (RETRY_AFTER_SECONDS, "60"), (RETRY_AFTER_SECONDS + 1, "60"), (86_400, "60")] {
        let (status, headers, body) = refused(&audience(&[]), rejected(window));
        assert_eq!((status, headers[RETRY_AFTER].to_str().unwrap()), (429, header));
        assert_eq!(body["retry_after_seconds"], window);
        assert_eq!(headers[BLOCKED], "loop_detected");
        assert_eq!(headers[SHOULD_RETRY], "false");
        assert!(!headers.contains_key(FAIRVISOR_REASON));
    }
}

#[test]
fn only_a_status_that_invites_to_wait_says_how_long() {
    let killed = Refusal { retry_after_seconds: Some(9), ..Refusal::new(Reason::RunPaused, "Wait.") };
    let (status, headers, body) = refused(&audience(&[]), killed);
    assert_eq!((status, headers.get(RETRY_AFTER), &body["retry_after_seconds"]), (403, None, &json!(9)));
}

#[test]
fn fairvisors_headers_stand_beside_our_own() {
    let imitating = audience(&[Compat::Fairvisor]);
    let (_, headers, _) = refused(&imitating, rejected(3600));
    assert_eq!(headers[FAIRVISOR_REASON], "loop_detected");
    assert_eq!(headers[RETRY_AFTER], "3600");
    for (audience, expected) in [(imitating, Some("600")), (audience(&[]), None)] {
        let mut headers = HeaderMap::new();
        mark_delay(&mut headers, &audience, of_loop(600));
        assert_eq!(headers[LOOP_DELAY], "600");
        assert_eq!(headers.get(FAIRVISOR_LOOP_DELAY).map(|value| value.to_str().unwrap()), expected);
        let mut headers = HeaderMap::new();
        mark_delay(&mut headers, &audience, Delay { ms: 600, reason: Reason::BudgetExceeded });
        assert_eq!((headers.len(), &headers[DELAY]), (1, &HeaderValue::from(600)), "that is no loop");
    }
}

fn of_loop(ms: u64) -> Delay {
    Delay { ms, reason: Reason::LoopDetected }
}

/// The scenarios that the documents behind Sprag state about refusals, as far as they are about what goes over the
/// wire. They are not part of the repository: they are looked for in `../shared` beside it, or in `SPRAG_SHARED`.
#[test]
fn refusals_are_as_the_documents_state() {
    let beside = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("SPRAG_SHARED").map_or_else(beside, Into::into).join("cases/cases.json");
    let Ok(text) = std::fs::read(&path) else {
        println!("skipped: there is no {}", path.display());
        return;
    };
    let cases: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let case = |name: &str| {
        let found = cases.iter().find(|case| case["name"] == name && case["kind"] == "seed_spec");
        found.map(|case| (case["input"].clone(), case["expected"].clone())).unwrap_or_else(|| panic!("no case {name}"))
    };
    let agentwall = audience(&[Compat::Agentwall]);

    let (input, expected) = case("loop_error");
    let found = Refusal::new(Reason::LoopDetected, "The same prompt twice.")
        .with("run_id", input["run_id"].clone())
        .with("loop_type", "exact_prompt")
        .with("confidence", 1.0)
        .with("proof", json!({}));
    let (status, _, body) = refused(&agentwall, found);
    assert_eq!((json!(status), &body["error"]), (expected["status"].clone(), &expected["body"]["error"]));

    let (input, expected) = case("manual_kill");
    let killed = Refusal::new(Reason::RunKilled, "Killed.").with("run_id", input["run_id"].clone());
    assert_eq!(json!(refused(&agentwall, killed).0), expected["next_request_status"]);

    let (_, expected) = case("block_mode_429");
    let (status, _, body) = refused(&audience(&[]), rejected(60));
    assert_eq!((&json!(status), &body["block_reason"]), (&expected["status"], &expected["block_reason"]));
    assert!(body[expected["has"].as_str().unwrap()].is_u64());

    let (input, expected) = case("reject_headers");
    let window = u32::try_from(input["window_seconds"].as_u64().unwrap()).unwrap();
    let (status, headers, _) = refused(&audience(&[Compat::Fairvisor]), rejected(window));
    assert_eq!(json!(status), expected["status"]);
    for (name, value) in expected["headers"].as_object().unwrap() {
        let name = name.replace("<product>", "Fairvisor");
        assert_eq!(headers[name.as_str()].to_str().unwrap(), value, "{name}");
    }

    let (input, expected) = case("throttle_header");
    let mut headers = HeaderMap::new();
    mark_delay(&mut headers, &audience(&[Compat::Fairvisor]), of_loop(input["count"].as_u64().unwrap() * 100));
    for (name, value) in expected["headers"].as_object().unwrap() {
        assert_eq!(headers[name.replace("<product>", "Fairvisor").as_str()].to_str().unwrap(), value);
    }
}
