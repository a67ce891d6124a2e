use proptest::prelude::*;

use super::*;
use crate::limits::RATE_LIMIT_MOST;
use crate::time::Timestamp;
use crate::wire::Reason;

const START: i64 = 1_770_000_000_000;

fn at(ms: i64) -> Timestamp {
    Timestamp(START + ms)
}

fn requests(limit: u64, window_seconds: u64) -> RateMeasure {
    RateMeasure::Requests { limit, window_ms: window_seconds * 1000 }
}

fn tokens(limit: u64, window_seconds: u64) -> RateMeasure {
    RateMeasure::Tokens { limit, window_ms: window_seconds * 1000 }
}

fn rule(measure: RateMeasure, keys: &[&str]) -> RateRule {
    let limit_keys = keys.iter().map(|key| key.parse().unwrap()).collect();
    RateRule { name: "base".into(), mode: Mode::Enforce, limit_keys, measure, id: 1 }
}

#[test]
fn a_counter_is_small() {
    assert!(size_of::<RateCounter>() <= 176, "{}", size_of::<RateCounter>());
}

#[test]
fn a_refused_call_is_not_counted() {
    let (measure, mut counter) = (requests(2, 60), RateCounter::default());
    assert!(counter.take(&measure, 1, at(0)).is_ok() && counter.take(&measure, 1, at(1)).is_ok());
    for _ in 0..100 {
        let exceeded = counter.take(&measure, 1, at(2)).unwrap_err();
        assert_eq!((exceeded.current, exceeded.limit, exceeded.asked), (2.0, 2.0, 1.0));
    }
    assert_eq!(counter.current(&measure, at(2)), 2.0);
}

#[test]
fn waiting_as_told_helps_and_waiting_less_does_not() {
    for window in [1, 7, 60, 3600, 86_400] {
        let (measure, mut counter) = (requests(3, window), RateCounter::default());
        let window = i64::try_from(window).unwrap() * 1000;
        for moment in [0, window / 3, window / 2] {
            counter.take(&measure, 1, at(moment)).unwrap();
        }
        let now = window / 2 + 1;
        let wait = i64::try_from(counter.take(&measure, 1, at(now)).unwrap_err().retry_after_ms).unwrap();
        assert!(now + wait <= window + window / 31 + 33, "{window}: {wait}");
        assert!(counter.take(&measure, 1, at(now + wait - 1)).is_err());
        assert!(counter.take(&measure, 1, at(now + wait)).is_ok());
    }
}

#[test]
fn tokens_are_corrected_by_what_was_used() {
    let (measure, mut counter) = (tokens(10_000, 60), RateCounter::default());
    counter.take(&measure, 5_000, at(0)).unwrap();
    counter.correct(&measure, at(0), -2_000);
    assert_eq!(counter.current(&measure, at(10)), 3_000.0);
    // More than was expected, and more than the limit: the next one waits.
    counter.correct(&measure, at(0), 9_000);
    let exceeded = counter.take(&measure, 1, at(1_000)).unwrap_err();
    assert_eq!(exceeded.current, 12_000.0);
    assert!(exceeded.retry_after_ms > 58_000, "{exceeded:?}");
    // Never below zero.
    counter.correct(&measure, at(0), -1_000_000);
    assert_eq!(counter.current(&measure, at(2_000)), 0.0);
    // What has left the window is not counted again.
    counter.take(&measure, 100, at(3_000)).unwrap();
    assert_eq!(counter.current(&measure, at(70_000)), 0.0);
    counter.correct(&measure, at(3_000), 500);
    assert_eq!(counter.current(&measure, at(70_000)), 0.0);
}

#[test]
fn the_largest_limit_can_be_counted() {
    let (measure, mut counter) = (tokens(RATE_LIMIT_MOST, 60), RateCounter::default());
    counter.take(&measure, RATE_LIMIT_MOST, at(0)).unwrap();
    assert!(counter.take(&measure, 1, at(0)).is_err());
    counter.correct(&measure, at(0), i64::MAX);
    assert!(counter.take(&measure, 1, at(0)).is_err());
    assert!(RateCounter::default().take(&measure, RATE_LIMIT_MOST + 1, at(0)).is_err());
    assert!(RateCounter::default().take(&measure, u64::MAX, at(0)).is_err());
}

#[test]
fn a_clock_that_goes_back_neither_frees_nor_blocks_for_ever() {
    let (measure, mut counter) = (requests(2, 60), RateCounter::default());
    counter.take(&measure, 2, at(0)).unwrap();
    assert!(counter.take(&measure, 1, at(-5_000)).is_err(), "a little back");
    let year = 365 * 86_400_000;
    let exceeded = counter.take(&measure, 1, at(-year)).unwrap_err();
    assert!(exceeded.retry_after_ms <= 63_000, "{exceeded:?}");
    counter.correct(&measure, at(0), -1);
    assert_eq!(counter.current(&measure, at(-year)), 1.0);
    assert!(counter.take(&measure, 2, at(-year + 63_000)).is_ok());

    let bucket = RateMeasure::Bucket { rps: 1.0, burst: 5.0 };
    let mut counter = RateCounter::default();
    counter.take(&bucket, 5, at(0)).unwrap();
    // Requests that overtake each other add nothing.
    for _ in 0..1000 {
        assert!(counter.take(&bucket, 1, at(-900)).is_err() && counter.take(&bucket, 1, at(0)).is_err());
    }
    assert!(counter.take(&bucket, 1, at(-year)).is_err());
    assert!(counter.take(&bucket, 1, at(-year + 1_000)).is_ok());
}

#[test]
fn a_bucket_fills_by_fractions_up_to_its_burst() {
    let (bucket, mut counter) = (RateMeasure::Bucket { rps: 0.1, burst: 1.0 }, RateCounter::default());
    counter.take(&bucket, 1, at(0)).unwrap();
    let exceeded = counter.take(&bucket, 1, at(2_500)).unwrap_err();
    assert_eq!((exceeded.current, exceeded.retry_after_ms), (0.75, 7_500));
    // A tenth of a second at a time.
    for step in 26..100 {
        assert!(counter.take(&bucket, 1, at(step * 100)).is_err(), "{step}");
    }
    assert!(counter.take(&bucket, 1, at(10_000)).is_ok());
    assert!(counter.take(&bucket, 1, at(1_000_000)).is_ok());
    assert!(counter.take(&bucket, 1, at(1_000_000)).is_err());
}

#[test]
fn idle_is_what_forgetting_does_not_change() {
    for measure in [requests(3, 10), tokens(100, 10), RateMeasure::Bucket { rps: 0.1, burst: 1.0 }] {
        let mut counter = RateCounter::default();
        assert!(counter.is_idle(&measure, at(0)));
        counter.take(&measure, 1, at(0)).unwrap();
        assert!(!counter.is_idle(&measure, at(9_000)), "{measure:?}");
        assert!(counter.is_idle(&measure, at(11_000)), "{measure:?}");
    }
}

#[test]
fn a_refusal_says_what_and_what_to_do() {
    let exceeded = RateExceeded { current: 60.0, limit: 60.0, asked: 1.0, retry_after_ms: 11_200 };
    let refusal = exceeded.refusal(&rule(requests(60, 60), &["agent", "header:x-tool"]));
    assert_eq!(
        refusal.message,
        "Rate limit exceeded: `base` allows 60 requests in 60 seconds for each agent and header:x-tool; wait 12 \
         seconds, or raise `requests` of the limit"
    );
    assert_eq!((refusal.reason, refusal.retry_after_seconds), (Reason::RateLimited, Some(12)));
    let expected = serde_json::json!({"exceeded_limit": "base", "limit": 60, "current": 60, "window_seconds": 60,
        "limit_keys": ["agent", "header:x-tool"]});
    assert_eq!(serde_json::Value::from(refusal.fields), expected);

    let exceeded = RateExceeded { current: 39.75, limit: 40.0, asked: 1.0, retry_after_ms: 38 };
    let refusal = exceeded.refusal(&rule(RateMeasure::Bucket { rps: 20.0, burst: 40.0 }, &[]));
    assert!(refusal.message.contains("20 requests a second and 40 at once; wait 1 second, or raise `rps` or `burst`"));
    let expected = serde_json::json!({"exceeded_limit": "base", "limit": 40, "current": 39.75, "rps": 20, "burst": 40,
        "limit_keys": []});
    assert_eq!(serde_json::Value::from(refusal.fields), expected);
    assert_eq!(refusal.retry_after_seconds, Some(1));
}

#[test]
fn a_call_larger_than_the_limit_is_told_that_waiting_does_not_help() {
    let measure = tokens(1_000, 60);
    let exceeded = RateCounter::default().take(&measure, 1_001, at(0)).unwrap_err();
    assert!(exceeded.is_hopeless());
    let refusal = exceeded.refusal(&rule(measure, &["agent"]));
    assert!(refusal.message.contains("this call alone is expected to use 1001 tokens"), "{}", refusal.message);
    assert_eq!((refusal.retry_after_seconds, &refusal.fields["expected_tokens"]), (None, &1001.into()));
    let exactly = RateCounter::default().take(&measure, 1_000, at(0));
    assert!(exactly.is_ok());
}

/// Gaps between calls, and what each asks.
fn traffic() -> impl Strategy<Value = Vec<(i64, u64)>> {
    proptest::collection::vec((prop_oneof![0..50_i64, 0..5_000_i64, Just(-20)], 1..40_u64), 1..300)
}

proptest! {
    #[test]
    fn no_window_ever_holds_more_than_the_limit(traffic in traffic(), limit in 1..100_u64, window in 1..20_u64) {
        let (measure, mut counter) = (tokens(limit, window), RateCounter::default());
        // Time begins here for the counter, too, also where the first call comes before it.
        counter.current(&measure, at(0));
        let window_ms = i64::try_from(window).unwrap() * 1000;
        let (mut now, mut clock) = (0, 0);
        let mut taken: Vec<(i64, u64)> = Vec::new();
        for (gap, amount) in traffic {
            now += gap;
            clock = clock.max(now);
            if counter.take(&measure, amount, at(now)).is_ok() {
                taken.push((clock, amount));
                let in_window: u64 =
                    taken.iter().filter(|(moment, _)| clock - moment <= window_ms).map(|(_, amount)| amount).sum();
                prop_assert!(in_window <= limit, "{in_window} of {limit}");
            }
        }
    }

    #[test]
    fn a_bucket_never_gives_more_than_burst_and_rate(traffic in traffic(), rps in 0.1..50.0_f64, more in 0.0..50.0_f64) {
        let burst = (rps + more).max(1.0);
        let (measure, mut counter) = (RateMeasure::Bucket { rps, burst }, RateCounter::default());
        // Full at the beginning, also where the first call comes before it.
        counter.current(&measure, at(0));
        let (mut now, mut clock, mut given) = (0, 0, 0.0);
        for (gap, amount) in traffic {
            now += gap;
            clock = clock.max(now);
            if counter.take(&measure, amount, at(now)).is_ok() {
                given += amount as f64;
            }
            prop_assert!(given <= burst + clock as f64 / 1000.0 * rps + 1e-6);
        }
    }
}
