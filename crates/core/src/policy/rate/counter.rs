//! Counts for one rule and one set of values.
//!
//! A window is cut into slots. A slot that lies partly in the window counts whole: no span of the window's length ever
//! holds more than the limit, and a call may wait up to a thirty-first part of the window longer than it would have to.

use super::RateMeasure;
use crate::time::Timestamp;

/// Slots that are counted: one more than a window holds whole, because it begins and ends in the middle of one.
const SLOTS: usize = 32;

/// The counter of one rule for one set of values. A new one is empty.
#[derive(Clone, Debug, Default)]
pub struct RateCounter {
    /// For windows.
    slots: Slots,
    /// For buckets; one that was never asked is full.
    bucket: Option<Bucket>,
}

/// A limit that has no room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateExceeded {
    /// What is counted already.
    pub current: f64,
    /// The most.
    pub limit: f64,
    /// What the call would have taken.
    pub asked: f64,
    /// When there could be room. For a call that is larger than the limit there never is.
    pub retry_after_ms: u64,
}

/// Counts by the number of their slot, each at its number modulo [`SLOTS`].
#[derive(Clone, Debug, Default)]
struct Slots {
    counts: [u32; SLOTS],
    /// The slot of the latest moment seen.
    newest: i64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: f64,
    at: Timestamp,
}

impl RateExceeded {
    /// The call is larger than the limit: waiting does not help.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.asked > self.limit
    }
}

impl RateCounter {
    /// Counts `amount`, or nothing where there is no room for it. A call takes at least one.
    ///
    /// # Errors
    /// How much is counted, and when there could be room.
    pub fn take(&mut self, measure: &RateMeasure, amount: u64, now: Timestamp) -> Result<(), RateExceeded> {
        self.check(measure, amount, now)?;
        self.add(measure, amount, now);
        Ok(())
    }

    /// Whether there is room for `amount`. Counts nothing.
    ///
    /// # Errors
    /// How much is counted, and when there could be room.
    pub fn check(&mut self, measure: &RateMeasure, amount: u64, now: Timestamp) -> Result<(), RateExceeded> {
        let asked = amount.max(1);
        let exceeded = match *measure {
            RateMeasure::Requests { limit, window_ms } | RateMeasure::Tokens { limit, window_ms } => {
                let slots = self.slots(window_ms, now);
                let current = slots.total();
                if current.saturating_add(asked) <= limit {
                    return Ok(());
                }
                let to_leave = current.saturating_add(asked).saturating_sub(limit);
                let retry_after_ms = slots.leave_after_ms(to_leave, window_ms, now);
                RateExceeded { current: current as f64, limit: limit as f64, asked: asked as f64, retry_after_ms }
            }
            RateMeasure::Bucket { rps, burst } => {
                let level = self.bucket(rps, burst, now).level;
                let missing = asked as f64 - level;
                // A sum of fractions may lack the last bit of a whole.
                if missing <= 1e-9 {
                    return Ok(());
                }
                let retry_after_ms = (missing / rps * 1000.0).ceil() as u64;
                RateExceeded { current: burst - level, limit: burst, asked: asked as f64, retry_after_ms }
            }
        };
        Err(exceeded)
    }

    /// Counts `amount`, room or not.
    pub fn add(&mut self, measure: &RateMeasure, amount: u64, now: Timestamp) {
        let amount = amount.max(1);
        match *measure {
            RateMeasure::Requests { window_ms, .. } | RateMeasure::Tokens { window_ms, .. } => {
                let slots = self.slots(window_ms, now);
                let newest = slots.newest;
                slots.change(newest, i64::try_from(amount).unwrap_or(i64::MAX));
            }
            RateMeasure::Bucket { rps, burst } => {
                let bucket = self.bucket(rps, burst, now);
                bucket.level = (bucket.level - amount as f64).max(0.0);
            }
        }
    }

    /// Corrects what was taken at `taken_at` by the difference to what was used. More than the limit may be counted
    /// then: later calls wait for it. What has left the window is not counted again.
    pub fn correct(&mut self, measure: &RateMeasure, taken_at: Timestamp, difference: i64) {
        let (RateMeasure::Requests { window_ms, .. } | RateMeasure::Tokens { window_ms, .. }) = *measure else {
            return;
        };
        // A clock that went back in between took the counts with it.
        let slot = slot_of(taken_at, window_ms).min(self.slots.newest);
        if self.slots.newest.saturating_sub(slot) < SLOTS as i64 {
            self.slots.change(slot, difference);
        }
    }

    /// What is counted at a moment.
    pub fn current(&mut self, measure: &RateMeasure, now: Timestamp) -> f64 {
        match *measure {
            RateMeasure::Requests { window_ms, .. } | RateMeasure::Tokens { window_ms, .. } => {
                self.slots(window_ms, now).total() as f64
            }
            RateMeasure::Bucket { rps, burst } => burst - self.bucket(rps, burst, now).level,
        }
    }

    /// Whether forgetting the counter changes nothing.
    pub fn is_idle(&mut self, measure: &RateMeasure, now: Timestamp) -> bool {
        self.current(measure, now) <= 0.0
    }

    fn slots(&mut self, window_ms: u64, now: Timestamp) -> &mut Slots {
        self.slots.move_to(slot_of(now, window_ms));
        &mut self.slots
    }

    fn bucket(&mut self, rps: f64, burst: f64, now: Timestamp) -> &mut Bucket {
        let bucket = self.bucket.get_or_insert(Bucket { level: burst, at: now });
        bucket.fill(rps, burst, now);
        bucket
    }
}

impl Slots {
    fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Empties the slots that left the window.
    fn move_to(&mut self, slot: i64) {
        let passed = slot.saturating_sub(self.newest);
        if passed > 0 {
            for left in 1..=passed.min(SLOTS as i64) {
                self.counts[index(self.newest.saturating_add(left))] = 0;
            }
            self.newest = slot;
        } else if passed <= -(SLOTS as i64) {
            // The clock was set back. What was counted stays for one more window, not until the old time comes again.
            let shift = index(self.newest.saturating_sub(slot));
            self.counts.rotate_left(shift);
            self.newest = slot;
        }
    }

    fn change(&mut self, slot: i64, difference: i64) {
        let count = &mut self.counts[index(slot)];
        let changed = i64::from(*count).saturating_add(difference).clamp(0, i64::from(u32::MAX));
        *count = u32::try_from(changed).unwrap_or(u32::MAX);
    }

    /// When so much has left the window, the oldest first.
    fn leave_after_ms(&self, amount: u64, window_ms: u64, now: Timestamp) -> u64 {
        let oldest = self.newest.saturating_sub(SLOTS as i64 - 1);
        let mut left = 0;
        let last = (oldest..=self.newest).find(|&slot| {
            left += u64::from(self.counts[index(slot)]);
            left >= amount
        });
        let leaves = last.unwrap_or(self.newest).saturating_add(SLOTS as i64);
        let at = leaves.saturating_mul(slot_ms(window_ms));
        u64::try_from(at.saturating_sub(now.0)).unwrap_or(0).max(1)
    }
}

impl Bucket {
    fn fill(&mut self, rps: f64, burst: f64, now: Timestamp) {
        let to_fill_ms = burst / rps * 1000.0;
        let back_ms = self.at.since_ms(now) as f64;
        if back_ms > to_fill_ms.max(1000.0) {
            // The clock was set back, further than requests overtake each other: filling begins anew.
            self.at = now;
        }
        let passed_ms = now.since_ms(self.at);
        if passed_ms > 0 {
            self.level = (self.level + passed_ms as f64 / 1000.0 * rps).min(burst);
            self.at = now;
        }
    }
}

/// A thirty-first of the window, rounded up: with the two that are cut, the window lies in [`SLOTS`] slots.
fn slot_ms(window_ms: u64) -> i64 {
    i64::try_from(window_ms.div_ceil(SLOTS as u64 - 1)).unwrap_or(i64::MAX).max(1)
}

fn slot_of(now: Timestamp, window_ms: u64) -> i64 {
    now.0.div_euclid(slot_ms(window_ms))
}

fn index(slot: i64) -> usize {
    slot.rem_euclid(SLOTS as i64) as usize
}
