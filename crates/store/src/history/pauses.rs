//! Pauses in the work of the thread that writes the database.
//!
//! Taking a few hundred events in keeps a core busy for milliseconds. Where a thread that serves calls wakes up on the same core,
//! it would wait for the end of that, or of the slice that the system gives: so the work is done in small pieces, with room between
//! them. Where more comes in than that leaves time for, there are none. A lower priority would do as much, but could not be taken
//! back without rights that Sprag has no other need for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::shards::with_lock;

/// Work between two pauses, and the length of a pause: a call waits no longer than this.
const PIECE: Duration = Duration::from_micros(50);

/// How often the database asks, in steps of its machine: an event is some two hundred.
const STEPS: i32 = 200;

/// Whether there is time for pauses.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    is_hurried: AtomicBool,
    /// When the piece of work began that is under way.
    begun: Mutex<Option<Instant>>,
    #[cfg(test)]
    taken: std::sync::atomic::AtomicU32,
}

impl Pauses {
    /// Lets a connection's statements pause.
    pub(super) fn interrupt(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let pauses = Arc::clone(self);
        let between_steps = move || {
            pauses.pause_if_due();
            // True would end the statement.
            false
        };
        connection.progress_handler(STEPS, Some(between_steps))
    }

    /// Pauses where a piece of work is done. To be called often.
    pub(super) fn pause_if_due(&self) {
        with_lock(&self.begun, |begun| {
            if begun.get_or_insert_with(Instant::now).elapsed() < PIECE {
                return;
            }
            if !self.is_hurried.load(Ordering::Relaxed) {
                thread::sleep(PIECE);
                #[cfg(test)]
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            *begun = Some(Instant::now());
        });
    }

    #[cfg(test)]
    pub(super) fn are_taken(&self) -> bool {
        !self.is_hurried.load(Ordering::Relaxed)
    }

    /// Takes the pauses away, or gives them back.
    pub(super) fn hurry(&self, is_hurried: bool) {
        self.is_hurried.store(is_hurried, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up a hundred thousand numbers; gives how often it paused.
    fn paused(connection: &Connection, pauses: &Pauses) -> u32 {
        pauses.taken.store(0, Ordering::Relaxed);
        let sum =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT sum(i) FROM n";
        let sum: i64 = connection.query_row(sum, [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 5_000_050_000);
        pauses.taken.load(Ordering::Relaxed)
    }

    #[test]
    fn long_work_has_pauses_unless_it_is_hurried() {
        let pauses = Arc::new(Pauses::default());
        let connection = Connection::open_in_memory().unwrap();
        pauses.interrupt(&connection).unwrap();
        assert!(paused(&connection, &pauses) > 0);
        pauses.hurry(true);
        assert_eq!(paused(&connection, &pauses), 0);
        pauses.hurry(false);
        assert!(paused(&connection, &pauses) > 0);
    }

    #[test]
    fn work_outside_of_statements_has_them_too() {
        let pauses = Pauses::default();
        let begun = Instant::now();
        while pauses.taken.load(Ordering::Relaxed) < 3 {
            pauses.pause_if_due();
        }
        assert!(begun.elapsed() >= 3 * PIECE, "{:?}", begun.elapsed());
    }
}
