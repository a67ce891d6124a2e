//! The moment and the ids, real or scripted: the only places where the program meets a clock or a dice.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::Rng;
use sprag_core::id::RunId;
use sprag_core::time::Timestamp;

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's clock.
    Real,
    /// The same, wrong by so many milliseconds: a node whose clock nobody sets.
    Wrong {
        /// How far it is ahead; below nothing where it is behind.
        ahead_ms: i64,
    },
    /// Milliseconds that a test sets.
    Scripted(Arc<AtomicI64>),
}

impl Clock {
    /// The moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Real => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Clock::Wrong { ahead_ms } => Timestamp(Clock::Real.now().0.saturating_add(*ahead_ms)),
            Clock::Scripted(ms) => Timestamp(ms.load(Ordering::Relaxed)),
        }
    }
}

/// Where new ids come from.
#[derive(Clone, Debug)]
pub enum Ids {
    /// Ordered by time, random enough never to meet again.
    Random,
    /// Counted, for tests.
    Counted(Arc<AtomicU64>),
}

impl Ids {
    /// A new id for a request, which is also the id of its event.
    #[must_use]
    pub fn request(&self, now: Timestamp) -> String {
        self.make("req_", now)
    }

    /// A new id for a kill.
    #[must_use]
    pub fn kill(&self, now: Timestamp) -> String {
        self.make("kill_", now)
    }

    /// A new id for a virtual key: `key-` and eight lower-case letters or digits.
    #[must_use]
    pub fn key(&self) -> String {
        self.short("key-")
    }

    /// A new id for an admin token: `tok-` and eight lower-case letters or digits.
    #[must_use]
    pub fn token(&self) -> String {
        self.short("tok-")
    }

    /// A new id for the run of a command: `cmd-` and eight lower-case letters or digits.
    #[must_use]
    pub fn command(&self) -> RunId {
        RunId::parse(&self.short("cmd-")).unwrap_or_else(|_| unreachable!("generated ids are printable"))
    }

    fn short(&self, prefix: &str) -> String {
        const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        match self {
            Ids::Counted(next) => format!("{prefix}{:08}", next.fetch_add(1, Ordering::Relaxed)),
            Ids::Random => {
                let mut dice = rand::rng();
                let letters = (0..8).map(|_| char::from(ALPHABET[dice.random_range(0..ALPHABET.len())]));
                format!("{prefix}{}", letters.collect::<String>())
            }
        }
    }

    /// A new id for a run that nobody named.
    #[must_use]
    pub fn run(&self, now: Timestamp) -> RunId {
        RunId::parse(&self.make("run_", now)).unwrap_or_else(|_| unreachable!("generated ids are printable"))
    }

    fn make(&self, prefix: &str, now: Timestamp) -> String {
        match self {
            Ids::Counted(next) => format!("{prefix}{}", next.fetch_add(1, Ordering::Relaxed)),
            Ids::Random => {
                let mut id = String::with_capacity(prefix.len() + 26);
                id.push_str(prefix);
                // 50 bits of time, then 80 random ones, five bits a character.
                push_base32(&mut id, u128::from(now.0.unsigned_abs()), 10);
                push_base32(&mut id, rand::random::<u128>(), 16);
                id
            }
        }
    }
}

fn push_base32(out: &mut String, value: u128, characters: u32) {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    for at in (0..characters).rev() {
        out.push(char::from(ALPHABET[(value >> (5 * at)) as usize & 31]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_by_time_and_never_equal() {
        let (early, late) = (Ids::Random.request(Timestamp(1_000)), Ids::Random.request(Timestamp(1_001)));
        assert!(early < late, "{early} {late}");
        assert_ne!(Ids::Random.request(Timestamp(5)), Ids::Random.request(Timestamp(5)));
        assert_eq!(early.len(), 30);
        assert!(sprag_core::id::is_key_id(&Ids::Random.key()));
    }
}
