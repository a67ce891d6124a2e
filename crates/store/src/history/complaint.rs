//! Keeps an error that comes back all the time from filling the log.

use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(60);

/// When the same trouble was last logged.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    last: Option<Instant>,
}

impl Complaint {
    /// True the first time, then at most once a minute.
    pub(super) fn is_due(&mut self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&mut self, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= QUIET);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_once_a_minute() {
        let start = Instant::now();
        let mut complaint = Complaint::default();
        let spoken = [0, 1, 59, 60, 61, 119, 120].map(|s| complaint.is_due_at(start + Duration::from_secs(s)));
        assert_eq!(spoken, [true, false, false, true, false, false, true]);
    }
}
