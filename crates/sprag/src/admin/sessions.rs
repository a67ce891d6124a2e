//! Browsers that are signed in. Kept in memory: a restart signs everybody out.
//!
//! A session is known by the hash of its id, and its forms by a hash of the id and a secret of this process: what is in
//! memory opens nothing by itself.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use sprag_core::limits::ADMIN_SESSIONS;
use sprag_core::time::Timestamp;

use super::operator::Pass;
use crate::acts::hash_of;

/// A session ends this long after it began.
pub(super) const SESSION_SECONDS: u64 = 24 * 60 * 60;

/// The sessions by the hashes of their ids.
pub(super) struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
    /// Goes into what forms carry.
    secret: [u8; 32],
}

struct Session {
    begun: Timestamp,
    /// What it was begun with.
    pass: Pass,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions { open: Mutex::default(), secret: rand::random() }
    }
}

impl Sessions {
    /// Begins a session and gives its id, which nobody can guess.
    pub(super) fn begin(&self, pass: Pass, now: Timestamp) -> String {
        let id = hex(&rand::random::<[u8; 32]>());
        self.with(|open| {
            open.retain(|_, session| is_alive(session.begun, now));
            if open.len() >= ADMIN_SESSIONS {
                make_room(open);
            }
            open.insert(hash_of(id.as_bytes()), Session { begun: now, pass });
        });
        id
    }

    /// What an open session was begun with.
    pub(super) fn pass(&self, id: &str, now: Timestamp) -> Option<Pass> {
        let hash = hash_of(id.as_bytes());
        self.with(|open| open.get(&hash).filter(|session| is_alive(session.begun, now)).map(|s| s.pass.clone()))
    }

    /// What the forms of a session carry. Another site cannot know it, and it is of no use for another session.
    pub(super) fn csrf(&self, id: &str) -> String {
        hex(&Sha256::new().chain_update(self.secret).chain_update(id).finalize())
    }

    pub(super) fn end(&self, id: &str) {
        let hash = hash_of(id.as_bytes());
        self.with(|open| open.remove(&hash));
    }

    /// Ends everything that was begun with this.
    pub(super) fn end_all(&self, pass: &Pass) {
        self.with(|open| open.retain(|_, session| session.pass != *pass));
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<[u8; 32], Session>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Signs out the oldest of whoever has most: nobody can push the others out by signing in again and again.
fn make_room(open: &mut HashMap<[u8; 32], Session>) {
    let mut counts: HashMap<&Pass, usize> = HashMap::new();
    open.values().for_each(|session| *counts.entry(&session.pass).or_default() += 1);
    let most = counts.values().copied().max().unwrap_or_default();
    let of_many = open.iter().filter(|(_, session)| counts.get(&session.pass) == Some(&most));
    let oldest = of_many.min_by_key(|(_, session)| session.begun).map(|(hash, _)| *hash);
    oldest.and_then(|hash| open.remove(&hash));
}

fn is_alive(begun: Timestamp, now: Timestamp) -> bool {
    now.since_ms(begun) < SESSION_SECONDS * 1000
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(sessions: &Sessions, id: &str, at: i64) -> bool {
        sessions.pass(id, Timestamp(at)).is_some()
    }

    #[test]
    fn a_session_ends_by_time_or_on_request() {
        let sessions = Sessions::default();
        let (first, second) = (sessions.begin(Pass::Admin, Timestamp(0)), sessions.begin(Pass::Viewer, Timestamp(0)));
        assert_ne!(first, second);
        assert_eq!(first.len(), 64);
        let last = i64::try_from(SESSION_SECONDS).unwrap() * 1000;
        assert_eq!(sessions.pass(&first, Timestamp(last - 1)), Some(Pass::Admin));
        assert_eq!(sessions.pass(&second, Timestamp(last - 1)), Some(Pass::Viewer));
        assert!(!is_open(&sessions, &first, last));
        sessions.end(&first);
        assert!(!is_open(&sessions, &first, 0) && is_open(&sessions, &second, 0) && !is_open(&sessions, "", 0));
    }

    #[test]
    fn a_token_that_is_taken_back_ends_its_sessions_only() {
        let sessions = Sessions::default();
        let [anna, ben] = ["anna", "ben"].map(|id| Pass::Token(id.to_owned()));
        let ids = [&anna, &anna, &ben].map(|pass| sessions.begin(pass.clone(), Timestamp(0)));
        sessions.end_all(&anna);
        assert_eq!(ids.map(|id| is_open(&sessions, &id, 0)), [false, false, true]);
    }

    #[test]
    fn the_oldest_of_whoever_has_most_leaves_when_there_are_too_many() {
        let sessions = Sessions::default();
        let lonely = sessions.begin(Pass::Admin, Timestamp(0));
        let crowd: Vec<_> = (1..ADMIN_SESSIONS).map(|at| sessions.begin(Pass::Viewer, Timestamp(at as i64))).collect();
        assert!(crowd.iter().all(|id| is_open(&sessions, id, 1000)));
        let last = sessions.begin(Pass::Viewer, Timestamp(1000));
        assert!(is_open(&sessions, &lonely, 1000), "who is alone stays");
        assert!(!is_open(&sessions, &crowd[0], 1000));
        assert!(is_open(&sessions, &crowd[1], 1000) && is_open(&sessions, &last, 1000));
    }

    #[test]
    fn forms_of_one_session_are_of_no_use_for_another() {
        let (here, elsewhere) = (Sessions::default(), Sessions::default());
        let [first, second] = [(); 2].map(|()| here.begin(Pass::Admin, Timestamp(0)));
        assert_eq!(here.csrf(&first), here.csrf(&first));
        assert_ne!(here.csrf(&first), here.csrf(&second));
        assert_ne!(here.csrf(&first), elsewhere.csrf(&first), "nor after a restart");
        assert!(!here.csrf(&first).contains(&first));
    }
}
