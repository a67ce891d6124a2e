//! Rate limits: windows, buckets, tokens, and what tells their counters apart.
//!
//! Their bucket can charge a request more than one; ours does so only here. Their limit on tokens is a bucket that fills
//! all the time, ours a window: what passes at once and what is refused is the same.

use std::collections::HashMap;

use serde_json::Value;
use sprag_core::policy::{Descriptor, LimitKey, RateCounter, RateExceeded, RateMeasure, RateRule, Zone};
use sprag_core::time::Timestamp;
use sprag_core::wire::Reason;

use crate::{Case, Outcome};

const START: i64 = 1_770_000_000_000;

fn at(seconds: f64) -> Timestamp {
    Timestamp(START + (seconds * 1000.0) as i64)
}

pub(crate) fn limits_requests(case: &Case, name: &str) -> Outcome {
    if case.name == "update_replaces_all" {
        return Outcome::Left("the configuration: a list is replaced as a whole");
    }
    let rules: HashMap<&str, RateMeasure> = case.input["config"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, limit)| {
            let window_ms = limit[1].as_u64().unwrap() * 1000;
            (key.as_str(), RateMeasure::Requests { limit: limit[0].as_u64().unwrap(), window_ms })
        })
        .collect();
    let first = rules.keys().next().copied().unwrap_or_default();
    let asked: Vec<(&str, f64)> = match (&case.input["checks"], &case.input["timeline_s"]) {
        (Value::Number(count), _) => vec![(first, 0.0); usize::try_from(count.as_u64().unwrap()).unwrap()],
        (Value::Array(keys), _) => keys.iter().map(|key| (key.as_str().unwrap_or_default(), 0.0)).collect(),
        (_, moments) => moments.as_array().unwrap().iter().map(|at| (first, at.as_f64().unwrap())).collect(),
    };
    let mut counters: HashMap<&str, RateCounter> = HashMap::new();
    let mut refused: Vec<(RateMeasure, RateExceeded)> = Vec::new();
    let allowed: Vec<bool> = asked
        .iter()
        .map(|&(key, seconds)| {
            let Some(measure) = rules.get(key) else { return true };
            let taken = counters.entry(key).or_default().take(measure, 1, at(seconds));
            refused.extend(taken.err().map(|exceeded| (*measure, exceeded)));
            taken.is_ok()
        })
        .collect();
    if let Some(expected) = case.expected["allowed"].as_array() {
        assert_eq!(allowed.iter().copied().map(Value::from).collect::<Vec<_>>(), *expected, "{name}");
    }
    let [least, most] = match (&case.expected["retry_after_gte"], &case.expected["retry_after_between"]) {
        (Value::Number(least), _) => [least.as_u64().unwrap(), u64::MAX],
        (_, Value::Array(between)) => [between[0].as_u64().unwrap(), between[1].as_u64().unwrap()],
        _ => return Outcome::Held,
    };
    let (measure, exceeded) = refused.last().expect(name);
    let told = u64::from(exceeded.refusal(&rule(*measure)).retry_after_seconds.expect(name));
    assert!((least..=most).contains(&told), "{name}: {told}");
    Outcome::Held
}

pub(crate) fn fills_buckets(case: &Case, name: &str) -> Outcome {
    match case.name.as_str() {
        "header_cost" | "header_cost_bad_value" => return Outcome::Left("nobody: a request counts as one"),
        "malformed_state_is_fresh" => return Outcome::Left("nobody: counters are no texts"),
        "key_isolation" => return keeps_keys_apart(case, name),
        _ => {}
    }
    let input = |key: &str| case.input[key].as_f64();
    let rate = input("tokens_per_second").unwrap_or(100.0);
    let measure = RateMeasure::Bucket { rps: rate, burst: input("burst").unwrap() };
    let cost = input("cost").unwrap_or(1.0) as u64;
    let mut counter = RateCounter::default();
    let mut now = 0.0;
    let remaining =
        |counter: &mut RateCounter, now| Value::from((measure.limit() - counter.current(&measure, at(now))) as u64);
    let mut last = Ok(());
    if let Some(consumed) = input("consumed").or(input("tokens").map(|left| measure.limit() - left)) {
        counter.take(&measure, consumed as u64, at(now)).expect(name);
    }
    let mut levels = Vec::new();
    let requests = input("requests").unwrap_or(if input("consumed").is_some() { 0.0 } else { 1.0 });
    for _ in 0..requests as u64 {
        last = counter.take(&measure, cost, at(now));
        levels.push(remaining(&mut counter, now));
    }
    if let Some(seconds) = input("advance_s") {
        if input("then_reject").is_some() {
            assert!(counter.take(&measure, 1, at(now)).is_err(), "{name}");
        }
        now += seconds;
        let cost = input("then_cost").unwrap_or(1.0) as u64;
        last = counter.take(&measure, cost, at(now));
    }
    let told = ["eleventh", "fifth", "last"].iter().map(|key| &case.expected[*key]).find(|told| told.is_object());
    let told = told.unwrap_or(&case.expected);
    if let Some(is_allowed) = told["allowed"].as_bool() {
        assert_eq!(last.is_ok(), is_allowed, "{name}");
    }
    if let Some(seconds) = told["retry_after"].as_u64() {
        assert_eq!(last.unwrap_err().retry_after_ms.div_ceil(1000), seconds, "{name}");
    }
    if let Some(limit) = told["limit"].as_f64() {
        assert_eq!(last.unwrap_err().limit, limit, "{name}");
    }
    match &case.expected["remaining"] {
        Value::Array(expected) => assert_eq!(levels[..expected.len()], expected[..], "{name}"),
        Value::Number(left) => assert_eq!(remaining(&mut counter, now), Value::Number(left.clone()), "{name}"),
        _ => {}
    }
    Outcome::Held
}

fn keeps_keys_apart(case: &Case, name: &str) -> Outcome {
    let rps = case.input["tokens_per_second"].as_f64().unwrap();
    let measure = RateMeasure::Bucket { rps, burst: case.input["burst"].as_f64().unwrap() };
    let mut counters: HashMap<&str, RateCounter> = HashMap::new();
    let left = case.texts("keys").into_iter().map(|key| {
        let counter = counters.entry(key).or_default();
        counter.take(&measure, 1, at(0.0)).expect(name);
        Value::from((measure.limit() - counter.current(&measure, at(0.0))) as u64)
    });
    assert_eq!(left.collect::<Vec<_>>(), *case.expected["remaining"].as_array().unwrap(), "{name}");
    Outcome::Held
}

pub(crate) fn limits_tokens(case: &Case, name: &str) -> Outcome {
    let input = |key: &str| case.input[key].as_u64().unwrap_or_default();
    let minute = RateMeasure::Tokens { limit: input("tokens_per_minute"), window_ms: 60_000 };
    let day = RateMeasure::Tokens { limit: input("tokens_per_day"), window_ms: 86_400_000 };
    let expected_use = input("prompt_chars").div_ceil(4) + input("max_tokens");
    let mut counter = RateCounter::default();
    match case.name.as_str() {
        "within_tpm" => {
            counter.take(&minute, expected_use, at(0.0)).expect(name);
            let left = minute.limit() - counter.current(&minute, at(0.0));
            assert_eq!(Value::from(left as u64), case.expected["remaining_tpm"], "{name}");
        }
        "tpm_exhausted" => {
            counter.take(&minute, expected_use, at(0.0)).expect(name);
            let refusal = counter.take(&minute, expected_use, at(0.0)).unwrap_err().refusal(&rule(minute));
            assert_eq!(refusal.reason, Reason::RateLimited, "{name}");
        }
        "tpd_exceeded" | "tpd_reject_refunds_tpm" => {
            counter.take(&day, input("consumed_today"), at(0.0)).expect(name);
            let exceeded = counter.take(&day, expected_use, at(1.0)).unwrap_err();
            assert!(exceeded.refusal(&rule(day)).retry_after_seconds.is_some_and(|seconds| seconds >= 1), "{name}");
            if let Some(left) = case.expected["remaining_tokens"].as_f64() {
                assert_eq!(exceeded.limit - exceeded.current, left, "{name}");
            }
            // That a refusal takes from no other rule is tested where rules are asked together, in the store.
            if case.name == "tpd_reject_refunds_tpm" {
                return Outcome::Left("the store: all rules or none");
            }
        }
        // A window has no midnight: what was used a day ago has left.
        "tpd_midnight_rollover" => {
            counter.take(&day, input("consumed_today"), at(0.0)).expect(name);
            assert!(counter.take(&day, 1, at(0.0)).is_err(), "{name}");
            assert!(counter.take(&day, 1, at(86_400.0 * 33.0 / 31.0)).is_ok(), "{name}");
        }
        "reconcile_refund" => {
            let measure = RateMeasure::Tokens { limit: 10_000, window_ms: 60_000 };
            let [reserved, actual] = [input("reserved"), input("actual")];
            counter.take(&measure, reserved, at(0.0)).expect(name);
            counter.correct(&measure, at(0.0), actual as i64 - reserved as i64);
            assert_eq!(counter.current(&measure, at(1.0)), actual as f64, "{name}");
        }
        "openai_error_shape" => return Outcome::Left("nobody: the type of an error is Sprag's reason"),
        "prompt_too_large" | "total_too_large" => {
            return Outcome::Left("nobody: calls have no limit of their own size");
        }
        "estimator_counts_message_content_only" | "header_hint" => {
            return Outcome::Left("money: what a call is expected to use");
        }
        _ => return Outcome::Left("nobody: a window has no burst"),
    }
    Outcome::Held
}

pub(crate) fn describes(case: &Case, name: &str) -> Outcome {
    match case.name.as_str() {
        "header_case_insensitive" => {
            let key: LimitKey = case.text("limit_key").parse().expect(name);
            let header = case.input["headers"].as_object().unwrap().keys().next().unwrap();
            assert_eq!(key, LimitKey::Carried(Descriptor::Header(header.clone())), "{name}");
        }
        "invalid_format" => assert!(case.text("limit_key").parse::<LimitKey>().is_err(), "{name}"),
        "numeric_claim_is_string" => return Outcome::Left("the gateway: claims are read there"),
        _ => return Outcome::Left("the gateway; there are no countries"),
    }
    Outcome::Held
}

pub(crate) fn has_period(case: &Case, name: &str) -> Outcome {
    if case.text("period") != "1d" {
        return Outcome::Left("nobody: budgets are for days and months");
    }
    let seconds = |value: &Value| Timestamp(value.as_i64().unwrap() * 1000);
    let day = Zone::default().day(seconds(&case.input["now"]));
    assert_eq!(day.start, seconds(&case.expected["period_start"]), "{name}");
    Outcome::Held
}

fn rule(measure: RateMeasure) -> RateRule {
    RateRule { name: "case".into(), mode: sprag_core::loops::Mode::Enforce, limit_keys: Vec::new(), measure, id: 1 }
}
