//! How the link to the other nodes does, and what is said about it: once for each change, not once for each try.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Mutex;

use sprag_core::limits::UNREADABLE_NAMED;
use sprag_core::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use super::stamps;
use crate::shards::with_lock;

/// How the link does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStatus {
    /// Changes go out and come in.
    pub is_connected: bool,
    /// Changes of others are heard of at once, not only when this node looks.
    pub is_listening: bool,
    /// Since when it is connected, or not.
    pub since: Timestamp,
    /// What went wrong last. Never holds a password.
    pub last_error: Option<String>,
    /// How often it was lost, or could not be had.
    pub failures: u64,
    /// Rows that went out.
    pub given: u64,
    /// Rows that came in. Not all of them were new.
    pub taken: u64,
    /// Rows in Redis that this version cannot read.
    pub unreadable: u64,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    status: Mutex<SharedStatus>,
    /// Hashes of the rows that were complained of.
    named: Mutex<HashSet<u64>>,
}

impl Notes {
    pub(super) fn new() -> Notes {
        let status = SharedStatus { since: Timestamp(stamps::now_ms()), ..SharedStatus::default() };
        Notes { status: Mutex::new(status), ..Notes::default() }
    }

    pub(super) fn status(&self) -> SharedStatus {
        with_lock(&self.status, |status| status.clone())
    }

    pub(super) fn connected(&self) {
        let was_connected = with_lock(&self.status, |status| {
            let was_connected = std::mem::replace(&mut status.is_connected, true);
            if !was_connected {
                status.since = Timestamp(stamps::now_ms());
            }
            was_connected
        });
        if !was_connected {
            tracing::info!("kills, keys and policies are shared with the other nodes");
        }
    }

    pub(super) fn lost(&self, error: &impl Display) {
        let is_news = with_lock(&self.status, |status| {
            let was_connected = std::mem::replace(&mut status.is_connected, false);
            let is_first = status.last_error.is_none();
            status.last_error = Some(error.to_string());
            status.failures += 1;
            if was_connected || is_first {
                status.since = Timestamp(stamps::now_ms());
            }
            was_connected || is_first
        });
        if is_news {
            tracing::warn!(
                %error,
                "kills, keys and policies are not shared with the other nodes; what is changed here holds here and goes out when Redis is back"
            );
        }
    }

    pub(super) fn listening(&self, is_listening: bool) {
        with_lock(&self.status, |status| status.is_listening = is_listening);
    }

    pub(super) fn counted(&self, given: usize, taken: usize) {
        with_lock(&self.status, |status| {
            status.given += given as u64;
            status.taken += taken as u64;
        });
    }

    /// A row that cannot be read. Each is named once.
    pub(super) fn unreadable(&self, kind: &str, name: &[u8], why: &impl Display) {
        let is_new = with_lock(&self.named, |named| {
            let has_room = named.len() < UNREADABLE_NAMED;
            has_room && named.insert(xxh3_64(&[kind.as_bytes(), b" ", name].concat()))
        });
        if is_new {
            with_lock(&self.status, |status| status.unreadable += 1);
            let name: String = String::from_utf8_lossy(name).chars().take(80).collect();
            tracing::warn!(kind, name, %why, "a shared row is left alone");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_cannot_be_read_are_counted_once_and_not_without_end() {
        let notes = Notes::default();
        for _ in 0..3 {
            notes.unreadable("kill", b"all", &"why");
        }
        assert_eq!(notes.status().unreadable, 1);
        for number in 0..=UNREADABLE_NAMED {
            notes.unreadable("key", number.to_string().as_bytes(), &"why");
        }
        assert_eq!(notes.status().unreadable, UNREADABLE_NAMED as u64);
    }
}
