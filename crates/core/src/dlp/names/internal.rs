//! URLs whose host is inside a network.

use crate::dlp::byte_set::ByteSet;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::numbers::{Net, left, read_address};
use crate::dlp::view::View;

const INTERNAL_URL: Entity = entity("INTERNAL_URL");

/// Names under which hosts are only known inside a network, in lower case. Own domains come beside them.
pub(in crate::dlp) const INTERNAL: &[&str] =
    &["internal", "corp", "lan", "intranet", "localdomain", "home.arpa", "svc", "cluster.local", "private", "home"];

/// Hosts under such names that are the same on every machine, or every cloud's.
const EVERYWHERE: &[&str] = &[
    "host.docker.internal",
    "gateway.docker.internal",
    "kubernetes.docker.internal",
    "host.containers.internal",
    "metadata.google.internal",
];

/// Longest scheme before `://`.
const MOST_SCHEME: usize = 16;
/// Longest user and host.
const MOST_AUTHORITY: usize = 512;
/// Longest URL; what is longer is found up to here.
const MOST_URL: usize = 2048;

/// What URLs are made of, in prose, code and JSON.
static URL: ByteSet = ByteSet::graphic_but(b"\"'<>`\\^{}|");
/// What names of machines are made of.
static HOST: ByteSet = ByteSet::alphanumeric_and(b"-_.");

/// Looks at `://`: an address inside a network.
pub(in crate::dlp) fn at_url(view: &View<'_>, at: usize, hits: &mut Hits) {
    at_url_under(view, at, hits.domains(), hits);
}

/// Looks at `://` with these names for what is inside.
pub(in crate::dlp) fn at_url_under<N: AsRef<str>>(view: &View<'_>, at: usize, names: &[N], hits: &mut Hits) {
    let Some(start) = scheme_start(view, at) else { return };
    let begin = at + 3;
    let rest = &view.text[begin..view.text.len().min(begin + MOST_AUTHORITY)];
    let length = rest.iter().take_while(|byte| is_url(**byte) && !matches!(byte, b'/' | b'?' | b'#')).count();
    if view.may_go_on(begin + length) {
        return hits.unsure(start);
    }
    let authority = &rest[..length];
    let user = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |sign| sign + 1);
    if !is_inside(&authority[user..], names) {
        return;
    }
    let behind = &view.text[begin..view.text.len().min(begin + MOST_URL)];
    let length = url_length(behind);
    if view.may_go_on(begin + length) && length < MOST_URL {
        return hits.unsure(start);
    }
    let ends = behind[..length].iter().rev().take_while(|byte| b".,;:!?)]}*_|".contains(byte)).count();
    hits.found(INTERNAL_URL, Tier::Proof, start, begin + length - ends);
}

/// How much of this belongs to a URL. Another that stands in it is looked at by itself.
fn url_length(text: &[u8]) -> usize {
    let is_next = |at: usize| text[at] == b':' && text[at..].starts_with(b"://");
    let length = (0..text.len()).find(|at| !is_url(text[*at]) || is_next(*at)).unwrap_or(text.len());
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme = match text.get(length) {
        Some(b':') => text[..length].iter().rev().take(MOST_SCHEME).take_while(|byte| is_scheme(byte)).count(),
        _ => 0,
    };
    length - scheme
}

/// Where the scheme begins that ends at `at`.
fn scheme_start(view: &View<'_>, at: usize) -> Option<usize> {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let least = at.saturating_sub(MOST_SCHEME);
    let mut start = at - view.text[least..at].iter().rev().take_while(|byte| is_scheme(byte)).count();
    if start > 0 && view.text[start - 1] == b'\\' {
        start =
            [start + 1, start + 5].into_iter().find(|end| *end <= at && left(view, *end).is_none()).unwrap_or(start);
    }
    let skip = view.text[start..at].iter().take_while(|byte| !byte.is_ascii_alphabetic()).count();
    (start + skip < at).then_some(start + skip)
}

/// Whether a host, with or without a port, is inside a network.
fn is_inside<N: AsRef<str>>(host: &[u8], names: &[N]) -> bool {
    if let Some((net, length)) = read_address(host) {
        return net == Net::Private
            && host.get(length).is_none_or(|byte| *byte == b':' || !byte.is_ascii_alphanumeric() && *byte != b'.');
    }
    let length = host.iter().take_while(|byte| HOST.has(**byte)).count();
    let name = &host[..length];
    let name = name.strip_suffix(b".").unwrap_or(name);
    // Nearly all names are told apart by their last letter.
    let last = name.last().map(u8::to_ascii_lowercase);
    let is_under = |one: &N| {
        let suffix = one.as_ref().as_bytes();
        if suffix.last().map(u8::to_ascii_lowercase) != last {
            return false;
        }
        let suffix = one.as_ref().trim_start_matches('.').as_bytes();
        name.len() > suffix.len()
            && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
            && name[name.len() - suffix.len() - 1] == b'.'
            && name[0] != b'.'
    };
    names.iter().any(is_under) && !EVERYWHERE.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// Whether a URL goes on with this byte, in prose, code and JSON.
fn is_url(byte: u8) -> bool {
    URL.has(byte)
}
