//! What is to be reached, as ratios to nginx in the same run.

use super::{Rows, added, median};

#[derive(Debug)]
pub struct Goal {
    pub title: &'static str,
    bound: Bound,
    measure: fn(&Rows) -> Option<f64>,
    /// What the figure is, in words; for those that are no ratio to nginx.
    pub unit: &'static str,
}

#[derive(Debug)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// Times nginx.
const TIMES: &str = "×";

const fn at_most(title: &'static str, bound: f64, unit: &'static str, measure: fn(&Rows) -> Option<f64>) -> Goal {
    Goal { title, bound: Bound::AtMost(bound), measure, unit }
}

pub static GOALS: [Goal; 15] = [
    at_most("added latency, 1 KB prompt, p50", 1.25, TIMES, |rows| added_ratio(rows, "latency", "p50_us")),
    at_most("added latency, 1 KB prompt, p99", 1.5, TIMES, |rows| added_ratio(rows, "latency", "p99_us")),
    at_most("added latency with Redis on loopback, p99", 1.0, " ms", |rows| {
        Some(added(rows, "latency", super::WITH_REDIS, "p99_us")? / 1000.0)
    }),
    at_most("CPU per request, 64 connections", 1.8, TIMES, |rows| ratio(rows, "throughput", "cpu_us_per_request")),
    Goal {
        title: "requests/s on one core, 64 connections",
        bound: Bound::AtLeast(0.6),
        measure: |rows| ratio(rows, "throughput", "rps"),
        unit: TIMES,
    },
    at_most("added time to first chunk, p50", 1.25, TIMES, |rows| added_ratio(rows, "ttfc", "first_p50_us")),
    at_most("CPU per chunk", 1.4, TIMES, |rows| ratio(rows, "chunks", "cpu_us_per_chunk")),
    at_most("100 KB prompt, 2 KB new, added p50", 1.6, TIMES, |rows| added_ratio(rows, "body100k_c1", "p50_us")),
    at_most("1 MB prompt, 2 KB new, added p50", 2.5, TIMES, |rows| added_ratio(rows, "body1m_c1", "p50_us")),
    at_most("1,000 slow streams, memory per stream", 2.2, TIMES, |rows| ratio(rows, "streams1k", "kib_per_stream")),
    at_most("1,000 slow streams, failed", 0.0, "", |rows| worst(rows, "streams1k", "failed")),
    at_most("memory at rest", 20.0, " MiB", |rows| median(rows, "rest", "sprag", "rss_mib")),
    at_most("step 1,000 / step 10 beyond moving the bytes", 1.5, "", steps),
    at_most("start to first answer, empty folder", 50.0, " ms", |rows| {
        median(rows, "start", "sprag", "first_start_ms")
    }),
    at_most("start to first answer, later", 50.0, " ms", |rows| median(rows, "start", "sprag", "later_start_ms")),
];

impl Goal {
    pub fn value(&self, rows: &Rows) -> Option<f64> {
        (self.measure)(rows).filter(|value| value.is_finite())
    }

    pub fn is_met(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtMost(bound) => value <= bound,
            Bound::AtLeast(bound) => value >= bound,
        }
    }

    pub fn bound(&self) -> String {
        match self.bound {
            Bound::AtMost(0.0) => "0".to_owned(),
            Bound::AtMost(bound) => format!("≤ {bound}{}", self.unit),
            Bound::AtLeast(bound) => format!("≥ {bound}{}", self.unit),
        }
    }
}

fn ratio(rows: &Rows, scenario: &'static str, metric: &str) -> Option<f64> {
    Some(median(rows, scenario, "sprag", metric)? / median(rows, scenario, "nginx", metric)?)
}

fn added_ratio(rows: &Rows, scenario: &'static str, metric: &str) -> Option<f64> {
    Some(added(rows, scenario, "sprag", metric)? / added(rows, scenario, "nginx", metric)?)
}

fn worst(rows: &Rows, scenario: &'static str, metric: &str) -> Option<f64> {
    let of = rows.get(&(scenario, "sprag"))?;
    of.iter().filter_map(|row| row.get(metric).copied()).max_by(f64::total_cmp)
}

/// What Sprag takes beyond nginx late in a run, by what it takes beyond nginx early in it.
fn steps(rows: &Rows) -> Option<f64> {
    let beyond = |metric| Some(median(rows, "steps1k", "sprag", metric)? - median(rows, "steps1k", "nginx", metric)?);
    Some(beyond("step_1000_us")? / beyond("step_10_us")?)
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    #[test]
    fn a_ratio_is_held_against_its_goal_from_both_sides() {
        let mut rows = Rows::new();
        assert_eq!(GOALS[3].value(&rows), None);
        rows.insert(("throughput", "nginx"), vec![Row::from([("cpu_us_per_request", 20.0), ("rps", 50_000.0)])]);
        rows.insert(("throughput", "sprag"), vec![Row::from([("cpu_us_per_request", 36.0), ("rps", 29_999.0)])]);
        assert!(GOALS[3].is_met(GOALS[3].value(&rows).unwrap()));
        assert!(!GOALS[3].is_met(1.81));
        assert!(!GOALS[4].is_met(GOALS[4].value(&rows).unwrap()));
        assert!(GOALS[4].is_met(0.6));
    }

    #[test]
    fn what_is_added_is_counted_from_the_direct_way() {
        let row = |p50| vec![Row::from([("p50_us", p50)])];
        let rows = Rows::from([
            (("latency", "direct"), row(50.0)),
            (("latency", "nginx"), row(150.0)),
            (("latency", "sprag"), row(200.0)),
        ]);
        assert_eq!(GOALS[0].value(&rows), Some(1.5));
    }

    #[test]
    fn what_is_added_with_redis_is_counted_in_milliseconds() {
        let row = |p99| vec![Row::from([("p99_us", p99)])];
        let mut rows = Rows::from([(("latency", "direct"), row(30.0)), (("latency", "sprag"), row(130.0))]);
        assert_eq!(GOALS[2].value(&rows), None, "there was no Redis");
        rows.insert(("latency", super::super::WITH_REDIS), row(1031.0));
        assert_eq!(GOALS[2].value(&rows), Some(1.001));
        assert!(!GOALS[2].is_met(1.001));
    }
}
