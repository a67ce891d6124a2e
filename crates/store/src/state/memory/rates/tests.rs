use super::*;

const START: i64 = 1_770_000_000_000;

fn at(ms: i64) -> Timestamp {
    Timestamp(START + ms)
}

fn rule(id: u64, mode: Mode, measure: RateMeasure) -> RateRule {
    RateRule { name: format!("rule {id}").into(), mode, limit_keys: Vec::new(), measure, id }
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

fn counted(rates: &Rates, rule: &RateRule, bucket: u64) -> f64 {
    with_lock(&rates.counters, |counters| match counters.own.get_mut(&bucket) {
        Some(counter) => counter.counter.current(&rule.measure, at(0)),
        None => 0.0,
    })
}

#[test]
fn a_refusal_by_one_takes_from_none() {
    let rates = Rates::default();
    let (wide, narrow, day) = (requests(1, 100), requests(2, 1), tokens(3, 1_000));
    let asks = [ask(&wide, 10, 1), ask(&narrow, 20, 1), ask(&day, 30, 400)];
    assert_eq!(rates.take(&asks, at(0)).refused, None);
    for _ in 0..50 {
        let rated = rates.take(&asks, at(0));
        assert_eq!(rated.refused.map(|(index, exceeded)| (index, exceeded.current)), Some((1, 1.0)));
        assert!(rated.taken.is_empty());
    }
    assert_eq!([counted(&rates, &wide, 10), counted(&rates, &day, 30)], [1.0, 400.0]);
    // The last of them refuses too, and the first is untouched.
    let rated = rates.take(&[ask(&wide, 10, 1), ask(&day, 30, 601)], at(0));
    assert_eq!(rated.refused.map(|(index, _)| index), Some(1));
    assert_eq!(counted(&rates, &wide, 10), 1.0);
}

#[test]
fn tokens_are_corrected_when_the_call_is_over() {
    let rates = Rates::default();
    let (calls, minute, day) = (requests(1, 100), tokens(2, 10_000), tokens(3, 100_000));
    let rated = rates.take(&[ask(&calls, 1, 1), ask(&minute, 2, 5_000), ask(&day, 3, 5_000)], at(0));
    assert_eq!(rated.taken.tokens.len(), 2);
    rates.correct(&rated.taken, 3_000);
    assert_eq!([counted(&rates, &minute, 2), counted(&rates, &day, 3)], [3_000.0; 2]);
    let rated = rates.take(&[ask(&minute, 2, 1_000)], at(0));
    rates.correct(&rated.taken, 0);
    assert_eq!(counted(&rates, &minute, 2), 3_000.0);
    // Without rules on tokens there is nothing to keep.
    let rated = rates.take(&[ask(&calls, 1, 1)], at(0));
    assert_eq!((rated.taken.is_empty(), rated.taken.tokens.capacity()), (true, 0));
    rates.correct(&rated.taken, u64::MAX);
    assert_eq!(counted(&rates, &calls, 1), 2.0);
}

#[test]
fn a_rule_on_tokens_is_not_asked_about_a_call_without_any() {
    let rates = Rates::default();
    let day = tokens(1, 10);
    assert_eq!(rates.take(&[ask(&day, 1, 10)], at(0)).refused, None);
    assert!(rates.take(&[ask(&day, 1, 1)], at(0)).refused.is_some());
    assert_eq!(rates.take(&[ask(&day, 1, 0)], at(0)), Rated::default());
}

#[test]
fn rules_in_shadow_count_on_their_own_and_refuse_nothing() {
    let rates = Rates::default();
    let (kept, shadow) = (requests(1, 3), rule(2, Mode::Shadow, requests(2, 2).measure));
    let off = rule(3, Mode::Off, requests(3, 1).measure);
    let asks = [ask(&off, 5, 1), ask(&shadow, 10, 1), ask(&kept, 20, 1)];
    let outcomes: Vec<_> = (0..5)
        .map(|_| {
            let rated = rates.take(&asks, at(0));
            let would: Vec<usize> = rated.would_refuse.iter().map(|(index, _)| *index).collect();
            (rated.refused.map(|(index, _)| index), would)
        })
        .collect();
    let expected = [(None, vec![]), (None, vec![]), (None, vec![1]), (Some(2), vec![1]), (Some(2), vec![1])];
    assert_eq!(outcomes, expected);
    assert_eq!((counted(&rates, &shadow, 10), counted(&rates, &off, 5)), (2.0, 0.0));
}

#[test]
fn counters_are_bounded_and_nobody_escapes_by_being_new() {
    let room = 100;
    let rates = Rates::with_room(room);
    let (first, second) = (requests(1, 2), requests(2, 2));
    for bucket in 0..100 {
        assert_eq!(rates.take(&[ask(&first, bucket, 1)], at(0)).refused, None, "{bucket}");
    }
    assert_eq!(rates.len(), room);
    // One more: all that are new share two calls for each rule.
    let passed = (1000..2000).filter(|&bucket| rates.take(&[ask(&first, bucket, 1)], at(1)).refused.is_none()).count();
    assert_eq!(passed, 2);
    assert_eq!(rates.take(&[ask(&second, 5000, 1)], at(1)).refused, None);
    assert_eq!(rates.len(), room + 2);
    // Those that have a counter keep it.
    assert_eq!(rates.take(&[ask(&first, 50, 1)], at(1)).refused, None);
    assert!(rates.take(&[ask(&first, 50, 1)], at(1)).refused.is_some());
    // When the others count nothing any more, they make room.
    assert_eq!(rates.take(&[ask(&first, 1000, 1)], at(70_000)).refused, None);
    assert!(with_lock(&rates.counters, |counters| counters.own.contains_key(&1000)));
    assert!(rates.len() <= room + 2, "{}", rates.len());
}

#[test]
fn shared_counters_are_bounded_and_corrected() {
    let rates = Rates::with_room(16);
    let rules: Vec<RateRule> = (0..100).map(|id| tokens(id, 1_000)).collect();
    for (bucket, rule) in (0..).zip(&rules) {
        let rated = rates.take(&[ask(rule, bucket, 600)], at(0));
        assert_eq!(rated.refused, None);
        assert!(rates.len() <= 17, "{}", rates.len());
    }
    let last = rules.last().unwrap();
    let rated = rates.take(&[ask(last, 7777, 300)], at(0));
    rates.correct(&rated.taken, 0);
    let rated = rates.take(&[ask(last, 8888, 401)], at(0));
    assert_eq!(rated.refused.map(|(_, exceeded)| exceeded.current), Some(600.0));
}

#[test]
fn threads_never_take_more_than_the_limit() {
    let rates = Rates::default();
    let (calls, all) = (requests(1, 100), requests(2, 150));
    let passed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (rates, calls, all) = (&rates, &calls, &all);
                scope.spawn(move || {
                    let asks = [ask(calls, 10 + thread % 2, 1), ask(all, 20, 1)];
                    (0..200).filter(|_| rates.take(&asks, at(0)).refused.is_none()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(passed, 150);
    assert_eq!(counted(&rates, &all, 20), 150.0);
    assert_eq!(counted(&rates, &calls, 10) + counted(&rates, &calls, 11), 150.0);
}

/// Prints what a call pays with many live counters; run it with `--release` for true numbers.
#[test]
fn taking_is_cheap_with_many_live_counters() {
    let rates = Rates::default();
    let rules = [requests(1, 1_000_000), tokens(2, 4_000_000_000), requests(3, 1_000_000)];
    let bucket_rule = rule(4, Mode::Enforce, RateMeasure::Bucket { rps: 1e6, burst: 1e6 });
    let live = 20_000_u64;
    for bucket in 0..live {
        let asks: Vec<_> = (0..).zip(&rules).map(|(place, rule)| ask(rule, bucket * 3 + place, 1)).collect();
        rates.take(&asks, at(0));
    }
    assert_eq!(rates.len(), 60_000);
    rates.take(&[ask(&bucket_rule, u64::MAX, 1)], at(0));
    for (what, places) in [("one rule", &[0_u64][..]), ("three rules", &[0, 1, 2])] {
        let asks = |bucket: u64| -> Vec<_> {
            (0..)
                .zip(&rules)
                .filter(|(place, _)| places.contains(place))
                .map(|(place, rule)| ask(rule, bucket * 3 + place, 1))
                .collect()
        };
        measure(what, &rates, &(0..live).map(|step| asks(step * 7919 % live)).collect::<Vec<_>>());
    }
    measure("a bucket", &rates, &vec![vec![ask(&bucket_rule, u64::MAX, 1)]; 20_000]);
    let size = size_of::<(u64, Counter)>();
    println!("{size} bytes for each counter, {} MiB at most", size * RATE_BUCKETS * 8 / 7 / (1 << 20));
}

fn measure(what: &str, rates: &Rates, calls: &[Vec<RateAsk<'_>>]) {
    let before = std::time::Instant::now();
    for (step, asks) in calls.iter().enumerate() {
        let now = at(i64::try_from(step / 100).unwrap());
        assert!(std::hint::black_box(rates.take(asks, now)).refused.is_none());
    }
    println!("{what}: {} ns", before.elapsed().as_nanos() / calls.len() as u128);
}
