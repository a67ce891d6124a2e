//! The time that nodes have in common: that of Redis, whatever their own clocks say.
//!
//! When a run began, and when its steps came, may have been seen by another node. What is measured from there goes by the clock of
//! Redis, and so does what a call is judged by: hours, days and months of budgets, the ends of kills and keys. The record and pages go
//! by the node's own clock.

use std::sync::atomic::{AtomicI64, Ordering};

use sprag_core::time::Timestamp;

use super::Link;
use crate::app::App;

/// Clocks that are no further apart agree, and an answer of Redis may take as long on its way: it tells no more than that.
const AGREE_MS: i64 = 1000;

/// How far the clock of Redis is ahead of this node's own, as it was heard last.
#[derive(Debug, Default)]
pub(super) struct CommonTime {
    ahead_ms: AtomicI64,
}

impl CommonTime {
    /// What Redis told between two moments of this node. What took long tells too little.
    fn hear(&self, theirs: Timestamp, (asked, answered): (Timestamp, Timestamp)) {
        if answered.since_ms(asked) > AGREE_MS.unsigned_abs() {
            return;
        }
        let ahead_ms = theirs.0.saturating_sub(answered.0);
        let ahead_ms = if ahead_ms.saturating_abs() <= AGREE_MS { 0 } else { ahead_ms };
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    fn of(&self, own: Timestamp) -> Timestamp {
        Timestamp(own.0.saturating_add(self.ahead_ms.load(Ordering::Relaxed)))
    }
}

impl Link {
    /// Redis said what time it is, between two moments of this node.
    pub(crate) fn hear_time(&self, theirs: Timestamp, within: (Timestamp, Timestamp)) {
        self.time.hear(theirs, within);
    }
}

impl App {
    /// Takes the time over that Redis told when it was connected to: the first call goes by it.
    pub(super) fn hear_time(&self, link: &Link) {
        if let Some(theirs) = link.shared.time() {
            let now = self.clock.now();
            link.hear_time(theirs, (now, now));
        }
    }

    /// What time it is, by the clock that all nodes have in common.
    pub(crate) fn common_now(&self) -> Timestamp {
        self.common_time(self.clock.now())
    }

    /// A moment of this node's clock by the one that all nodes have in common.
    pub(crate) fn common_time(&self, own: Timestamp) -> Timestamp {
        self.link.as_ref().map_or(own, |link| link.time.of(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clocks_that_disagree_are_put_right() {
        let (time, own) = (CommonTime::default(), Timestamp(1_000_000));
        for (theirs, common) in [(1_000_000, 0), (1_001_000, 0), (999_000, 0), (1_001_001, 1001), (998_999, -1001)] {
            time.hear(Timestamp(theirs), (own, own));
            assert_eq!(time.of(own).0 - own.0, common, "{theirs}");
        }
        time.hear(own, (Timestamp(own.0 - 1001), own));
        assert_eq!(time.of(own).0 - own.0, -1001, "an answer that took long changes nothing");
        time.hear(Timestamp(i64::MIN), (own, own));
        assert_eq!(time.of(Timestamp(i64::MIN)), Timestamp(i64::MIN), "nothing wraps");
    }
}
