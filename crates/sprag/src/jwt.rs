//! JSON web tokens of callers: whose claims can be believed.
//!
//! Each key allows only the algorithms of its own kind, so that nobody signs with a public key as if it were a secret.
//! Signatures are checked once: what came of it is remembered for each token, by its SHA-256. Times are checked always.
//! Nothing here refuses a call: a token that cannot be believed has no claims.

mod keys;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sprag_core::limits::{JWT_BYTES, JWT_CACHE};
use sprag_core::time::Timestamp;

use crate::config::Secret;
use keys::Key;

pub use keys::BadKey;

/// How tokens are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// The key.
    pub key: JwtKey,
    /// Whose tokens count; any without one.
    pub issuer: Option<String>,
    /// For whom they must be; anybody without one.
    pub audience: Option<String>,
    /// The header that brings the token.
    pub header: HeaderName,
    /// How far clocks may differ.
    pub leeway: Duration,
}

/// A key as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwtKey {
    /// A secret that signs and verifies.
    Secret(Secret),
    /// A public key in PEM.
    Pem(Secret),
    /// A JSON web key set.
    Jwks(Secret),
}

/// Verifies tokens.
pub struct Verifier {
    settings: JwtSettings,
    keys: Vec<Key>,
    seen: Mutex<HashMap<[u8; 32], Option<Arc<Claims>>>>,
}

/// What a token says that was signed with the key, by the right issuer for the right audience.
#[derive(Debug, PartialEq)]
pub struct Claims {
    all: Map<String, Value>,
    not_before: Option<f64>,
    expires: Option<f64>,
}

impl Verifier {
    /// Reads the key.
    ///
    /// # Errors
    /// When there is no key in it.
    pub fn new(settings: JwtSettings) -> Result<Verifier, BadKey> {
        let keys = keys::read(&settings.key)?;
        Ok(Verifier { settings, keys, seen: Mutex::default() })
    }

    /// What it was made of.
    #[must_use]
    pub fn settings(&self) -> &JwtSettings {
        &self.settings
    }

    /// The claims of the token that a request brings. None where there is no token, or more than one, or where it
    /// cannot be believed.
    #[must_use]
    pub fn claims(&self, headers: &HeaderMap, now: Timestamp) -> Option<Arc<Claims>> {
        let mut values = headers.get_all(&self.settings.header).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let token = token_of(value.to_str().ok()?);
        if token.len() > JWT_BYTES {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let known = self.with_seen(|seen| seen.get(&digest).cloned());
        let claims = known.unwrap_or_else(|| {
            let claims = self.verify(token).map(Arc::new);
            self.with_seen(|seen| remember(seen, digest, claims.clone(), now, self.settings.leeway));
            claims
        })?;
        claims.is_timely(now, self.settings.leeway).then_some(claims)
    }

    fn verify(&self, token: &str) -> Option<Claims> {
        let header = jsonwebtoken::decode_header(token).ok()?;
        let all = keys::fitting(&self.keys, &header).find_map(|key| key.verify(token))?;
        let JwtSettings { issuer, audience, .. } = &self.settings;
        let names = |claim: &str, wanted: &Option<String>| match (wanted, all.get(claim)) {
            (None, _) => true,
            (Some(wanted), Some(Value::String(one))) => one == wanted,
            (Some(wanted), Some(Value::Array(several))) => several.iter().any(|one| one.as_str() == Some(wanted)),
            (Some(_), _) => false,
        };
        if !names("iss", issuer) || !names("aud", audience) {
            return None;
        }
        // A time in another form than a number is no time: such a token has no end that could be kept.
        let time = |claim: &str| match all.get(claim) {
            None => Some(None),
            Some(value) => value.as_f64().map(Some),
        };
        let (not_before, expires) = (time("nbf")?, time("exp")?);
        Some(Claims { not_before, expires, all })
    }

    fn with_seen<R>(&self, work: impl FnOnce(&mut HashMap<[u8; 32], Option<Arc<Claims>>>) -> R) -> R {
        work(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Claims {
    /// A claim as texts: each of several, numbers and truths as JSON writes them. None where it says nothing.
    #[must_use]
    pub fn texts(&self, claim: &str) -> Option<Vec<String>> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        match self.all.get(claim)? {
            Value::Array(several) => several.iter().map(text).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()),
            one => text(one).map(|text| vec![text]),
        }
    }

    fn is_timely(&self, now: Timestamp, leeway: Duration) -> bool {
        let (now, leeway) = (now.0 as f64 / 1000.0, leeway.as_secs_f64());
        self.expires.is_none_or(|end| now < end + leeway) && self.not_before.is_none_or(|start| now >= start - leeway)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl PartialEq for Verifier {
    fn eq(&self, other: &Verifier) -> bool {
        self.settings == other.settings
    }
}

fn token_of(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => value.trim(),
    }
}

/// When there is no room, tokens leave that were not believed or are over; when that is not enough, all do.
fn remember(
    seen: &mut HashMap<[u8; 32], Option<Arc<Claims>>>,
    digest: [u8; 32],
    claims: Option<Arc<Claims>>,
    now: Timestamp,
    leeway: Duration,
) {
    if seen.len() >= JWT_CACHE {
        seen.retain(|_, claims| claims.as_ref().is_some_and(|claims| claims.is_timely(now, leeway)));
        if seen.len() > JWT_CACHE / 4 * 3 {
            seen.clear();
        }
    }
    seen.insert(digest, claims);
}
