//! Secrets that commands and pairs give away: `curl -u`, an access key of AWS with its secret, `IDENTIFIED BY` of SQL.

use super::scheme::run_end;
use crate::dlp::allowed::{is_everybodys, is_placeholder};
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::random::makeup;
use crate::dlp::view::View;

const PASSWORD: Entity = entity("PASSWORD");
const BASIC_AUTH: Entity = entity("BASIC_AUTH");
const AWS_SECRET_KEY: Entity = entity("AWS_SECRET_KEY");

/// How far behind an access key its secret can stand.
const PAIR_BYTES: usize = 300;
/// How far behind `curl` its user can stand.
const COMMAND_BYTES: usize = 400;
/// How far behind `identified` a password can stand.
const CLAUSE_BYTES: usize = 64;
/// Longest password of a command.
const PASSWORD_BYTES: usize = 256;

/// Looks at the access key of an AWS account: forty characters of base64 soon behind it are its secret.
pub(super) fn at_access_key(view: &View<'_>, at: usize, hits: &mut Hits) {
    if !view.is_word_start(at) || !view.text[at..].starts_with(b"AKIA") {
        return;
    }
    let key_end = run_end(view, at, 64, |byte| byte.is_ascii_alphanumeric());
    if key_end != at + 20 {
        return;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"/+".contains(&byte);
    let mut start = key_end;
    while start < view.text.len().min(at + PAIR_BYTES) {
        if !is_part(view.text[start]) || !view.is_word_start(start) {
            start += 1;
            continue;
        }
        let end = run_end(view, start, 64, is_part);
        if view.may_go_on(end) {
            return hits.unsure(start);
        }
        let value = &view.text[start..end];
        if value.len() == 20 && value.starts_with(b"AKIA") {
            return;
        }
        let made = makeup(value);
        if value.len() == 40 && made.lower > 3 && made.upper > 3 && made.digits > 0 && !is_placeholder(value) {
            return hits.found(AWS_SECRET_KEY, Tier::Format, start, end);
        }
        start = end + 1;
    }
}

/// Looks at `curl`: `-u user:password` behind it.
pub(super) fn at_curl(view: &View<'_>, at: usize, hits: &mut Hits) {
    if !view.is_word_start(at) {
        return;
    }
    let line = &view.text[at + 4..view.text.len().min(at + COMMAND_BYTES)];
    // Up to the next command only: that one is looked at by itself.
    let is_over = |place: usize| line[place] == b'`' || line[place..].starts_with(b"curl");
    let flag = (0..line.len()).take_while(|place| !is_over(*place)).find_map(|place| {
        let flag: &[u8] = [&b" -u "[..], b" --user "].into_iter().find(|flag| line[place..].starts_with(flag))?;
        Some(place + flag.len())
    });
    let Some(flag) = flag else { return };
    let user = at + 4 + flag + usize::from(matches!(line.get(flag), Some(b'"' | b'\'')));
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte);
    let end = run_end(view, user, PASSWORD_BYTES, is_part);
    if view.may_go_on(end) {
        return hits.unsure(user);
    }
    let Some(colon) = view.text[user..end].iter().position(|byte| *byte == b':') else { return };
    let value = &view.text[user + colon + 1..end];
    if value.len() >= 4 && ![value, &view.text[user..end]].into_iter().any(is_placeholder) && !is_everybodys(value) {
        hits.found(BASIC_AUTH, Tier::Context, user, end);
    }
}

/// Looks at `IDENTIFIED BY 'password'` of SQL.
pub(super) fn at_identified(view: &View<'_>, at: usize, hits: &mut Hits) {
    let ahead = &view.text[at..view.text.len().min(at + CLAUSE_BYTES)];
    let ahead = &ahead[..ahead.iter().position(|byte| *byte == b'\n').unwrap_or(ahead.len())];
    let by = ahead.windows(4).position(|four| four.eq_ignore_ascii_case(b" by "));
    let Some(quote) = by.map(|by| at + by + 4) else { return };
    let Some(mark @ (b'"' | b'\'')) = view.text.get(quote) else { return };
    if *mark == b'"' && !view.text[at].is_ascii_uppercase() {
        return;
    }
    let start = quote + 1;
    let end = run_end(view, start, PASSWORD_BYTES, |byte| byte != *mark && byte.is_ascii_graphic());
    if view.may_go_on(end) {
        return hits.unsure(start);
    }
    let value = &view.text[start..end];
    if value.len() >= 4 && view.text.get(end) == Some(mark) && !is_placeholder(value) {
        hits.found(PASSWORD, Tier::Context, start, end);
    }
}
