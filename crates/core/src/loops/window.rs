//! How far back a detector looks.

use super::{Window, WindowMode};
use crate::time::Timestamp;

impl Window {
    /// Whether something that happened at `at` still counts at `now`. `hit` is the latest moment, `now` aside or
    /// included, at which the same was counted: in refresh mode the seconds begin there.
    #[must_use]
    pub fn reaches(&self, now: Timestamp, hit: Timestamp, at: Timestamp) -> bool {
        let span_ms = u64::from(self.seconds) * 1000;
        if span_ms == 0 {
            return true;
        }
        match self.mode {
            WindowMode::Sliding => now.since_ms(at) < span_ms,
            WindowMode::Refresh => hit.since_ms(at) < span_ms,
            WindowMode::Fixed => self.number_of(now) == self.number_of(at),
        }
    }

    /// The number of the window that a moment lies in, where windows follow one another.
    #[must_use]
    pub(super) fn number_of(&self, at: Timestamp) -> i64 {
        at.0.div_euclid(i64::from(self.seconds.max(1)) * 1000)
    }

    /// The last of the earlier requests that are within the window's number.
    pub(super) fn last_of<'a, T>(&self, earlier: &'a [T]) -> &'a [T] {
        match self.requests {
            0 => earlier,
            requests => &earlier[earlier.len().saturating_sub(requests as usize)..],
        }
    }

    /// The window in words, for a proof.
    pub(super) fn describe(&self, unit: &str) -> String {
        match (self.requests, self.seconds) {
            (0, 0) => String::new(),
            (requests, 0) => format!("last {requests} {unit}"),
            (0, seconds) => format!("{seconds} s"),
            (requests, seconds) => format!("last {requests} {unit} within {seconds} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_reaches_as_far_as_it_says() {
        let at = |seconds: i64| Timestamp(seconds * 1000);
        let window = |mode| Window { requests: 0, seconds: 60, mode };
        let table = [
            (WindowMode::Sliding, 100, 100, 41, true),
            (WindowMode::Sliding, 100, 60, 40, false),
            (WindowMode::Refresh, 100, 60, 40, true),
            (WindowMode::Refresh, 100, 100, 40, false),
            (WindowMode::Fixed, 119, 119, 60, true),
            (WindowMode::Fixed, 120, 120, 119, false),
        ];
        for (mode, now, hit, then, expected) in table {
            assert_eq!(window(mode).reaches(at(now), at(hit), at(then)), expected, "{mode:?} {now} {hit} {then}");
        }
        assert!(Window::default().reaches(at(1_000_000), at(1_000_000), at(0)), "no seconds, no bound");
    }

    #[test]
    fn requests_are_counted_from_the_end() {
        let window = Window { requests: 2, ..Window::default() };
        assert_eq!(window.last_of(&[1, 2, 3]), [2, 3]);
        assert_eq!(window.last_of(&[1]), [1]);
        assert_eq!(Window::default().last_of(&[1, 2, 3]), [1, 2, 3]);
    }
}
