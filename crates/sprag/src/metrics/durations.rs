//! Durations counted by size: a row of counters and a sum, so that a call adds to it without a lock.
//!
//! The library's histogram takes a lock for each value ([0009](../../../../docs/decisions/0009-metrics-without-locks.md)).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of buckets, in microseconds.
pub(super) type Bounds = &'static [u64];

/// Sprag's own work: from ten microseconds to a second.
pub(super) const OWN: Bounds =
    &[10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
/// What models take: from ten milliseconds to ten minutes.
pub(super) const MODEL: Bounds = &[
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    20_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
];

/// A histogram.
#[derive(Debug)]
pub(crate) struct Durations {
    bounds: Bounds,
    /// One for each bound, and one for what is longer.
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// What a histogram holds at one moment.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) sum_seconds: f64,
    pub(super) count: u64,
    /// Upper ends in seconds, the last one without end, and how many lie in each.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Durations {
    pub(super) fn new(bounds: Bounds) -> Durations {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Durations { bounds, counts, sum_ns: AtomicU64::new(0) }
    }

    /// Adds one.
    pub(super) fn add(&self, took: Duration) {
        let place = self.bounds.partition_point(|&bound| Duration::from_micros(bound) < took);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_ns.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> Counted {
        let ends = self.bounds.iter().map(|&bound| bound as f64 / 1e6).chain([f64::INFINITY]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        Counted { sum_seconds: self.sum_ns.load(Ordering::Relaxed) as f64 / 1e9, count, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_lies_below_it_and_the_longest_are_counted_too() {
        let durations = Durations::new(&[10, 100]);
        for us in [0, 10, 11, 100, 101, 5_000_000] {
            durations.add(Duration::from_micros(us));
        }
        let counted = durations.counted();
        assert_eq!(counted.buckets, [(0.000_01, 2), (0.000_1, 2), (f64::INFINITY, 2)]);
        assert_eq!(counted.count, 6);
        assert!((counted.sum_seconds - 5.000_222).abs() < 1e-9, "{}", counted.sum_seconds);
    }

    #[test]
    fn bounds_grow() {
        for bounds in [OWN, MODEL] {
            assert!(bounds.is_sorted_by(|a, b| a < b));
        }
    }
}
