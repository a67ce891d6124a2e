//! What Redis said last of accounts, so that a node notices when Redis has lost some of it.

use serde::Serialize;
use sprag_core::limits::LEDGER_ACCOUNTS;
use xxhash_rust::xxh3::xxh3_64;

use crate::state::Recent;

/// An account as Redis told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Heard {
    /// What it had spent.
    pub(super) s: i64,
    /// Its generation.
    pub(super) g: String,
    /// How often it was lowered by hand.
    pub(super) v: i64,
    /// When its time began.
    pub(super) f: i64,
}

/// The accounts that this node has heard of, bounded.
#[derive(Debug)]
pub(super) struct HeardAccounts(Recent<Heard>);

impl Default for HeardAccounts {
    fn default() -> HeardAccounts {
        HeardAccounts(Recent::new(LEDGER_ACCOUNTS))
    }
}

impl HeardAccounts {
    pub(super) fn get(&self, key: &str) -> Option<Heard> {
        self.0.get(xxh3_64(key.as_bytes()))
    }

    /// Answers may overtake each other: within a generation the larger one is the later.
    pub(super) fn hear(&self, key: &str, heard: Heard) {
        self.0.update(xxh3_64(key.as_bytes()), |known| match known {
            Some(known) if is_later(&known, &heard) => known,
            _ => heard,
        });
    }
}

fn is_later(known: &Heard, heard: &Heard) -> bool {
    known.g == heard.g && known.f == heard.f && (known.v, known.s) > (heard.v, heard.s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let heard = |g: &str, v, s| Heard { s, g: g.into(), v, f: 0 };
        let accounts = HeardAccounts::default();
        for (told, expected) in [
            (heard("a", 0, 5), heard("a", 0, 5)),
            (heard("a", 0, 3), heard("a", 0, 5)),
            (heard("a", 1, 2), heard("a", 1, 2)),
            (heard("a", 0, 9), heard("a", 1, 2)),
            (heard("b", 0, 1), heard("b", 0, 1)),
        ] {
            accounts.hear("key", told);
            assert_eq!(accounts.get("key"), Some(expected));
        }
        assert_eq!(accounts.get("other"), None);
    }
}
