//! Identical requests.

use serde_json::Value;
use sprag_core::loops::{Action, Finding, Mode, Preset, RepeatCounters, RepeatRule, Rules, fingerprint};
use sprag_core::time::Timestamp;

use crate::{Case, Outcome};

fn fairvisor() -> RepeatRule {
    Rules::preset(Preset::Fairvisor).repeat
}

/// Checks so many identical requests at once; gives what the last one found.
fn last_of(checks: u32, rule: &RepeatRule) -> Option<Finding> {
    let mut counters = RepeatCounters::default();
    (0..checks).map(|_| counters.check(1, Timestamp(0), rule)).last().flatten()
}

pub(crate) fn counts(case: &Case, name: &str) -> Outcome {
    let mut rule = fairvisor();
    match case.name.as_str() {
        "delay_cap_30s" | "throttle_header" => {
            let count = case.number("count");
            let finding = last_of(count, &rule).expect(name);
            assert_eq!(finding.count, count, "{name}");
            assert_eq!(finding.throttle_ms(), u64::from(count * 100).min(30_000), "{name}");
        }
        "ttl_refresh" => {
            let mut counters = RepeatCounters::default();
            let times = case.input["identical_requests_at_s"].as_array().unwrap();
            let at = |time: &Value| Timestamp(time.as_i64().unwrap() * 1000);
            let finding = times.iter().map(|time| counters.check(1, at(time), &rule)).last().flatten().expect(name);
            assert_eq!(Some(u64::from(finding.count)), case.expected["count_at_last"].as_u64(), "{name}");
        }
        "shadow_isolated" => {
            let mut counters = RepeatCounters::default();
            rule.common.mode = Mode::Shadow;
            for _ in 0..case.number("shadow_checks") {
                counters.check(1, Timestamp(0), &rule);
            }
            assert!(counters.check(1, Timestamp(0), &fairvisor()).is_none(), "{name}");
        }
        "fingerprints_independent" => {
            rule.threshold = case.number("threshold");
            let mut counters = RepeatCounters::default();
            let mut detected = |key, checks| (0..checks).any(|_| counters.check(key, Timestamp(0), &rule).is_some());
            assert!(detected(1, 5) && !detected(2, 4), "{name}");
        }
        "method_changes_fingerprint" | "descriptors_isolate" | "query_order_irrelevant" => {
            let equal = fingerprint_of(&case.input["a"]) == fingerprint_of(&case.input["b"]);
            assert_eq!(Some(equal), case.expected["equal"].as_bool(), "{name}");
        }
        "golden_ten_checks" => {
            rule.threshold = case.number("threshold");
            assert!((1..10).all(|checks| last_of(checks, &rule).is_none()), "{name}");
            assert_eq!((last_of(10, &rule).expect(name).count, rule.common.action), (10, Action::Reject), "{name}");
        }
        "reject_headers" => return Outcome::Left("the proxy"),
        "storage_error_fails_open" => return Outcome::Left("the store"),
        _ => counts_as_configured(case, name),
    }
    Outcome::Held
}

fn counts_as_configured(case: &Case, name: &str) {
    let mut rule = fairvisor();
    let config = &case.input["config"];
    let number = |key: &str| u32::try_from(config[key].as_u64().unwrap()).unwrap();
    rule.threshold = number("threshold_identical_requests");
    rule.common.window.seconds = number("window_seconds");
    rule.common.action = serde_json::from_value(config["action"].clone()).unwrap();
    let checks = case.number("same_fingerprint_checks");
    let finding = last_of(checks, &rule);
    assert_eq!(Some(finding.is_some()), case.expected["detected"].as_bool(), "{name}");
    let Some(finding) = finding else { return };
    assert_eq!(Some(u64::from(finding.count)), case.expected["count"].as_u64(), "{name}");
    if let Some(action) = case.expected["action"].as_str() {
        assert_eq!(rule.common.action.as_str(), action, "{name}");
    }
    if let Some(delay) = case.expected["delay_ms"].as_u64() {
        assert_eq!(finding.throttle_ms(), delay, "{name}");
    }
    if let Some(seconds) = case.expected["retry_after"].as_u64() {
        assert_eq!(u64::from(rule.common.window.seconds), seconds, "{name}");
    }
}

fn fingerprint_of(request: &Value) -> u64 {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let query: Vec<String> = match &request["query"] {
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", text(value))).collect(),
        Value::Array(pairs) => pairs.iter().map(|pair| format!("{}={}", text(&pair[0]), text(&pair[1]))).collect(),
        _ => Vec::new(),
    };
    let descriptors: Vec<(&str, &str)> = request["descriptors"]
        .as_object()
        .map(|map| map.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect())
        .unwrap_or_default();
    fingerprint(&text(&request["method"]), &text(&request["path"]), &query.join("&"), None, &descriptors)
}

pub(crate) fn is_configured(case: &Case, name: &str) -> Outcome {
    let mut rules = Rules::preset(Preset::Fairvisor);
    let number = |key: &str| u32::try_from(case.input[key].as_u64().unwrap_or_default()).unwrap();
    if case.input["enabled"] == true {
        rules.repeat.common.window.seconds = number("window_seconds");
        rules.repeat.threshold = number("threshold_identical_requests");
    } else {
        rules.repeat.common.mode = Mode::Off;
    }
    let problems = rules.check();
    let knows_action =
        case.input["action"].is_null() || serde_json::from_value::<Action>(case.input["action"].clone()).is_ok();
    let is_valid = problems.is_empty() && knows_action;
    assert_eq!(Some(is_valid), case.expected["valid"].as_bool(), "{name}: {problems:?}");
    Outcome::Held
}
