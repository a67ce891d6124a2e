//! Which kind a secret is that only its name tells.
//!
//! A vendor's name near a value is not enough to say that the value is that vendor's: `GITLAB_PROXY_PASSWORD` is not. The
//! form must fit what the vendor hands out as well, else the secret stays one of no vendor.

use super::gap::Operator;
use super::judge::{Claim, is_uuid};
use super::name::Worth;
use crate::dlp::allowed::contains;
use crate::dlp::catalogue::entity;
use crate::dlp::kind::Entity;
use crate::dlp::random::{Makeup, makeup};

const PASSWORD: Entity = entity("PASSWORD");
const GENERIC_SECRET: Entity = entity("GENERIC_SECRET");
const DB_URL: Entity = entity("DB_URL");
const BEARER_TOKEN: Entity = entity("BEARER_TOKEN");
const BASIC_AUTH: Entity = entity("BASIC_AUTH");

/// How far before a name words can stand that belong to it.
const NEAR_BYTES: usize = 24;
/// How far before a name the rest of its connection string can stand.
const STRING_BYTES: usize = 256;

/// What a vendor's secrets look like.
type Form = fn(&[u8], &Makeup) -> bool;

/// Words in or just before a name, in lower case, and what a value behind it is if it has this form. The first row stands.
const VENDORS: &[(&[&str], Form, Entity)] = &[
    (&["aws_session", "session_token", "sessiontoken"], |value, _| value.len() >= 100, entity("AWS_SESSION_TOKEN")),
    (
        &["aws", "secret_access_key", "secretaccesskey"],
        |value, made| value.len() == 40 && is_base64(value) && made.upper > 0,
        entity("AWS_SECRET_KEY"),
    ),
    (
        &["accountkey", "sharedaccesskey", "azure_storage"],
        |value, _| [88, 44].contains(&value.len()) && is_base64(value),
        entity("AZURE_STORAGE_KEY"),
    ),
    (
        &["datadog", "dd_", "dd-"],
        |value, _| [32, 40, 35].contains(&value.len()) && is_alphanumeric(value),
        entity("DATADOG_KEY"),
    ),
    (&["heroku"], |value, _| is_uuid(value), entity("HEROKU_KEY")),
    (
        &["cloudflare"],
        |value, _| value.starts_with(b"v1.0-") || [37, 40].contains(&value.len()),
        entity("CLOUDFLARE_KEY"),
    ),
    (&["telegram"], |value, made| value.contains(&b':') && made.digits >= 5, entity("TELEGRAM_TOKEN")),
    (&["mailgun"], |value, made| value.len() >= 32 && made.digits > 4, entity("MAILGUN_KEY")),
    (&["mailchimp", "mandrill"], |value, _| value.len() >= 22, entity("MAILCHIMP_KEY")),
    (&["newrelic", "new-relic", "new_relic"], |value, _| value.len() >= 20, entity("NEWRELIC_KEY")),
    (&["twilio"], |value, made| [32, 34].contains(&value.len()) && made.others == 0, entity("TWILIO_KEY")),
    (&["okta", "ssws"], |value, _| value.len() == 42 && value.starts_with(b"00"), entity("OKTA_TOKEN")),
    (&["snowflake"], |value, _| value.len() >= 40, entity("SNOWFLAKE_SECRET")),
    (
        &["discord"],
        |value, made| (value.len() == 64 && made.is_hex()) || value.len() == 32 || value.len() >= 50,
        entity("DISCORD_TOKEN"),
    ),
    (&["github"], |value, made| value.len() == 40 && made.is_hex(), entity("GITHUB_TOKEN")),
    (&["google"], |value, _| value.len() == 24, entity("GOOGLE_OAUTH")),
    (&["yandex"], |value, _| value.len() >= 38, entity("YANDEX_KEY")),
    (&["vault"], |value, _| value.len() >= 26 && value[1] == b'.', entity("VAULT_TOKEN")),
];

/// The kind of a secret.
pub(super) fn entity_of(claim: &Claim<'_, '_>) -> Entity {
    if is_in_connection_string(claim) {
        return DB_URL;
    }
    let (text, name) = (claim.view.text, claim.name);
    if claim.worth == Worth::Password {
        return PASSWORD;
    }
    let value = claim.text();
    let made = makeup(value);
    let near = &text[line_start(claim, NEAR_BYTES)..name.end];
    let vendor = VENDORS
        .iter()
        .find(|(words, form, _)| form(value, &made) && words.iter().any(|word| contains(near, word.as_bytes())));
    if let Some((_, _, entity)) = vendor {
        return *entity;
    }
    let between = &text[name.end..claim.value.start];
    if contains(&text[name.start..name.end], b"authorization") {
        return if contains(between, b"basic") { BASIC_AUTH } else { BEARER_TOKEN };
    }
    GENERIC_SECRET
}

/// `Server=db;User Id=sa;Password=…`.
fn is_in_connection_string(claim: &Claim<'_, '_>) -> bool {
    const PARTS: &[&[u8]] = &[
        b"server=",
        b"data source=",
        b"host=",
        b"uid=",
        b"user id=",
        b"userid=",
        b"database=",
        b"endpoint=",
        b"initial catalog=",
        b"connectionstring",
    ];
    let text = claim.view.text;
    let before = &text[line_start(claim, STRING_BYTES)..claim.name.start];
    let is_part = before.iter().rev().find(|byte| **byte != b' ').is_some_and(|byte| b";\"'".contains(byte));
    is_part
        && claim.operator == Operator::Assign
        && claim.value.quote.is_none()
        && (before.contains(&b';') || text.get(claim.value.end) == Some(&b';'))
        && PARTS.iter().any(|part| contains(before, part))
}

/// Where the line of the name begins, or how far back of it is looked at.
fn line_start(claim: &Claim<'_, '_>, most: usize) -> usize {
    let before = &claim.view.text[..claim.name.start];
    claim.name.start - before.iter().rev().take(most).take_while(|byte| **byte != b'\n').count()
}

fn is_alphanumeric(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_alphanumeric)
}

fn is_base64(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
}
