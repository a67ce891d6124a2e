//! What stands in an address before the host: `scheme://user:password@host`.

use super::scheme::run_end;
use crate::dlp::allowed::{is_everybodys, is_placeholder};
use crate::dlp::byte_set::ByteSet;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::random::makeup;
use crate::dlp::view::View;

const URL_CREDENTIALS: Entity = entity("URL_CREDENTIALS");
const DB_URL: Entity = entity("DB_URL");

/// Longest user.
const USER_BYTES: usize = 128;
/// Longest password.
const PASSWORD_BYTES: usize = 512;
/// Longest scheme.
const SCHEME_BYTES: usize = 24;
/// Fewest bytes of a token that stands where a user does.
const TOKEN_BYTES: usize = 20;

/// Beginnings of the schemes of databases and queues.
const DATABASES: &[&[u8]] = &[
    b"mongo",
    b"mysql",
    b"mariadb",
    b"postgres",
    b"redis",
    b"jdbc",
    b"odbc",
    b"amqp",
    b"ldap",
    b"sqlserver",
    b"mssql",
    b"couchbase",
    b"clickhouse",
    b"cockroach",
    b"oracle",
    b"pgx",
    b"rediss",
    b"cassandra",
    b"neo4j",
    b"bolt",
];

/// What users are made of.
static USER: ByteSet = ByteSet::graphic_but(b":/@\"'`<>?#\\|,()[]");
/// What passwords are made of.
static PASSWORD: ByteSet = ByteSet::graphic_but(b"@/\"'`<>\\#?{}").and_beyond_ascii();

/// Looks at `://`.
pub(in crate::dlp) fn at_url(view: &View<'_>, at: usize, hits: &mut Hits) {
    let user = at + 3;
    let user_end = run_end(view, user, USER_BYTES, |byte| USER.has(byte));
    match view.text.get(user_end) {
        Some(b':') => {}
        Some(b'@') if user_end - user >= TOKEN_BYTES => {
            let value = &view.text[user..user_end];
            let made = makeup(value);
            if made.digits > 1 && made.is_rarer_than(430) && !is_placeholder(value) {
                hits.found(URL_CREDENTIALS, Tier::Format, user, user_end);
            }
            return;
        }
        None if view.may_go_on(user_end) => {
            // A token may stand here; what is shorter than one is let go when more comes.
            return hits.unsure(user);
        }
        _ => return,
    }
    let start = user_end + 1;
    let end = run_end(view, start, PASSWORD_BYTES, |byte| PASSWORD.has(byte));
    if view.may_go_on(end) || view.may_go_on(end + 1) {
        return hits.unsure(start);
    }
    let value = &view.text[start..end];
    let is_host = view.text.get(end + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"[${<_".contains(byte));
    if view.text.get(end) != Some(&b'@')
        || !is_host
        || value.len() < 4
        || is_placeholder(value)
        || is_everybodys(value)
        || value == &view.text[user..user_end]
    {
        return;
    }
    hits.found(if is_database(view, at) { DB_URL } else { URL_CREDENTIALS }, Tier::Format, start, end);
}

fn is_database(view: &View<'_>, at: usize) -> bool {
    let length = view.text[..at]
        .iter()
        .rev()
        .take(SCHEME_BYTES)
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-:".contains(byte))
        .count();
    let scheme = view.text[at - length..at].to_ascii_lowercase();
    DATABASES.iter().any(|name| scheme.starts_with(name))
}
