//! What this node holds in Redis, and what Redis is still to be told.
//!
//! Whatever is sent may arrive and its answer may not, and whoever waits for an answer may give up. So everything that
//! must arrive stands here until it is answered: the end of each call, and for each call that began without an answer
//! that it is taken back.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use sprag_core::limits::UNTOLD_CALLS;

use super::keys::prefix_of;
use super::packed::{EndTable, Head};
use crate::shards::with_lock;

/// Keys in one sign of life.
const KEYS_AT_ONCE: usize = 500;

/// One message that Redis must get: the place that it belongs to, and the packed arguments of `end`.
#[derive(Clone, Debug)]
pub(super) struct Untold {
    pub(super) place: String,
    pub(super) arguments: Vec<Vec<u8>>,
}

/// What is held and what is untold.
#[derive(Debug, Default)]
pub(super) struct Calls {
    untold: Mutex<Queue>,
    lost: AtomicU64,
    /// By key, for how many calls.
    held: Mutex<HashMap<String, u32, RandomState>>,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Untold>,
    /// Taken out in order to be told; not answered so far.
    in_hand: usize,
}

/// Keeps the end of a call until it is answered. Dropped before that, it is to be told again.
pub(super) struct Telling<'a> {
    calls: &'a Calls,
    what: Option<What>,
}

enum What {
    End(Box<EndTable>),
    /// A call that may have begun is taken back.
    Back(Head),
}

impl Calls {
    pub(super) fn telling(&self, table: EndTable) -> Telling<'_> {
        Telling { calls: self, what: Some(What::End(Box::new(table))) }
    }

    /// For a call that begins: unless it is done, it is to be taken back.
    pub(super) fn taking_back(&self, head: Head) -> Telling<'_> {
        Telling { calls: self, what: Some(What::Back(head)) }
    }

    pub(super) fn untold(&self) -> usize {
        with_lock(&self.untold, |untold| untold.messages.len() + untold.in_hand)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The message that waits longest. Told, lost or put back, it is no longer in hand.
    pub(super) fn next(&self) -> Option<Untold> {
        with_lock(&self.untold, |untold| {
            let message = untold.messages.pop_front()?;
            untold.in_hand += 1;
            Some(message)
        })
    }

    /// Redis has it now.
    pub(super) fn told(&self) {
        with_lock(&self.untold, |untold| untold.in_hand = untold.in_hand.saturating_sub(1));
    }

    /// It cannot be told at all.
    pub(super) fn lose(&self) {
        self.told();
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// It could not be told now either, and stays the next.
    pub(super) fn put_back(&self, message: Untold) {
        with_lock(&self.untold, |untold| {
            untold.in_hand = untold.in_hand.saturating_sub(1);
            untold.messages.push_front(message);
        });
    }

    pub(super) fn hold(&self, keys: impl Iterator<Item = String>) {
        with_lock(&self.held, |held| keys.for_each(|key| *held.entry(key).or_default() += 1));
    }

    pub(super) fn release(&self, keys: impl Iterator<Item = String>) {
        with_lock(&self.held, |held| {
            for key in keys {
                match held.get_mut(&key) {
                    Some(calls) if *calls > 1 => *calls -= 1,
                    _ => {
                        held.remove(&key);
                    }
                }
            }
        });
    }

    /// What is held, in lists of a bounded length; in a cluster those that lie together.
    pub(super) fn held(&self, is_cluster: bool) -> Vec<Vec<String>> {
        let mut keys: Vec<String> = with_lock(&self.held, |held| held.keys().cloned().collect());
        keys.sort_unstable();
        let is_together = |a: &String, b: &String| !is_cluster || prefix_of(a) == prefix_of(b);
        keys.chunk_by(is_together).flat_map(|keys| keys.chunks(KEYS_AT_ONCE)).map(<[String]>::to_vec).collect()
    }

    fn keep(&self, message: Untold) {
        let has_room = with_lock(&self.untold, |untold| {
            let has_room = untold.messages.len() < UNTOLD_CALLS;
            if has_room {
                untold.messages.push_back(message);
            }
            has_room
        });
        if !has_room {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Telling<'_> {
    /// As it is told the first time.
    pub(super) fn arguments(&self) -> Vec<Vec<u8>> {
        match &self.what {
            Some(What::End(table)) => table.arguments(),
            Some(What::Back(head)) => EndTable::withdrawing(head.clone()).arguments(),
            None => Vec::new(),
        }
    }

    /// Redis has it, or has nothing to take back.
    pub(super) fn done(mut self) {
        self.what = None;
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let table = self.what.take().map(|what| match what {
            What::End(table) => *table,
            What::Back(head) => EndTable::withdrawing(head),
        });
        if let Some(mut table) = table {
            table.again = true;
            // What detection keeps will have grown from something newer by then.
            (table.watch, table.agent_watch, table.habits, table.of_model) = (None, None, None, None);
            // The first are the accounts: they are needed should all else be lost.
            table.blobs.truncate(1);
            self.calls.keep(Untold { place: table.head.p.clone(), arguments: table.arguments() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::packed::Head;

    fn message(number: usize) -> EndTable {
        let text = |text: &str| text.to_owned();
        let head = Head { p: number.to_string(), call: text("c"), node: text("n"), fresh: text("f"), now: None };
        EndTable::withdrawing(head)
    }

    #[test]
    fn what_is_not_answered_done_again_in_its_order() {
        let calls = Calls::default();
        for number in 0..3 {
            let telling = calls.telling(message(number));
            if number == 1 {
                telling.done();
            }
        }
        let first = calls.next().unwrap();
        assert_eq!((first.place.as_str(), calls.untold()), ("0", 2), "what is in hand is not told yet");
        calls.put_back(first);
        assert_eq!(calls.untold(), 2);
        let places: Vec<String> = std::iter::from_fn(|| calls.next()).map(|message| message.place).collect();
        assert_eq!(places, ["0", "2"]);
        calls.told();
        calls.lose();
        assert_eq!((calls.untold(), calls.lost()), (0, 1));
    }

    #[test]
    fn what_is_untold_is_bounded() {
        let calls = Calls::default();
        for number in 0..=UNTOLD_CALLS {
            assert_eq!(calls.lost(), 0, "{number}");
            drop(calls.telling(message(number)));
        }
        assert_eq!((calls.untold(), calls.lost()), (UNTOLD_CALLS, 1));
    }

    #[test]
    fn a_key_is_held_as_long_as_one_call_holds_it() {
        let calls = Calls::default();
        let keys = |names: &[&str]| names.iter().map(|name| format!("x:{{{name}}}")).collect::<Vec<_>>();
        calls.hold(keys(&["a", "b"]).into_iter());
        calls.hold(keys(&["a"]).into_iter());
        calls.release(keys(&["a", "b"]).into_iter());
        assert_eq!(calls.held(false), [keys(&["a"])]);
        calls.hold(keys(&["b"]).into_iter());
        assert_eq!(calls.held(true), [keys(&["a"]), keys(&["b"])]);
        calls.release(keys(&["a", "b"]).into_iter());
        assert!(calls.held(false).is_empty());
    }
}
