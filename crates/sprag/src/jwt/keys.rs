//! Keys, each with the algorithms that fit it.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde_json::{Map, Value};
use sprag_core::limits::JWKS_KEYS;

use super::JwtKey;

/// A key and what it may verify.
pub(super) struct Key {
    id: Option<String>,
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
}

/// A text that holds no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Not PEM, or no public key in it.
    #[error(
        "no public key in PEM; expected RSA, an elliptic curve or Ed25519, beginning with -----BEGIN PUBLIC KEY-----"
    )]
    Pem,
    /// A private key.
    #[error("this is a private key; expected the public one: a verifier needs no more")]
    Private,
    /// Not a set.
    #[error("not a JSON web key set; expected {{\"keys\": [...]}}")]
    Jwks,
    /// A set without a usable key.
    #[error("the set has no key that can be used")]
    EmptyJwks,
    /// A set with too many keys.
    #[error("the set has more than {JWKS_KEYS} keys")]
    LargeJwks,
}

const HMAC: [Algorithm; 3] = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
const RSA: [Algorithm; 6] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];
const CURVES: [Algorithm; 2] = [Algorithm::ES256, Algorithm::ES384];

/// The keys in a text.
pub(super) fn read(key: &JwtKey) -> Result<Vec<Key>, BadKey> {
    let one = |key: DecodingKey, algorithms: &[Algorithm]| vec![Key { id: None, key, algorithms: algorithms.to_vec() }];
    match key {
        JwtKey::Secret(secret) => Ok(one(DecodingKey::from_secret(secret.reveal().as_bytes()), &HMAC)),
        JwtKey::Pem(text) => {
            let pem = text.reveal().as_bytes();
            if text.reveal().contains("PRIVATE KEY-----") {
                return Err(BadKey::Private);
            }
            let rsa = || DecodingKey::from_rsa_pem(pem).map(|key| one(key, &RSA));
            let curve = || DecodingKey::from_ec_pem(pem).map(|key| one(key, &CURVES));
            let edwards = || DecodingKey::from_ed_pem(pem).map(|key| one(key, &[Algorithm::EdDSA]));
            rsa().or_else(|_| curve()).or_else(|_| edwards()).map_err(|_| BadKey::Pem)
        }
        JwtKey::Jwks(text) => read_set(text.reveal()),
    }
}

/// The keys that a token may have been signed with: those of its id, or else those without one.
pub(super) fn fitting<'a>(keys: &'a [Key], header: &'a Header) -> impl Iterator<Item = &'a Key> {
    let is_known = header.kid.is_some() && keys.iter().any(|key| key.id == header.kid);
    keys.iter().filter(move |key| {
        let is_meant = match (&header.kid, &key.id) {
            (Some(_), _) if is_known => key.id == header.kid,
            (Some(_), id) => id.is_none(),
            (None, _) => true,
        };
        is_meant && key.algorithms.contains(&header.alg)
    })
}

impl Key {
    /// The claims of a token with a right signature, their meaning not looked at.
    pub(super) fn verify(&self, token: &str) -> Option<Map<String, Value>> {
        let mut validation = Validation::default();
        validation.algorithms.clone_from(&self.algorithms);
        validation.required_spec_claims.clear();
        // Times are ours to check, by the clock of the request; so are issuer and audience.
        (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
        jsonwebtoken::decode(token, &self.key, &validation).ok().map(|token| token.claims)
    }
}

fn read_set(text: &str) -> Result<Vec<Key>, BadKey> {
    let set: Value = serde_json::from_str(text).map_err(|_| BadKey::Jwks)?;
    let entries = set["keys"].as_array().ok_or(BadKey::Jwks)?;
    if entries.len() > JWKS_KEYS {
        return Err(BadKey::LargeJwks);
    }
    // Sets hold keys for other ends and of other kinds too.
    let keys: Vec<Key> = entries.iter().filter(|entry| entry["use"] != "enc").filter_map(read_entry).collect();
    if keys.is_empty() { Err(BadKey::EmptyJwks) } else { Ok(keys) }
}

fn read_entry(entry: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(entry.clone()).ok()?;
    let mut algorithms = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => RSA.to_vec(),
        AlgorithmParameters::OctetKey(_) => HMAC.to_vec(),
        AlgorithmParameters::OctetKeyPair(_) => vec![Algorithm::EdDSA],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            EllipticCurve::P521 | EllipticCurve::Ed25519 => return None,
        },
    };
    if let Some(stated) = entry["alg"].as_str() {
        algorithms.retain(|algorithm| format!("{algorithm:?}") == stated);
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    (!algorithms.is_empty()).then_some(Key { id: jwk.common.key_id, key, algorithms })
}
