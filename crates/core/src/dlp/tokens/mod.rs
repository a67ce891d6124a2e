//! Keys and tokens that can be told by themselves: a prefix, an alphabet, a length, a check.
//!
//! The table is the catalogue: each vendor's row there holds its formats (see `format`). Places are reached in three
//! ways: [`at_word`] where a word begins, which a hash of its first three bytes rejects nearly always; [`at_mark`] at a
//! few rare texts inside keys that begin like any word; [`at_dashes`] at five dashes. Where the text is cut, the engine
//! holds back the last word, and so any prefix that is not whole. What is no plain sequence of runs has a file of its
//! own: `jwt`, `pem`, `key_files`.

pub(super) mod alphabet;
mod as_regex;
mod bare;
pub(super) mod checksum;
pub(super) mod format;
mod index;
mod jwt;
mod key_files;
mod marks;
mod matching;
mod pem;
mod run_ends;
#[cfg(test)]
mod tests;

pub use as_regex::vendor_patterns;
pub(super) use marks::{MARKS, at_mark};
pub(super) use pem::at_dashes;
pub(super) use run_ends::RunEnds;

use super::hits::Hits;
use super::kind::{Entity, Tier};
use super::prefilter::TokenStart;
use super::view::View;
use format::Format;
use index::What;
use matching::{Reading, is_in_base64, is_key, read};

/// So far back the scheme of an address is looked for. With the prefix this is not more than the open word that is held
/// back, or the beginning would be gone before the prefix is whole.
const ADDRESS: usize = 80;

/// Whether a key could begin with these bytes: asked of every longer word, so it has no branches.
#[inline]
pub(super) fn may_begin_with(first: TokenStart) -> bool {
    index::may_have(first) | bare::may_begin_with(first)
}

/// Whether a key could begin with these bytes. Exact about prefixes.
#[inline]
pub(super) fn may_begin(first: &[u8]) -> bool {
    let may_have = first.first_chunk().is_none_or(|eight| index::may_have(*eight));
    may_have && index::at(first).next().is_some() || bare::may_begin(first)
}

/// Looks at a place where a word begins.
pub(super) fn at_word(view: &View<'_>, at: usize, hits: &mut Hits) {
    let rest = &view.text[at..];
    let mut best: Option<(usize, usize, Entity)> = None;
    let mut is_open = false;
    for entry in index::at(rest) {
        match entry.what {
            What::Own(look) => look(view, at, hits),
            What::Format { entity, format } => {
                match key_at(view, at, entry.prefix.len(), format, hits) {
                    Reading::Open => is_open = true,
                    Reading::Other => {}
                    Reading::UpTo(end) => best = best.max(Some((entry.prefix.len(), end, entity))),
                }
                if is_open && format.is_address {
                    return hits.unsure(address_start(view, at));
                }
            }
        }
    }
    if bare::may_begin(rest) {
        for (entity, format) in bare::FORMATS {
            match key_at(view, at, 0, format, hits) {
                Reading::Open => is_open = true,
                Reading::Other => {}
                Reading::UpTo(end) => best = best.max(Some((0, end, *entity))),
            }
        }
    }
    if is_open {
        return hits.unsure(at);
    }
    if let Some((_, end, entity)) = best {
        let is_address = index::at(rest).any(|entry| entry.is_address_of(entity));
        let start = if is_address { address_start(view, at) } else { at };
        hits.found(entity, Tier::Proof, start, end);
    }
}

/// The key at `at`, if there is one.
fn key_at(view: &View<'_>, at: usize, prefix: usize, format: &Format, hits: &mut Hits) -> Reading {
    let reading = read(format, view, at, prefix, &mut hits.run_ends);
    let Reading::UpTo(end) = reading else { return reading };
    // A key inside a key is part of it. This also keeps the work bounded where prefixes follow each other closely.
    if hits.findings.last().is_some_and(|last| last.start < at && last.end == end) {
        return Reading::Other;
    }
    if !is_key(format, &view.text[at..end], prefix) {
        return Reading::Other;
    }
    match is_in_base64(view, at, end) {
        None => Reading::Open,
        Some(true) => Reading::Other,
        Some(false) => reading,
    }
}

/// Where the address begins whose end stands at `at`.
fn address_start(view: &View<'_>, at: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~:/%@-".contains(byte);
    let back = view.text[..at].iter().rev().take(ADDRESS).take_while(|byte| is_part(byte)).count();
    let before = &view.text[at - back..at];
    let Some(colon) = before.windows(3).rposition(|three| three == b"://") else { return at };
    let scheme = before[..colon].iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    at - back + colon - scheme
}
