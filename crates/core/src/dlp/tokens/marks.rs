//! Keys that begin like any word and have something rare in their middle or at their end, and those whose first
//! bytes do not make a run.

use super::format::Format;
use super::index::count_formats;
use super::key_files::look_at_jwk;
use super::matching::Reading;
use super::{at_word, key_at};
use crate::dlp::catalogue::VENDORS;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

/// Texts at which [`at_mark`] looks, wherever they stand.
pub(in crate::dlp) static MARKS: &[&str] =
    &["Q~", "AZDO", "NRAL", ".atlasv1.", "_mmk", "==:", JWK, ESCAPED_JWK, SLACK, BRAINTREE];

/// The name of the private member of a JWK, plain and in a string.
const JWK: &str = "\"d\":";
const ESCAPED_JWK: &str = "\"d\\\":";
/// Slack's tokens are escaped for addresses now and then, and `%` is no part of the runs that words are told by.
const SLACK: &str = "xox";
/// The run ends early here too.
const BRAINTREE: &str = "access_token$";

/// Formats with a mark.
pub(super) static FORMATS: &[(Entity, &Format)] = &LIST;

const LIST: [(Entity, &Format); count_formats(false)] = {
    let mut list: [(Entity, &Format); count_formats(false)] = [(Entity(0), &FIRST); count_formats(false)];
    let (mut table, mut place, mut length) = (0, 0, 0);
    while table < VENDORS.len() {
        let mut at = 0;
        while at < VENDORS[table].len() {
            let formats = VENDORS[table][at].formats;
            let mut one = 0;
            while one < formats.len() {
                if formats[one].mark.is_some() {
                    list[length] = (Entity(place), &formats[one]);
                    length += 1;
                }
                one += 1;
            }
            (at, place) = (at + 1, place + 1);
        }
        table += 1;
    }
    list
};

const FIRST: Format = super::format::bare();

/// A head of more bytes than this is not walked over for nothing.
const LONG_HEAD: usize = 40;

/// Looks at one of the [`MARKS`].
pub(in crate::dlp) fn at_mark(view: &View<'_>, at: usize, which: usize, hits: &mut Hits) {
    match MARKS[which] {
        JWK | ESCAPED_JWK => return look_at_jwk(view, at + 1, hits),
        SLACK | BRAINTREE if view.is_word_start(at) => return at_word(view, at, hits),
        _ => {}
    }
    for (entity, format) in FORMATS {
        let Some(mark) = format.mark.filter(|mark| mark.text == MARKS[which]) else { continue };
        // Where the head is long, its first byte tells at once that this is the middle of something else.
        if mark.most > LONG_HEAD && !view.is_word_start(at.saturating_sub(mark.most)) {
            continue;
        }
        let is_before = |count: &usize| view.before(at - count).is_some_and(|byte| mark.before.has(byte));
        let before = (0..=mark.most.min(at)).take_while(is_before).count();
        let start = at - before.min(mark.most);
        if before > mark.most && !view.is_word_start(start) {
            continue;
        }
        match key_at(view, start, 0, format, hits) {
            Reading::Open => hits.unsure(start),
            Reading::Other => {}
            Reading::UpTo(end) => hits.found(*entity, Tier::Proof, start, end),
        }
    }
}
