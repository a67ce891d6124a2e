//! E-mail addresses: `name@domain`, told apart from packages, pictures, remotes and code.

use super::top_level;
use crate::dlp::byte_set::ByteSet;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::numbers::left;
use crate::dlp::view::View;

const EMAIL: Entity = entity("EMAIL");

/// Longest part before the `@` (RFC 5321).
const MOST_LOCAL: usize = 64;
/// Longest domain (RFC 1035).
const MOST_DOMAIN: usize = 253;
/// So much is looked at of what follows a `:`.
const MOST_PATH: usize = 64;
/// How far before the address a `://` makes it a part of a URL.
const URL_WITHIN: usize = 64;
/// How far before the `@` the URL of a message may begin.
const MESSAGE_WITHIN: usize = 256;
const MAILTO: &[u8] = b"mailto:";

/// What stands before the `@`, and before that.
static LOCAL: ByteSet = ByteSet::alphanumeric_and(b"._%+-'&=");
/// What domains are made of.
static DOMAIN: ByteSet = ByteSet::alphanumeric_and(b".-");

/// Looks at an `@`.
pub(in crate::dlp) fn at_sign(view: &View<'_>, at: usize, hits: &mut Hits) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_name = |byte: &u8| is_part(byte) || b"_%+-".contains(byte);
    if !view.text[..at].last().is_some_and(is_name) || view.text.get(at + 1).is_some_and(|byte| !is_part(byte)) {
        return;
    }
    let start = local_start(view, at);
    if start == at {
        return;
    }
    let most = view.text.len().min(at + 1 + MOST_DOMAIN + 1);
    let run = view.text[at + 1..most].iter().take_while(|byte| DOMAIN.has(**byte)).count();
    let end = at + 1 + run;
    if view.may_go_on(end) && run <= MOST_DOMAIN {
        return hits.unsure(start);
    }
    let domain = trimmed(&view.text[at + 1..end]);
    let end = at + 1 + domain.len();
    let is_address =
        run <= MOST_DOMAIN && is_local(&view.text[start..at]) && is_domain_name(domain) && is_over(view, end);
    if !is_address || is_in_url(view, start) || is_published(view, start) || is_message(view, at) {
        return;
    }
    match is_remote(view, start, at, end) {
        None => hits.unsure(start),
        Some(true) => {}
        Some(false) => hits.found(EMAIL, Tier::Proof, start, end),
    }
}

/// Where the part before the `@` begins. An escape before it is none of its letters.
fn local_start(view: &View<'_>, at: usize) -> usize {
    let least = at.saturating_sub(MOST_LOCAL + 1);
    let mut start = at - view.text[least..at].iter().rev().take_while(|byte| LOCAL.has(**byte)).count();
    if at - start > MOST_LOCAL {
        return at;
    }
    if start > 0 && view.text[start - 1] == b'\\' {
        let is_end = |end: &usize| *end <= at && left(view, *end).is_none();
        start = [start + 1, start + 5].into_iter().find(is_end).unwrap_or(start);
    }
    // `name='me@host.org'`, `to=me@host.org`, `.me@host.org`: the name begins behind it.
    let is_before = |byte: &u8| b"'&=".contains(byte);
    if let Some(last) = view.text[start..at].iter().rposition(is_before) {
        start += last + 1;
    }
    start + view.text[start..at].iter().take_while(|byte| b".%+-".contains(byte)).count()
}

/// Whether this is a user's name in a URL: `https://user:word@host.org`.
fn is_in_url(view: &View<'_>, start: usize) -> bool {
    let before = &view.text[start.saturating_sub(URL_WITHIN)..start];
    let is_other = |byte: &u8| !byte.is_ascii_graphic() || b"/?\"'<>".contains(byte);
    let last = before.iter().rposition(is_other).unwrap_or(0);
    before.get(..=last).is_some_and(|before| before.ends_with(b"://"))
}

/// Whether somebody made this a link to write to, and so wants it to be known.
fn is_published(view: &View<'_>, start: usize) -> bool {
    let before = &view.text[start.saturating_sub(MAILTO.len())..start];
    before.eq_ignore_ascii_case(MAILTO)
}

/// Whether this is the id of a message in the URL of an archive, `https://lists.org/msg/20240131120000.GA1234@host.org`:
/// long or full of digits, as nobody's name is.
fn is_message(view: &View<'_>, at: usize) -> bool {
    let before = &view.text[at.saturating_sub(MESSAGE_WITHIN)..at];
    let is_other = |byte: &u8| !byte.is_ascii_graphic() || b"?#\"'<>()[]{}|`\\".contains(byte);
    let url = &before[before.iter().rposition(is_other).map_or(0, |last| last + 1)..];
    let Some(slash) = memchr::memrchr(b'/', url) else { return false };
    let (path, id) = (&url[..slash], &url[slash + 1..]);
    let digits = id.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_id = id.len() >= 32 || (id.len() >= 16 && digits >= 8);
    is_id && memchr::memmem::find(path, b"://").is_some()
}

/// Without the full stop that ends a sentence.
fn trimmed(domain: &[u8]) -> &[u8] {
    let ends = domain.iter().rev().take_while(|byte| b".-".contains(byte)).count();
    &domain[..domain.len() - ends]
}

/// Whether this can stand before an `@`.
fn is_local(local: &[u8]) -> bool {
    !local.windows(2).any(|two| two == b"..") && local.iter().any(u8::is_ascii_alphanumeric)
}

/// Whether these are labels of a domain, and the last is a top-level domain.
fn is_domain_name(domain: &[u8]) -> bool {
    let is_label = |label: &[u8]| !label.is_empty() && label.len() <= 63 && label[0] != b'-' && !label.ends_with(b"-");
    let mut labels = domain.split(|byte| *byte == b'.');
    let Some(last) = labels.next_back() else { return false };
    let mut is_any = false;
    let is_all = labels.all(|label| {
        is_any = true;
        is_label(label)
    });
    is_any && is_all && is_label(last) && top_level::is_top_level(last)
}

/// Whether this is `git@github.com:owner/name.git` or `deploy@host.org:/srv`, and not `me@host.org:word`. None when the
/// text ends before that can be said.
fn is_remote(view: &View<'_>, start: usize, at: usize, end: usize) -> Option<bool> {
    let is_git = matches!(&view.text[start..at], b"git" | b"hg" | b"svn" | b"ssh");
    if is_git || view.text.get(end) != Some(&b':') {
        return Some(is_git);
    }
    let most = view.text.len().min(end + MOST_PATH);
    let is_end = |byte: &u8| !byte.is_ascii_graphic() || b"/\"'<>`\\@".contains(byte);
    match view.text[end..most].iter().find(|byte| is_end(byte)) {
        Some(byte) => Some(*byte == b'/'),
        None if view.may_go_on(most) && most < end + MOST_PATH => None,
        None => Some(false),
    }
}

/// Whether nothing follows that makes it something else: `a@b.mean(`, `me@my_host.org`.
fn is_over(view: &View<'_>, end: usize) -> bool {
    !view.text.get(end).is_some_and(|byte| b"_(@".contains(byte))
}
