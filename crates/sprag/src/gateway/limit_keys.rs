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
use xxhash_rust::xxh3::xxh3_64;

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

/// Room for the values of most rules.
const VALUES_BYTES: usize = 128;

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
    let mut values = Vec::with_capacity(VALUES_BYTES);
    values.extend_from_slice(&rule.id.to_le_bytes());
    for key in &rule.limit_keys {
        add(&mut values, key, carrier);
    }
    xxh3_64(&values)
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
        let mut values = Vec::with_capacity(VALUES_BYTES);
        add(&mut values, key, carrier);
        format!("{:016x}", xxh3_64(&values))
    };
    keys.into_iter().map(|(name, key)| (name, digest(key))).collect()
}

fn add(values: &mut Vec<u8>, key: &LimitKey, carrier: &Carrier<'_>) {
    match key {
        LimitKey::Agent => add_all(values, [carrier.agent.as_str()].iter()),
        LimitKey::Key => add_all(values, carrier.key.iter()),
        // Another spelling is not another model.
        LimitKey::Model => add_all(values, carrier.model.and_then(plain_model_name).as_deref().iter()),
        LimitKey::Carried(Descriptor::Header(name)) => add_all(values, carrier.head.headers.get_all(name).iter()),
        LimitKey::Carried(Descriptor::Jwt(claim)) => {
            let texts = carrier.claims().and_then(|claims| claims.texts(claim));
            add_all(values, texts.unwrap_or_default().iter());
        }
        LimitKey::Carried(Descriptor::Ip) => match carrier.head.extensions.get::<SocketAddr>() {
            Some(peer) => match peer.ip().to_canonical() {
                std::net::IpAddr::V4(address) => add_all(values, [address.octets()].iter()),
                std::net::IpAddr::V6(address) => add_all(values, [address.octets()].iter()),
            },
            None => add_all::<&str>(values, [].iter()),
        },
        LimitKey::Carried(query @ Descriptor::Query(_)) => add_all(values, carried(carrier.head, query).iter()),
    }
}

/// Before values goes how many there are, and before each how long it is: nothing is not an empty value, and `ab` and
/// `c` are not `a` and `bc`.
fn add_all<'v, T: AsRef<[u8]> + 'v>(values: &mut Vec<u8>, all: impl Iterator<Item = &'v T>) {
    const NUMBER_BYTES: usize = size_of::<u64>();
    let start = values.len();
    let mut number: u64 = 0;
    values.extend_from_slice(&number.to_le_bytes());
    for value in all {
        let value = value.as_ref();
        values.extend_from_slice(&(value.len() as u64).to_le_bytes());
        values.extend_from_slice(value);
        number += 1;
    }
    values[start..start + NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests;
