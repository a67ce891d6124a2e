//! Pauses in the work of the thread that writes the database.
//!
//! Taking a few hundred events in keeps a core busy for milliseconds. Where a thread that serves calls wakes up on the same core,
//! it would wait for the end of that, or of the slice that the system gives: so the work is done in small pieces, with room between
//! them. Where nobody waits for the work there is so much room that few calls meet two of them; where somebody does, there is less, and
//! where more comes in than that leaves time for, there is none. The system is told that the work has time, and lets a call end first.
//! A lower priority would do more, but could not be taken back without rights that Sprag has no other need for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::shards::with_lock;

/// Work between two pauses: a call waits no longer than this.
const PIECE: Duration = Duration::from_micros(50);
/// A pause while nobody waits for the work. Longer than a call is in hand, and short enough that the work of some seven thousand calls a
/// second is done in a second.
const LONG_PAUSE: Duration = Duration::from_micros(250);
/// A pause while somebody does.
const SHORT_PAUSE: Duration = PIECE;

/// How often the database asks, in steps of its machine: an event is some two hundred.
const STEPS: i32 = 200;

/// Whether there is time for pauses.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    is_hurried: AtomicBool,
    /// How many wait for the work.
    waiting: AtomicUsize,
    /// When the piece of work began that is under way.
    begun: Mutex<Option<Instant>>,
    #[cfg(test)]
    taken: std::sync::atomic::AtomicU32,
}

/// Tells the system that this thread has time: when it wakes up, it does not take the core from another one.
#[cfg(target_os = "linux")]
pub(super) fn take_time() {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    /// What the library takes for the usual priority, which it sets with the policy.
    const USUAL: u8 = 48;
    // Whoever lowered it for the whole process meant all threads.
    let is_usual = rustix::process::getpriority_process(None) == Ok(0);
    let Some(usual) = ThreadPriorityValue::try_from(USUAL).ok().filter(|_| is_usual) else { return };
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    if let Err(error) = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(usual), policy)
    {
        tracing::debug!(?error, "the thread that writes the database may take a core from calls");
    }
}

/// Other systems have no such word.
#[cfg(not(target_os = "linux"))]
pub(super) fn take_time() {}

/// Somebody waits for the work, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'a>(&'a Pauses);

impl Pauses {
    /// From now on somebody waits.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

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
                thread::sleep(self.length());
                #[cfg(test)]
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            *begun = Some(Instant::now());
        });
    }

    fn length(&self) -> Duration {
        if self.waiting.load(Ordering::Relaxed) > 0 { SHORT_PAUSE } else { LONG_PAUSE }
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

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_shorter_while_somebody_waits() {
        let pauses = Pauses::default();
        assert_eq!(pauses.length(), LONG_PAUSE);
        let waiting = (pauses.wait(), pauses.wait());
        assert_eq!(pauses.length(), SHORT_PAUSE);
        drop(waiting.0);
        assert_eq!(pauses.length(), SHORT_PAUSE, "one still does");
        drop(waiting.1);
        assert_eq!(pauses.length(), LONG_PAUSE);
    }

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
    #[cfg(target_os = "linux")]
    fn the_thread_lets_others_go_first_and_keeps_its_priority() {
        use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

        let usual = rustix::process::getpriority_process(None).unwrap();
        let told = thread::spawn(|| {
            take_time();
            (thread_schedule_policy(), rustix::process::getpriority_process(None))
        });
        let (policy, priority) = told.join().unwrap();
        let expected = if usual == 0 { NormalThreadSchedulePolicy::Batch } else { NormalThreadSchedulePolicy::Other };
        assert_eq!(policy.unwrap(), ThreadSchedulePolicy::Normal(expected));
        assert_eq!(priority.unwrap(), usual);
    }

    #[test]
    fn work_outside_of_statements_has_them_too() {
        let pauses = Pauses::default();
        let begun = Instant::now();
        while pauses.taken.load(Ordering::Relaxed) < 3 {
            pauses.pause_if_due();
        }
        assert!(begun.elapsed() >= 3 * (PIECE + LONG_PAUSE), "{:?}", begun.elapsed());
    }
}
