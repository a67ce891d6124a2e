//! Which counter of a rate limit a call counts in.
//!
//! The counter is a hash of the rule and of the values that the call carries for it. What a call does not carry is
//! replaced by a mark that no value can be: all calls without it share a counter. Claims count only from a token that
//! was verified, so nobody gets a counter of his own by claiming something.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use sprag_core::id::AgentName;
use sprag_core::policy::{Descriptor, LimitKey, RateRule};
use sprag_core::price::plain_model_name;
use sprag_core::time::Timestamp;
use xxhash_rust::xxh3::Xxh3Default;

use super::carried::carried;
use crate::jwt::{Claims, Verifier};

/// A call, as far as its counters depend on it.
pub struct Carrier<'a> {
    head: &'a Parts,
    agent: &'a AgentName,
    key: Option<&'a str>,
    model: Option<&'a str>,
    verifier: Option<&'a Verifier>,
    now: Timestamp,
    /// Verified once for all rules.
    claims: OnceCell<Option<Arc<Claims>>>,
}

/// Before each part: what is carried and what is not can never look alike.
const MISSING: u8 = 0;
const PRESENT: u8 = 1;

impl<'a> Carrier<'a> {
    /// A call. `key` is the id of its virtual key, or else of its credential; `model` is the one that it asks.
    #[must_use]
    pub fn new(
        head: &'a Parts,
        agent: &'a AgentName,
        key: Option<&'a str>,
        model: Option<&'a str>,
        verifier: Option<&'a Verifier>,
        now: Timestamp,
    ) -> Carrier<'a> {
        Carrier { head, agent, key, model, verifier, now, claims: OnceCell::new() }
    }

    fn claims(&self) -> Option<&Claims> {
        let verify = || self.verifier.and_then(|verifier| verifier.claims(&self.head.headers, self.now));
        self.claims.get_or_init(verify).as_deref()
    }
}

/// The counter of a rule that a call counts in.
#[must_use]
pub fn bucket(rule: &RateRule, carrier: &Carrier<'_>) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(&rule.id.to_le_bytes());
    for key in &rule.limit_keys {
        add(&mut hash, key, carrier);
    }
    hash.digest()
}

/// What a call carries for the keys of these rules, each key once: its name, and a digest of its values or of their
/// absence.
#[must_use]
pub fn descriptors<'r>(rules: impl Iterator<Item = &'r RateRule>, carrier: &Carrier<'_>) -> Vec<(String, String)> {
    let mut keys: Vec<(String, &LimitKey)> =
        rules.flat_map(|rule| &rule.limit_keys).map(|key| (key.to_string(), key)).collect();
    keys.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    keys.dedup_by(|one, other| one.0 == other.0);
    let digest = |key: &LimitKey| {
        let mut hash = Xxh3Default::new();
        add(&mut hash, key, carrier);
        format!("{:016x}", hash.digest())
    };
    keys.into_iter().map(|(name, key)| (name, digest(key))).collect()
}

fn add(hash: &mut Xxh3Default, key: &LimitKey, carrier: &Carrier<'_>) {
    match key {
        LimitKey::Agent => add_values(hash, &[carrier.agent.as_str()]),
        LimitKey::Key => add_values(hash, carrier.key.as_slice()),
        // Another spelling is not another model.
        LimitKey::Model => add_values(hash, carrier.model.and_then(plain_model_name).as_slice()),
        LimitKey::Carried(Descriptor::Header(name)) => {
            let values: Vec<&[u8]> = carrier.head.headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
            add_values(hash, &values);
        }
        LimitKey::Carried(Descriptor::Jwt(claim)) => {
            let texts = carrier.claims().and_then(|claims| claims.texts(claim));
            add_values(hash, &texts.unwrap_or_default());
        }
        LimitKey::Carried(Descriptor::Ip) => match carrier.head.extensions.get::<SocketAddr>() {
            Some(peer) => match peer.ip().to_canonical() {
                std::net::IpAddr::V4(address) => add_values(hash, &[address.octets()]),
                std::net::IpAddr::V6(address) => add_values(hash, &[address.octets()]),
            },
            None => add_values::<&str>(hash, &[]),
        },
        LimitKey::Carried(query @ Descriptor::Query(_)) => add_values(hash, &carried(carrier.head, query)),
    }
}

/// Lengths go before values: `ab` and `c` are not `a` and `bc`.
fn add_values<T: AsRef<[u8]>>(hash: &mut Xxh3Default, values: &[T]) {
    if values.is_empty() {
        hash.update(&[MISSING]);
        return;
    }
    hash.update(&[PRESENT]);
    hash.update(&(values.len() as u64).to_le_bytes());
    for value in values {
        hash.update(&(value.as_ref().len() as u64).to_le_bytes());
        hash.update(value.as_ref());
    }
}

#[cfg(test)]
mod tests;
