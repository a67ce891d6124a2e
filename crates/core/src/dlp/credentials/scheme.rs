//! Tokens behind the name of their scheme: `Bearer`, `Basic`.

use crate::dlp::allowed::{contains, is_everybodys, is_placeholder};
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::random::makeup;
use crate::dlp::view::View;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

const BEARER_TOKEN: Entity = entity("BEARER_TOKEN");
const BASIC_AUTH: Entity = entity("BASIC_AUTH");

/// Fewest bytes of a token behind `Bearer`.
const TOKEN_BYTES: usize = 16;
/// Longest.
const TOKEN_BYTES_MOST: usize = 4096;

/// Looks at `Bearer` or `Basic`, a blank and a token.
pub(super) fn at_scheme(view: &View<'_>, at: usize, word: &str, hits: &mut Hits) {
    let start = at + word.len() + 1;
    if !view.is_word_start(at) || view.text.get(start - 1) != Some(&b' ') {
        return;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let end = run_end(view, start, TOKEN_BYTES_MOST, is_part);
    if view.may_go_on(end) {
        return hits.unsure(start);
    }
    let value = &view.text[start..end];
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    if word == "basic" {
        let is_pair = |decoded: Vec<u8>| {
            let password = decoded.iter().position(|byte| *byte == b':').map(|colon| &decoded[colon + 1..]);
            password.is_some_and(|password| !is_everybodys(password)) && decoded.iter().all(|byte| *byte >= b' ')
        };
        let decoded = STANDARD_NO_PAD.decode(&value[..value.len() - padding]);
        let is_long_chance = value.len() >= TOKEN_BYTES && makeup(value).is_rarer_than(430) && makeup(value).digits > 0;
        let is_header = contains(&view.text[at.saturating_sub(40)..at], b"authorization") && padding > 0;
        if value.len() >= 8 && (decoded.is_ok_and(is_pair) || is_long_chance || is_header) && !is_placeholder(value) {
            hits.found(BASIC_AUTH, Tier::Format, start, end);
        }
    } else {
        let made = makeup(value);
        if value.len() >= TOKEN_BYTES && made.digits > 0 && made.is_rarer_than(450) && !is_placeholder(value) {
            hits.found(BEARER_TOKEN, Tier::Format, start, end);
        }
    }
}

/// Where a run of such bytes ends, of at most `most`.
pub(super) fn run_end(view: &View<'_>, start: usize, most: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let ahead = view.text.get(start..).unwrap_or_default();
    start + ahead.iter().take(most).take_while(|byte| is_part(**byte)).count()
}
