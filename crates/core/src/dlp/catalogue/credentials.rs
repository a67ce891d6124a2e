//! Passwords, private keys, tokens without a vendor.

use super::row;
use crate::dlp::kind::{Family, Kind};

pub(super) const KINDS: &[Kind] = &[
    row(
        "PRIVATE_KEY",
        Family::Credential,
        "Private key",
        "`-----BEGIN ... PRIVATE KEY-----` to its end, the same in base64, the private members of a JWK, a NATS seed",
    ),
    row("JWT", Family::Credential, "JSON Web Token", "three parts in base64 with dots between, the first of them JSON"),
    row("PASSWORD", Family::Credential, "Password", "a value behind a name such as `db_password`"),
    row(
        "GENERIC_SECRET",
        Family::Credential,
        "Secret of no vendor",
        "a random value behind a name such as `client_secret`, `api_key`, `token`",
    ),
    row("BEARER_TOKEN", Family::Credential, "Bearer token", "`Bearer` and 16 or more random characters"),
    row(
        "BASIC_AUTH",
        Family::Credential,
        "User and password of a request",
        "`Basic` and base64; `curl -u user:password`",
    ),
    row(
        "URL_CREDENTIALS",
        Family::Credential,
        "Password in an address",
        "`https://user:password@host`; only the password",
    ),
    row(
        "DB_URL",
        Family::Credential,
        "Password in the address of a database",
        "`postgres://user:password@host`; only the password",
    ),
];
