//! Something that may go wrong a thousand times a second and is said once a minute, with how often it was.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// When it was said last, and how often it happened since.
#[derive(Default)]
pub(super) struct Rarely(Mutex<(Option<Instant>, u64)>);

impl Rarely {
    /// Counts so many more. Gives how many there were since the last time, when it is time to say it.
    pub(super) fn count(&self, more: u64) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = state.1.saturating_add(more);
        let is_time = state.1 > 0 && state.0.is_none_or(|said| said.elapsed() >= MINUTE);
        is_time.then(|| {
            state.0 = Some(Instant::now());
            std::mem::take(&mut state.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_and_then_counted() {
        let rarely = Rarely::default();
        assert_eq!((rarely.count(0), rarely.count(3), rarely.count(4), rarely.count(0)), (None, Some(3), None, None));
        rarely.0.lock().unwrap().0 = Instant::now().checked_sub(MINUTE);
        assert_eq!(rarely.count(1), Some(5));
    }
}
