//! How a rate limit without room is told.

use serde_json::{Number, Value};

use super::{RateExceeded, RateMeasure, RateRule};
use crate::wire::{Reason, Refusal};

impl RateExceeded {
    /// How it is told.
    #[must_use]
    pub fn refusal(&self, rule: &RateRule) -> Refusal {
        let keys: Vec<String> = rule.limit_keys.iter().map(ToString::to_string).collect();
        let wait = self.retry_after_seconds(&rule.measure);
        let whose = match keys.as_slice() {
            [] => String::new(),
            keys => format!(" for each {}", keys.join(" and ")),
        };
        let name = &rule.name;
        let (allowed, raise) = match rule.measure {
            RateMeasure::Requests { limit, window_ms } => {
                (format!("{limit} {} in {}", plural(limit, "request"), seconds(window_ms)), "`requests`")
            }
            RateMeasure::Tokens { limit, window_ms } => {
                (format!("{limit} {} in {}", plural(limit, "token"), seconds(window_ms)), "`tokens`")
            }
            RateMeasure::Bucket { rps, burst } => {
                (format!("{rps} requests a second and {burst} at once"), "`rps` or `burst`")
            }
        };
        let asked = self.asked as u64;
        let advice = match (self.is_hopeless(), rule.measure.counts_tokens()) {
            (true, true) => format!(
                "this call alone is expected to use {asked} tokens, so waiting does not help: ask for fewer output tokens, \
                 send less, or raise {raise} of the limit"
            ),
            (true, false) => {
                format!("this call alone counts as {asked}, so waiting does not help: raise {raise} of the limit")
            }
            (false, true) => format!(
                "{} are used and this call is expected to use {asked}; wait {}, or raise {raise} of the limit",
                self.current as u64,
                seconds(u64::from(wait) * 1000)
            ),
            (false, false) => format!("wait {}, or raise {raise} of the limit", seconds(u64::from(wait) * 1000)),
        };
        let message = format!("Rate limit exceeded: `{name}` allows {allowed}{whose}; {advice}");
        let mut refusal = Refusal::new(Reason::RateLimited, message)
            .with("exceeded_limit", &*rule.name)
            .with("limit", number(self.limit))
            .with("current", number(self.current))
            .with("limit_keys", keys);
        refusal = match rule.measure {
            RateMeasure::Requests { window_ms, .. } => {
                refusal.with("window_seconds", number(window_ms as f64 / 1000.0))
            }
            RateMeasure::Tokens { window_ms, .. } => {
                refusal.with("window_seconds", number(window_ms as f64 / 1000.0)).with("expected_tokens", asked)
            }
            RateMeasure::Bucket { rps, burst } => refusal.with("rps", number(rps)).with("burst", number(burst)),
        };
        refusal.retry_after_seconds = (!self.is_hopeless()).then_some(wait);
        refusal
    }

    /// Whole seconds, at least one. A window's slots may keep a call a little longer than the window: that is not told.
    fn retry_after_seconds(&self, measure: &RateMeasure) -> u32 {
        let seconds = self.retry_after_ms.div_ceil(1000);
        let seconds = match *measure {
            RateMeasure::Requests { window_ms, .. } | RateMeasure::Tokens { window_ms, .. } => {
                seconds.min(window_ms.div_ceil(1000))
            }
            RateMeasure::Bucket { .. } => seconds,
        };
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn seconds(ms: u64) -> String {
    let seconds = ms as f64 / 1000.0;
    if ms == 1000 { "1 second".to_owned() } else { format!("{seconds} seconds") }
}

/// Whole numbers without a point; of others three places are enough.
fn number(value: f64) -> Value {
    let rounded = (value * 1000.0).round() / 1000.0;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
        return Value::from(rounded as i64);
    }
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}
