//! Browsers that are signed in. Kept in memory: a restart signs everybody out.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use sprag_core::limits::ADMIN_SESSIONS;
use sprag_core::time::Timestamp;

/// A session ends this long after it began.
pub(super) const SESSION_SECONDS: u64 = 24 * 60 * 60;

/// The sessions by their ids, each with its beginning.
#[derive(Default)]
pub(super) struct Sessions {
    begun: Mutex<HashMap<String, Timestamp>>,
}

impl Sessions {
    /// Begins a session and gives its id, which nobody can guess.
    pub(super) fn begin(&self, now: Timestamp) -> String {
        let id = rand::random::<[u8; 32]>().iter().fold(String::with_capacity(64), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        });
        self.with(|begun| {
            begun.retain(|_, at| is_alive(*at, now));
            if begun.len() >= ADMIN_SESSIONS {
                let oldest = begun.iter().min_by_key(|(_, at)| **at).map(|(id, _)| id.clone());
                oldest.and_then(|id| begun.remove(&id));
            }
            begun.insert(id.clone(), now);
        });
        id
    }

    pub(super) fn is_open(&self, id: &str, now: Timestamp) -> bool {
        self.with(|begun| begun.get(id).is_some_and(|at| is_alive(*at, now)))
    }

    pub(super) fn end(&self, id: &str) {
        self.with(|begun| begun.remove(id));
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Timestamp>) -> T) -> T {
        work(&mut self.begun.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_alive(begun: Timestamp, now: Timestamp) -> bool {
    now.since_ms(begun) < SESSION_SECONDS * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_time_or_on_request() {
        let sessions = Sessions::default();
        let (first, second) = (sessions.begin(Timestamp(0)), sessions.begin(Timestamp(0)));
        assert_ne!(first, second);
        assert_eq!(first.len(), 64);
        let last = Timestamp(i64::try_from(SESSION_SECONDS).unwrap() * 1000);
        assert!(sessions.is_open(&first, Timestamp(last.0 - 1)));
        assert!(!sessions.is_open(&first, last));
        sessions.end(&first);
        assert!(!sessions.is_open(&first, Timestamp(0)));
        assert!(sessions.is_open(&second, Timestamp(0)));
        assert!(!sessions.is_open("", Timestamp(0)));
    }

    #[test]
    fn the_oldest_leaves_when_there_are_too_many() {
        let sessions = Sessions::default();
        let ids: Vec<_> = (0..ADMIN_SESSIONS).map(|at| sessions.begin(Timestamp(at as i64))).collect();
        let now = Timestamp(1000);
        assert!(ids.iter().all(|id| sessions.is_open(id, now)));
        let last = sessions.begin(now);
        assert!(!sessions.is_open(&ids[0], now));
        assert!(sessions.is_open(&ids[1], now) && sessions.is_open(&last, now));
    }
}
