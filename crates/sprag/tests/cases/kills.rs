//! Kills: what they match, how they are asked for, what they outlive.

use serde_json::{Map, Value, json};
use sprag::config::file::Compat;

use crate::place::{Place, stopped};
use crate::{Case, Outcome};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An entry of their list as the body of an order; `scope_key` and `scope_value` are our `scope`.
fn order(entry: &Value) -> Value {
    let key = entry["scope_key"].as_str().unwrap();
    let scope = entry["scope_value"].as_str().map_or(key.to_owned(), |value| format!("{key}={value}"));
    let mut body = json!({"scope": scope});
    for field in ["route", "reason", "expires_at"] {
        if !entry[field].is_null() {
            body[field] = entry[field].clone();
        }
    }
    body
}

/// Headers that carry the descriptors of a case.
fn headers(descriptors: &Value) -> Vec<(String, String)> {
    let empty = Map::new();
    let descriptors = descriptors.as_object().unwrap_or(&empty).iter();
    let carried = descriptors.map(|(key, value)| match key.split_once(':').unwrap() {
        ("jwt", claim) => ("authorization".to_owned(), format!("Bearer e30.{}.x", base64(&json!({claim: value})))),
        (_, name) => (name.to_owned(), value.as_str().unwrap().to_owned()),
    });
    carried.collect()
}

fn base64(payload: &Value) -> String {
    let text = payload.to_string();
    let sextets = |chunk: &[u8]| {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(|at| BASE64[(bits >> (18 - 6 * at) & 63) as usize] as char).collect::<String>()
    };
    text.as_bytes().chunks(3).map(sextets).collect()
}

/// Sends a call of a case; gives the reason of the kill that stops it.
async fn sent(place: &Place, case: &Value) -> Option<String> {
    let carried = headers(&case["descriptors"]);
    let carried: Vec<(&str, &str)> = carried.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // Any path belongs to somebody when the provider is named.
    let path = format!("/openai{}", case["route"].as_str().unwrap());
    let answer = place.call(&path, &json!({"input": "hello"}), &carried).fetch().await.unwrap();
    let is_killed = stopped(&answer) == "run_killed";
    is_killed.then(|| answer.json()["error"]["kill_reason"].as_str().unwrap().to_owned())
}

pub(crate) async fn match_descriptors(case: &Case) -> Outcome {
    let place = Place::start(|_| {}).await;
    for entry in case.input["kill_switches"].as_array().unwrap() {
        let (status, said) = place.admin("POST", "/kills", &order(entry)).await;
        assert_eq!(status, 200, "{}: {said}", case.title());
    }
    if let Some(now) = case.input["now"].as_str() {
        place.set_time(now);
    }
    if let Some(calls) = case.input["cases"].as_array() {
        for (call, expected) in calls.iter().zip(case.expected["results"].as_array().unwrap()) {
            assert_eq!(sent(&place, call).await.as_deref(), expected.as_str(), "{}: {call}", case.title());
        }
        return Outcome::Held;
    }
    let reason = sent(&place, &case.input).await;
    assert_eq!(Some(reason.is_some()), case.expected["matched"].as_bool(), "{}", case.title());
    if let Some(expected) = case.expected["reason_text"].as_str() {
        assert_eq!(reason.as_deref(), Some(expected), "{}", case.title());
    }
    Outcome::Held
}

pub(crate) async fn are_validated(case: &Case) -> Outcome {
    let place = Place::start(|_| {}).await;
    let (status, said) = place.admin("POST", "/kills", &order(&case.input)).await;
    assert_eq!((status, case.expected["valid"].as_bool()), (400, Some(false)), "{}", case.title());
    let field = match case.expected["error_contains"].as_str().unwrap() {
        "scope_key" | "scope_value" => "scope",
        field => field,
    };
    let detail = said["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("`{field}`")), "{}: {detail}", case.title());
    assert_eq!(place.admin("GET", "/kills", &Value::Null).await.1["items"], json!([]), "{}", case.title());
    Outcome::Held
}

/// Before everything else that could refuse the call.
pub(crate) async fn come_first(case: &Case) -> Outcome {
    let place = Place::start(|_| {}).await;
    place.admin("PATCH", "/agents/default", &json!({"active": false})).await;
    assert_eq!(stopped(&place.ask("hello", &[]).await), "agent_inactive");
    place.admin("POST", "/kills", &json!({"scope": "all"})).await;
    assert_eq!(stopped(&place.ask("hello", &[]).await), "run_killed", "{}", case.title());
    Outcome::Held
}

pub(crate) async fn are_made_on_the_page(case: &Case) -> Outcome {
    let run = case.input["run_id"].as_str().unwrap();
    for (compat, status) in [(vec![], 403), (vec![Compat::Agentwall], 429)] {
        let is_theirs = !compat.is_empty();
        let place = Place::start(|settings| settings.responses.compat = compat).await;
        let named = [("x-sprag-run-id", run)];
        assert_eq!(place.ask("Step 1", &named).await.status, 200);
        assert_eq!(place.submit("/run/kill", &format!("agent=default&id={run}")).await, 303);
        assert_eq!(place.ask("Step 2", &named).await.status, status, "{}", case.title());
        if is_theirs {
            assert_eq!(case.expected["next_request_status"], status, "{}", case.title());
        }
    }
    Outcome::Held
}

pub(crate) async fn outlive_answers(case: &Case) -> Outcome {
    let place = Place::start(|_| {}).await;
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]});
    let held = [("x-sprag-run-id", "task"), ("x-mock-hold", "")];
    let asked = tokio::spawn(place.call("/v1/chat/completions", &body, &held).fetch());
    place.provider.gate().reached(1).await;
    assert_eq!(place.admin("POST", "/runs/default/task/kill", &json!({})).await.0, 200);
    place.provider.gate().open();
    assert_eq!(stopped(&asked.await.unwrap().unwrap()), "run_killed");
    place.sprag.settled(1).await;
    let (_, run) = place.admin("GET", "/runs/default/task", &Value::Null).await;
    assert_eq!(run["run"]["status"], case.expected["run_status_after"], "{}", case.title());
    assert_eq!(stopped(&place.ask("and now?", &held[..1]).await), "run_killed", "{}", case.title());
    Outcome::Held
}
