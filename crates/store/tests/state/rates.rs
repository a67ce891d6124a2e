//! What every run state must do with rates: one suite over memory and over Redis, and a random storm in which both must
//! say the same.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sprag_core::loops::Mode;
use sprag_core::policy::{LimitKey, RateExceeded, RateMeasure, RateRule};
use sprag_core::time::Timestamp;
use sprag_store::state::{RateAsk, Rated};

use crate::common;
use crate::contract::{AnyState, Taken, over_every_state};

over_every_state!(
    a_refusal_by_one_takes_from_none,
    tokens_are_corrected_when_the_call_is_over,
    a_rule_on_tokens_is_not_asked_about_a_call_without_any,
    rules_in_shadow_count_on_their_own_and_refuse_nothing,
    a_bucket_fills_with_time,
    a_window_slides,
    threads_never_take_more_than_the_limit,
);

const START: i64 = 1_770_000_000_000;

fn at(ms: i64) -> Timestamp {
    Timestamp(START + ms)
}

fn rule(id: u64, mode: Mode, measure: RateMeasure) -> RateRule {
    // Some lie with their agent, some alone.
    let limit_keys = if id.is_multiple_of(2) { vec![LimitKey::Agent] } else { Vec::new() };
    RateRule { name: format!("rule {id}").into(), mode, limit_keys, measure, id }
}

fn requests(id: u64, limit: u64) -> RateRule {
    rule(id, Mode::Enforce, RateMeasure::Requests { limit, window_ms: 60_000 })
}

fn tokens(id: u64, limit: u64) -> RateRule {
    rule(id, Mode::Enforce, RateMeasure::Tokens { limit, window_ms: 60_000 })
}

fn ask(rule: &RateRule, bucket: u64, amount: u64) -> RateAsk<'_> {
    RateAsk { rule, bucket, amount }
}

fn take(state: &AnyState, asks: &[RateAsk<'_>], ms: i64) -> Rated {
    let (rated, _) = state.take_rates(asks, at(ms));
    rated
}

/// What a rule counts: asked for more than there can be.
fn counted(state: &AnyState, rule: &RateRule, bucket: u64, ms: i64) -> f64 {
    let hopeless = rule.measure.limit() as u64 + 1;
    take(state, &[ask(rule, bucket, hopeless)], ms).refused.unwrap().1.current
}

fn a_refusal_by_one_takes_from_none(state: &AnyState) {
    let (wide, narrow, day) = (requests(1, 100), requests(2, 1), tokens(3, 1_000));
    let asks = [ask(&wide, 10, 1), ask(&narrow, 20, 1), ask(&day, 30, 400)];
    assert_eq!(take(state, &asks, 0).refused, None);
    for _ in 0..50 {
        let rated = take(state, &asks, 0);
        assert_eq!(rated.refused.map(|(index, exceeded)| (index, exceeded.current)), Some((1, 1.0)));
    }
    assert_eq!([counted(state, &wide, 10, 0), counted(state, &day, 30, 0)], [1.0, 400.0]);
    let rated = take(state, &[ask(&wide, 10, 1), ask(&day, 30, 601)], 0);
    assert_eq!(rated.refused.map(|(index, _)| index), Some(1));
    assert_eq!(counted(state, &wide, 10, 0), 1.0);
}

fn tokens_are_corrected_when_the_call_is_over(state: &AnyState) {
    let (calls, minute, day) = (requests(1, 100), tokens(2, 10_000), tokens(3, 100_000));
    let (_, taken) = state.take_rates(&[ask(&calls, 1, 1), ask(&minute, 2, 5_000), ask(&day, 3, 5_000)], at(0));
    state.correct_rates(taken, 3_000, at(1_000));
    assert_eq!([counted(state, &minute, 2, 1_000), counted(state, &day, 3, 1_000)], [3_000.0; 2]);
    let (_, taken) = state.take_rates(&[ask(&minute, 2, 1_000)], at(1_000));
    state.correct_rates(taken, 0, at(2_000));
    assert_eq!([counted(state, &minute, 2, 2_000), counted(state, &calls, 1, 2_000)], [3_000.0, 1.0]);
    // What has left the window is not counted again.
    let (_, taken) = state.take_rates(&[ask(&minute, 2, 10)], at(3_000));
    take(state, &[ask(&minute, 2, 7)], 80_000);
    state.correct_rates(taken, 9_000, at(80_000));
    assert_eq!(counted(state, &minute, 2, 80_000), 7.0);
}

fn a_rule_on_tokens_is_not_asked_about_a_call_without_any(state: &AnyState) {
    let day = tokens(1, 10);
    assert_eq!(take(state, &[ask(&day, 1, 10)], 0).refused, None);
    assert!(take(state, &[ask(&day, 1, 1)], 0).refused.is_some());
    assert_eq!(take(state, &[ask(&day, 1, 0)], 0), Rated::default());
}

fn rules_in_shadow_count_on_their_own_and_refuse_nothing(state: &AnyState) {
    let (kept, shadow) = (requests(1, 3), rule(2, Mode::Shadow, requests(2, 2).measure));
    let off = rule(3, Mode::Off, requests(3, 1).measure);
    let asks = [ask(&off, 5, 1), ask(&shadow, 10, 1), ask(&kept, 20, 1)];
    let outcomes: Vec<_> = (0..5)
        .map(|_| {
            let rated = take(state, &asks, 0);
            let would: Vec<usize> = rated.would_refuse.iter().map(|(index, _)| *index).collect();
            (rated.refused.map(|(index, _)| index), would)
        })
        .collect();
    let expected = [(None, vec![]), (None, vec![]), (None, vec![1]), (Some(2), vec![1]), (Some(2), vec![1])];
    assert_eq!(outcomes, expected);
}

fn a_bucket_fills_with_time(state: &AnyState) {
    let bucket = rule(1, Mode::Enforce, RateMeasure::Bucket { rps: 2.0, burst: 3.0 });
    let passes = |ms| take(state, &[ask(&bucket, 1, 1)], ms).refused;
    assert_eq!([passes(0), passes(0), passes(0)], [None; 3]);
    let (_, exceeded) = passes(100).unwrap();
    assert_eq!((exceeded.limit, exceeded.asked, exceeded.retry_after_ms), (3.0, 1.0, 400));
    assert_eq!(passes(500), None);
    assert!(passes(500).is_some() && passes(60_000).is_none());
}

fn a_window_slides(state: &AnyState) {
    let minute = requests(1, 2);
    let passes = |ms| take(state, &[ask(&minute, 1, 1)], ms).refused;
    assert_eq!([passes(0), passes(30_000)], [None; 2]);
    let (_, exceeded) = passes(30_000).unwrap();
    assert_eq!((exceeded.current, exceeded.limit), (2.0, 2.0));
    let waited = 30_000 + i64::try_from(exceeded.retry_after_ms).unwrap();
    assert!(waited >= 60_000, "{waited}");
    assert!(passes(waited - 1).is_some() && passes(waited).is_none() && passes(waited).is_some());
}

fn threads_never_take_more_than_the_limit(state: &AnyState) {
    let (calls, all) = (requests(1, 100), requests(2, 150));
    let passed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let (calls, all, passed) = (&calls, &all, &passed);
            scope.spawn(move || {
                let asks = [ask(calls, 10 + number % 2, 1), ask(all, 20, 1)];
                let of_one = (0..80).filter(|_| take(state, &asks, 0).refused.is_none()).count();
                passed.fetch_add(of_one, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(passed.into_inner(), 150);
    assert_eq!(counted(state, &all, 20, 0), 150.0);
}

/// The same thousand calls at the same moments, of all measures and modes, some corrected late: Redis says what memory says.
#[test]
fn redis_counts_as_memory_does() {
    let Some(redis) = AnyState::redis() else { return };
    let memory = AnyState::memory();
    let measures = [
        RateMeasure::Requests { limit: 12, window_ms: 10_000 },
        RateMeasure::Tokens { limit: 900, window_ms: 7_001 },
        RateMeasure::Bucket { rps: 1.5, burst: 4.0 },
        RateMeasure::Requests { limit: 3, window_ms: 400 },
    ];
    let rules: Vec<RateRule> = (0..8)
        .map(|id| {
            let mode = if id % 3 == 2 { Mode::Shadow } else { Mode::Enforce };
            rule(id, mode, measures[id as usize % measures.len()])
        })
        .collect();
    let mut random = common::Random::new(7);
    let mut now = 0;
    let mut under_way: Vec<(Taken, Taken, u64)> = Vec::new();
    let mut refusals = 0;
    for step in 0..1000 {
        // Now and then the clock goes back, or a long time passes.
        now += match random.below(50) {
            0 => -300,
            1 => 20_000,
            _ => random.below(400) as i64,
        };
        let mut asks: Vec<RateAsk<'_>> = Vec::new();
        for rule in &rules {
            if random.below(2) == 0 {
                let amount = if rule.measure.counts_tokens() { random.below(300) } else { 1 };
                asks.push(ask(rule, rule.id * 10 + random.below(2), amount));
            }
        }
        let (in_memory, taken) = memory.take_rates(&asks, at(now));
        let (in_redis, taken_too) = redis.take_rates(&asks, at(now));
        assert_eq!(told(&in_redis), told(&in_memory), "step {step}: {in_redis:?}, {in_memory:?}");
        refusals += usize::from(in_memory.refused.is_some());
        under_way.push((taken, taken_too, random.below(400)));
        if under_way.len() > 5 {
            let place = random.below(under_way.len() as u64) as usize;
            let (taken, taken_too, used) = under_way.swap_remove(place);
            memory.correct_rates(taken, used, at(now));
            redis.correct_rates(taken_too, used, at(now));
        }
    }
    assert!((100..900).contains(&refusals), "{refusals} of 1000 were refused");
}

/// What came of asking. Buckets are filled in fractions, whose last digit depends on how often somebody looked.
fn told(rated: &Rated) -> Vec<(bool, usize, i64, i64)> {
    let tell = |is_refused: bool, (place, exceeded): &(usize, RateExceeded)| {
        let current = (exceeded.current * 1e6).round() as i64;
        (is_refused, *place, current, exceeded.retry_after_ms as i64)
    };
    let would = rated.would_refuse.iter().map(|no_room| tell(false, no_room));
    rated.refused.iter().map(|no_room| tell(true, no_room)).chain(would).collect()
}
