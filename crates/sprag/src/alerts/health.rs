//! How channels do, and how long one that fails is left alone.
//!
//! A message that fails waits longer each time, alone. Only when several different ones fail in a row is it the channel that
//! is down: then one message at a time finds out whether it is back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use sprag_core::time::Timestamp;

const FIRST_WAIT_MS: u64 = 1000;
pub(super) const LONGEST_WAIT_MS: u64 = 60_000;
/// So many different messages in a row: it is the channel.
const DOWN: usize = 3;

/// How a channel does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Tries in a row that failed.
    pub failures: u32,
    /// When the last of them failed, and how long messages are left alone after that.
    pub closed_until: Timestamp,
    /// Why the last one failed.
    pub error: Option<String>,
    /// The messages that failed in a row, as far as that matters.
    failed: BTreeSet<i64>,
}

impl Health {
    /// Whether the channel itself is down, as far as anybody can tell.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.failed.len() >= DOWN
    }
}

/// How all channels do.
#[derive(Default)]
pub(super) struct AllHealth(Mutex<BTreeMap<String, Health>>);

impl AllHealth {
    pub(super) fn of(&self, channel: &str) -> Health {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(channel).cloned().unwrap_or_default()
    }

    /// Notes how a try went. Says whether the channel was down and works again.
    pub(super) fn note(&self, channel: &str, message: i64, error: Option<String>, now: Timestamp) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let health = all.entry(channel.to_owned()).or_default();
        if error.is_none() {
            return std::mem::take(health).is_down();
        }
        health.failures = health.failures.saturating_add(1);
        if health.failures == 1 {
            tracing::warn!(channel, error, "an alert could not be delivered");
        }
        if !health.is_down() {
            health.failed.insert(message);
        }
        health.closed_until = after(now, health.failures);
        health.error = error;
        false
    }

    /// Forgets channels that are no longer there.
    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|channel, _| is_there(channel));
    }
}

/// When a message is tried again after so many failures. It differs a bit, to keep messages and programs apart.
pub(super) fn after(now: Timestamp, failures: u32) -> Timestamp {
    let wait = wait_ms(failures, rand::random_range(0.75..1.25));
    Timestamp(now.0.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)))
}

fn wait_ms(failures: u32, jitter: f64) -> u64 {
    if failures == 0 {
        return 0;
    }
    let doubled = FIRST_WAIT_MS.saturating_mul(1 << (failures - 1).min(16));
    (doubled.min(LONGEST_WAIT_MS) as f64 * jitter) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_left_alone_for_longer_each_time() {
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 8, u32::MAX].map(|failures| wait_ms(failures, 1.0)),
            [0, 1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000]
        );
        assert_eq!((wait_ms(1, 0.75), wait_ms(1, 1.25)), (750, 1250));
    }

    #[test]
    fn one_message_that_fails_is_not_the_channel_and_several_are() {
        let (all, now) = (AllHealth::default(), Timestamp(0));
        let failed = |message: i64| all.note("ops", message, Some("no".to_owned()), now);
        (0..50).for_each(|_| assert!(!failed(1)));
        assert!(!all.of("ops").is_down(), "it is the message");
        assert!(!all.note("ops", 2, None, now));
        assert_eq!(all.of("ops"), Health::default());
        (1..=3).for_each(|message| assert!(!failed(message)));
        assert!(all.of("ops").is_down());
        assert!(all.note("ops", 4, None, now), "it works again");
        assert!(!all.of("ops").is_down());
    }
}
