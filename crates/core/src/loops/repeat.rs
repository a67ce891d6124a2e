//! `repeat`: the same request, byte for byte, too often in a window. For LLM calls and for any other request.
//!
//! Shadow counts for itself and never feeds enforcement. A counter that had to leave begins anew: a bound on memory
//! may miss a loop, it never makes one up.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Detector, Finding, Mode, Proof, RepeatRule, WindowMode};
use crate::limits::{REPEAT_COUNT, REPEAT_KEYS, REPEAT_MOMENTS};
use crate::time::Timestamp;

/// Counters of identical requests, enforced and in shadow.
#[derive(Clone, Debug, Default)]
pub struct RepeatCounters {
    enforced: Counters,
    shadow: Counters,
}

#[derive(Clone, Debug, Default)]
struct Counters {
    by_key: HashMap<u64, Counter>,
    /// Keys by their latest hit, oldest first; a key stands here once for each hit, only the last one counts.
    order: VecDeque<(u64, u64)>,
    hits: u64,
    moments: usize,
}

#[derive(Clone, Debug, Default)]
struct Counter {
    count: u32,
    at: Timestamp,
    /// The number of the latest hit among all.
    hit: u64,
    /// Of a sliding window: the hits in it.
    moments: VecDeque<Timestamp>,
}

/// What makes a request the same: method, path, query whatever its order, body, and the descriptors that the policy
/// names (agent, key, headers, claims), whatever their order.
#[must_use]
pub fn fingerprint(method: &str, path: &str, query: &str, body: Option<u64>, descriptors: &[(&str, &str)]) -> u64 {
    let mut hash = Xxh3::new();
    let mut part = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    part(method);
    part(path);
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    pairs.iter().for_each(|pair| part(pair));
    // An empty part ends a list: the last pair cannot pass for a descriptor.
    part("");
    let mut descriptors = descriptors.to_vec();
    descriptors.sort_unstable();
    for (name, value) in descriptors {
        part(name);
        part(value);
    }
    part("");
    match body {
        Some(body) => hash.update(&body.to_le_bytes()),
        None => hash.update(&xxh3_64(b"").to_le_bytes()[..4]),
    }
    hash.digest()
}

impl RepeatCounters {
    /// Counts a request. Gives a finding when it is one too many.
    pub fn check(&mut self, key: u64, now: Timestamp, rule: &RepeatRule) -> Option<Finding> {
        let count = match rule.common.mode {
            Mode::Off => return None,
            Mode::Shadow => self.shadow.count(key, now, rule),
            Mode::Enforce => self.enforced.count(key, now, rule),
        };
        rule.found(count)
    }

    /// Forgets all counts.
    pub fn forget(&mut self) {
        *self = RepeatCounters::default();
    }
}

impl RepeatRule {
    /// What follows from so many identical requests: a finding when they are too many.
    #[must_use]
    pub fn found(&self, count: u32) -> Option<Finding> {
        let threshold = self.threshold.max(2);
        (count >= threshold).then(|| Finding {
            detector: Detector::Repeat,
            mode: self.common.mode,
            loop_type: "identical_request".into(),
            confidence: 1.0,
            score: f64::from(count),
            count,
            proof: Proof {
                summary: format!("The same request {count} times"),
                compared: "method, path, query, body and descriptors".into(),
                threshold: f64::from(threshold),
                value: f64::from(count),
                window: self.common.window.describe("requests"),
                steps: Vec::new(),
            },
        })
    }
}

impl Counters {
    fn count(&mut self, key: u64, now: Timestamp, rule: &RepeatRule) -> u32 {
        let window = &rule.common.window;
        self.hits += 1;
        let hit = self.hits;
        let counter = self.by_key.entry(key).or_default();
        let kept_before = counter.moments.len();
        let is_far = window.requests > 0 && hit - counter.hit > u64::from(window.requests);
        if counter.count > 0 && is_far {
            *counter = Counter::default();
        }
        if window.seconds > 0 && window.mode == WindowMode::Sliding {
            while counter.moments.front().is_some_and(|at| !window.reaches(now, now, *at)) {
                counter.moments.pop_front();
            }
            if counter.moments.len() == REPEAT_COUNT {
                counter.moments.pop_front();
            }
            counter.moments.push_back(now);
            counter.count = u32::try_from(counter.moments.len()).unwrap_or(u32::MAX);
        } else {
            if counter.count > 0 && !window.reaches(now, now, counter.at) {
                counter.count = 0;
            }
            counter.count = counter.count.saturating_add(1);
        }
        (counter.at, counter.hit) = (now, hit);
        let count = counter.count;
        self.moments = self.moments + counter.moments.len() - kept_before;
        self.order.push_back((key, hit));
        self.make_room();
        count
    }

    /// Lets the longest unseen go, and drops the places in line that no longer count.
    fn make_room(&mut self) {
        while let Some(&(key, hit)) = self.order.front() {
            let is_latest = self.by_key.get(&key).is_some_and(|counter| counter.hit == hit);
            let is_full = self.by_key.len() > REPEAT_KEYS || self.moments > REPEAT_MOMENTS;
            if is_latest && !is_full {
                break;
            }
            self.order.pop_front();
            if is_latest && let Some(counter) = self.by_key.remove(&key) {
                self.moments -= counter.moments.len();
            }
        }
        if self.order.len() > 2 * REPEAT_KEYS {
            let by_key = &self.by_key;
            self.order.retain(|(key, hit)| by_key.get(key).is_some_and(|counter| counter.hit == *hit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{Preset, Rules};

    fn rule(threshold: u32, seconds: u32, mode: WindowMode) -> RepeatRule {
        let mut rule = Rules::preset(Preset::Fairvisor).repeat;
        rule.threshold = threshold;
        rule.common.window.seconds = seconds;
        rule.common.window.mode = mode;
        rule
    }

    /// At which of these seconds it trips, and with what count.
    fn trips(seconds: &[i64], rule: &RepeatRule) -> Option<(i64, u32)> {
        let mut counters = RepeatCounters::default();
        let mut check = |at: i64| counters.check(7, Timestamp(at * 1000), rule).map(|finding| (at, finding.count));
        seconds.iter().find_map(|at| check(*at))
    }

    #[test]
    fn each_window_counts_in_its_way() {
        let (refresh, sliding, fixed) = (WindowMode::Refresh, WindowMode::Sliding, WindowMode::Fixed);
        type Row = (&'static [i64], WindowMode, Option<(i64, u32)>);
        let table: [Row; 7] = [
            (&[0, 50, 100, 150], refresh, Some((150, 4))),
            (&[0, 50, 110, 160, 200], refresh, None),
            (&[0, 50, 100, 150], sliding, None),
            (&[0, 19, 39, 59], sliding, Some((59, 4))),
            (&[0, 20, 40, 60], sliding, None),
            (&[50, 55, 61, 65], fixed, None),
            (&[60, 70, 80, 119], fixed, Some((119, 4))),
        ];
        for (seconds, mode, expected) in table {
            assert_eq!(trips(seconds, &rule(4, 60, mode)), expected, "{mode:?} {seconds:?}");
        }
    }

    #[test]
    fn a_window_in_requests_looks_back_on_all_of_them() {
        let mut rule = rule(2, 0, WindowMode::Sliding);
        rule.common.window.requests = 3;
        let mut counters = RepeatCounters::default();
        let mut check = |key| counters.check(key, Timestamp(0), &rule).is_some();
        assert_eq!([1, 2, 3, 1].map(&mut check), [false, false, false, true], "three requests ago");
        assert_eq!([4, 5, 6, 7, 4].map(&mut check), [false; 5], "four requests ago");
    }

    #[test]
    fn shadow_never_feeds_enforcement() {
        let enforced = rule(4, 60, WindowMode::Refresh);
        let mut shadow = enforced.clone();
        shadow.common.mode = Mode::Shadow;
        let mut counters = RepeatCounters::default();
        let hits = (0..10).filter_map(|_| counters.check(7, Timestamp(0), &shadow)).count();
        assert_eq!(hits, 7);
        assert_eq!(counters.check(7, Timestamp(0), &enforced), None);
    }

    #[test]
    fn the_fingerprint_is_of_everything_and_of_no_order() {
        let of = fingerprint;
        let base = of("POST", "/v1/chat", "b=2&a=1", Some(1), &[("x", "1"), ("y", "2")]);
        assert_eq!(base, of("POST", "/v1/chat", "a=1&b=2", Some(1), &[("y", "2"), ("x", "1")]));
        let others = [
            of("GET", "/v1/chat", "b=2&a=1", Some(1), &[("x", "1"), ("y", "2")]),
            of("POST", "/v1/chats", "b=2&a=1", Some(1), &[("x", "1"), ("y", "2")]),
            of("POST", "/v1/chat", "b=2&a=2", Some(1), &[("x", "1"), ("y", "2")]),
            of("POST", "/v1/chat", "b=2&a=1", Some(2), &[("x", "1"), ("y", "2")]),
            of("POST", "/v1/chat", "b=2&a=1", None, &[("x", "1"), ("y", "2")]),
            of("POST", "/v1/chat", "b=2&a=1", Some(1), &[("x", "2"), ("y", "1")]),
            of("POST", "/v1/chat", "b=2&a=1&x", Some(1), &[("y", "2")]),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    #[test]
    fn the_longest_unseen_leaves_first() {
        let rule = rule(3, 60, WindowMode::Refresh);
        let mut counters = RepeatCounters::default();
        for key in 0..REPEAT_KEYS as u64 {
            counters.check(key, Timestamp(0), &rule);
        }
        counters.check(0, Timestamp(0), &rule);
        assert_eq!(counters.enforced.by_key.len(), REPEAT_KEYS, "at the bound all are there");
        counters.check(u64::MAX, Timestamp(0), &rule);
        assert_eq!(counters.enforced.by_key.len(), REPEAT_KEYS);
        assert!(counters.enforced.by_key.contains_key(&0) && !counters.enforced.by_key.contains_key(&1));
        for _ in 0..3 * REPEAT_KEYS {
            counters.check(0, Timestamp(0), &rule);
        }
        assert!(counters.enforced.order.len() <= 2 * REPEAT_KEYS);
    }

    #[test]
    fn moments_are_bounded_for_one_request_and_for_all() {
        let rule = rule(3, 60, WindowMode::Sliding);
        let mut counters = RepeatCounters::default();
        let mut count = |key| counters.check(key, Timestamp(0), &rule).map_or(0, |finding| finding.count as usize);
        let counts: Vec<usize> = (0..=REPEAT_COUNT).map(|_| count(0)).collect();
        assert_eq!(counts[REPEAT_COUNT - 1..], [REPEAT_COUNT, REPEAT_COUNT]);
        for key in 0..=(REPEAT_MOMENTS / REPEAT_COUNT) as u64 {
            assert!((0..REPEAT_COUNT).map(|_| count(key)).max().is_some());
        }
        let held: usize = counters.enforced.by_key.values().map(|counter| counter.moments.len()).sum();
        assert_eq!(held, counters.enforced.moments);
        assert!(held <= REPEAT_MOMENTS && held > REPEAT_MOMENTS - REPEAT_COUNT);
    }
}
