//! `[jwt]`: how tokens of callers are verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How JSON web tokens of callers are verified. Without a key none is, and rate limits by `jwt:CLAIM` count all callers together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Jwt {
    /// Environment variable that holds the secret of HS256, HS384 and HS512.
    #[schemars(example = &"JWT_SECRET")]
    pub secret_env: Option<String>,
    /// File that holds that secret.
    #[schemars(example = &"/run/secrets/jwt")]
    pub secret_file: Option<String>,
    /// PEM file of the public key: RSA, elliptic curve or Ed25519.
    #[schemars(example = &"/etc/sprag/jwt.pem")]
    pub public_key_file: Option<String>,
    /// File with a JSON web key set.
    #[schemars(example = &"/etc/sprag/jwks.json")]
    pub jwks_file: Option<String>,
    /// Only tokens of this issuer count. Without one: of any.
    #[schemars(example = &"https://login.example.com")]
    pub issuer: Option<String>,
    /// Only tokens for this audience count. Without one: for any.
    #[schemars(example = &"sprag")]
    pub audience: Option<String>,
    /// The header that brings the token, alone or after "Bearer".
    pub header: String,
    /// How far clocks may differ when a token's times are checked.
    #[schemars(range(min = 0, max = 3600))]
    pub leeway_seconds: u64,
}

impl Default for Jwt {
    fn default() -> Jwt {
        Jwt {
            secret_env: None,
            secret_file: None,
            public_key_file: None,
            jwks_file: None,
            issuer: None,
            audience: None,
            header: "authorization".to_owned(),
            leeway_seconds: 60,
        }
    }
}
