//! Wrong tokens, counted by where they come from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use sprag_core::limits::{WRONG_TOKEN_PEERS, WRONG_TOKENS};
use sprag_core::time::Timestamp;

/// Attempts are counted over this long.
const WINDOW_MS: u64 = 60_000;

/// Who offered wrong tokens of late.
#[derive(Default)]
pub(super) struct Throttle {
    peers: Mutex<HashMap<IpAddr, Attempts>>,
}

#[derive(Clone, Copy)]
struct Attempts {
    since: Timestamp,
    wrong: u32,
}

impl Throttle {
    /// Seconds until this address may try again; none when it may now.
    pub(super) fn wait_seconds(&self, peer: IpAddr, now: Timestamp) -> Option<u32> {
        let attempts = self.with(|peers| peers.get(&network(peer)).copied())?;
        let passed = now.since_ms(attempts.since);
        if attempts.wrong < WRONG_TOKENS || passed >= WINDOW_MS {
            return None;
        }
        u32::try_from((WINDOW_MS - passed).div_ceil(1000)).ok()
    }

    pub(super) fn count_wrong(&self, peer: IpAddr, now: Timestamp) {
        let peer = network(peer);
        self.with(|peers| {
            if peers.len() >= WRONG_TOKEN_PEERS && !peers.contains_key(&peer) {
                let quietest = peers.iter().min_by_key(|(_, attempts)| attempts.since).map(|(peer, _)| *peer);
                quietest.and_then(|peer| peers.remove(&peer));
            }
            let attempts = peers.entry(peer).or_insert(Attempts { since: now, wrong: 0 });
            if now.since_ms(attempts.since) >= WINDOW_MS {
                *attempts = Attempts { since: now, wrong: 0 };
            }
            attempts.wrong = attempts.wrong.saturating_add(1);
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<IpAddr, Attempts>) -> T) -> T {
        work(&mut self.peers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One machine usually owns a whole /64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u32) -> IpAddr {
        IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + last))
    }

    #[test]
    fn waits_after_the_last_allowed_attempt_until_the_minute_is_over() {
        let throttle = Throttle::default();
        for _ in 0..WRONG_TOKENS - 1 {
            throttle.count_wrong(peer(1), Timestamp(0));
        }
        assert_eq!(throttle.wait_seconds(peer(1), Timestamp(0)), None);
        throttle.count_wrong(peer(1), Timestamp(500));
        assert_eq!(throttle.wait_seconds(peer(1), Timestamp(500)), Some(60));
        assert_eq!(throttle.wait_seconds(peer(1), Timestamp(59_999)), Some(1));
        assert_eq!(throttle.wait_seconds(peer(1), Timestamp(60_000)), None);
        assert_eq!(throttle.wait_seconds(peer(2), Timestamp(500)), None);
        throttle.count_wrong(peer(1), Timestamp(60_000));
        assert_eq!(throttle.wait_seconds(peer(1), Timestamp(60_000)), None, "a new minute begins at one");
    }

    #[test]
    fn remembers_a_bounded_number_of_addresses() {
        let throttle = Throttle::default();
        let all = u32::try_from(WRONG_TOKEN_PEERS).unwrap();
        for at in 0..=all {
            for _ in 0..WRONG_TOKENS {
                throttle.count_wrong(peer(at), Timestamp(i64::from(at)));
            }
            assert!(throttle.with(|peers| peers.len()) <= WRONG_TOKEN_PEERS);
        }
        let now = Timestamp(i64::from(all));
        assert_eq!(throttle.wait_seconds(peer(0), now), None, "the quietest was forgotten");
        assert!(throttle.wait_seconds(peer(1), now).is_some() && throttle.wait_seconds(peer(all), now).is_some());
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let throttle = Throttle::default();
        for host in 0..WRONG_TOKENS {
            throttle.count_wrong(format!("2001:db8::{host:x}").parse().unwrap(), Timestamp(0));
        }
        assert!(throttle.wait_seconds("2001:db8::ffff".parse().unwrap(), Timestamp(0)).is_some());
        assert!(throttle.wait_seconds("2001:db8:1::1".parse().unwrap(), Timestamp(0)).is_none());
    }
}
