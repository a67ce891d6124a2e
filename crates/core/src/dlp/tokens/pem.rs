//! Private keys as they are written into files, however their lines end: really, as `\n` in a string, as strings that
//! are joined.
//!
//! A header alone is no key: programs print it and look for it. Base64 must follow. The block ends at its `END`, or,
//! where that is missing, where the base64 ends. Public keys and certificates are left alone.

use super::matching::bounded_end;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::{LOOK_AHEAD, View};

pub(super) const PRIVATE_KEY: Entity = entity("PRIVATE_KEY");
const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"BEGIN ";
/// The least that a line of a key has; the last one may have less.
const LINE: usize = 24;
/// From here on a line is one even without a digit in it.
const LONG_LINE: usize = 48;
/// So much may stand between two lines of a key: indents, quotes, signs that join strings, the lines of a header.
const GAP: usize = 160;
/// The longest name of a block: `SSH2 ENCRYPTED PRIVATE KEY` and the like.
const LABEL: usize = 48;

/// What a block's first line is found to be.
enum Line {
    Other,
    Open,
    /// Up to here.
    Whole(usize),
}

/// Looks at five dashes, which may open a private key.
pub(in crate::dlp) fn at_dashes(view: &View<'_>, at: usize, hits: &mut Hits) {
    match label(view, at, BEGIN) {
        Line::Other => {}
        Line::Open => hits.unsure(at),
        Line::Whole(end) => look_at_lines(view, at, end, hits),
    }
}

/// Looks at the lines of a key that begin about `from`; what is found begins at `start`.
pub(super) fn look_at_lines(view: &View<'_>, start: usize, from: usize, hits: &mut Hits) {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // Where the last whole line ends, and what stands behind it that may be the last line of all.
    let mut lines: Option<usize> = None;
    let mut rest: Option<usize> = None;
    let mut place = from;
    let cap = start + LOOK_AHEAD - 1;
    while place < cap && place - lines.unwrap_or(from) <= GAP {
        let Some(byte) = view.text.get(place) else { break };
        if is_base64(*byte) {
            let end = bounded_end(view, place, cap - place, is_base64);
            if view.may_go_on(end) {
                return hits.unsure(start);
            }
            if is_line(&view.text[place..end], lines.is_some()) {
                (lines, rest) = (Some(end), None);
            } else if rest.is_none() && lines.is_some_and(|line| is_last_line(view.text, line, place, end)) {
                rest = Some(end);
            }
            place = end;
        } else if *byte == b'-' && view.text[place..].starts_with(DASHES) {
            match label(view, place, b"END ") {
                Line::Open => return hits.unsure(start),
                Line::Whole(end) if lines.is_some() => return hits.found(PRIVATE_KEY, Tier::Proof, start, end),
                _ => break,
            }
        } else {
            place += 1;
        }
    }
    if place < cap && place - lines.unwrap_or(from) <= GAP && view.may_go_on(place) {
        return hits.unsure(start);
    }
    if let Some(end) = rest.or(lines) {
        hits.found(PRIVATE_KEY, Tier::Proof, start, end);
    }
}

/// Reads `-----BEGIN ... PRIVATE KEY-----`.
fn label(view: &View<'_>, at: usize, word: &[u8]) -> Line {
    let from = at + DASHES.len();
    let rest = &view.text[from..];
    if !rest.starts_with(word) {
        return if !view.is_end && word.starts_with(rest) { Line::Open } else { Line::Other };
    }
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let end = bounded_end(view, from + word.len(), LABEL, is_label);
    if view.may_go_on(end) {
        return Line::Open;
    }
    let name = &view.text[from + word.len()..end];
    if !name.ends_with(b"PRIVATE KEY") && !name.ends_with(b"PRIVATE KEY BLOCK") {
        return Line::Other;
    }
    let rest = &view.text[end..];
    match rest.starts_with(DASHES) {
        true => Line::Whole(end + DASHES.len()),
        false if !view.is_end && DASHES.starts_with(rest) => Line::Open,
        false => Line::Other,
    }
}

/// Whether a short run is the rest of the key whose last whole line ends at `line`, not a word that follows it.
fn is_last_line(text: &[u8], line: usize, start: usize, end: usize) -> bool {
    let between = &text[line..start];
    between.len() <= 8
        && between.iter().filter(|byte| **byte == b'\n').count() < 2
        && text[line - 1] != b'='
        && text.get(end) != Some(&b' ')
}

/// Whether a run of base64 is a line of a key, not a long name in a program that handles keys.
fn is_line(run: &[u8], is_inside: bool) -> bool {
    let has = |is_one: fn(&u8) -> bool| run.iter().any(is_one);
    run.len() >= LINE
        && (is_inside
            || has(u8::is_ascii_lowercase)
                && has(u8::is_ascii_uppercase)
                && (has(u8::is_ascii_digit) || run.len() >= LONG_LINE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::tokens::alphabet::BASE64;
    use crate::dlp::tokens::tests::{Dice, assert_held_at_every_cut, found, look};

    /// A block of three lines, joined and framed so.
    fn block(name: &str, join: &str) -> String {
        let mut dice = Dice(7);
        let lines = [dice.text(BASE64, 64), dice.text(BASE64, 64), format!("{}==", dice.text(BASE64, 22))];
        format!("-----BEGIN {name}-----{join}{}{join}-----END {name}-----", lines.join(join))
    }

    #[test]
    fn every_name_and_every_way_to_end_a_line() {
        for name in
            ["PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
        {
            for join in
                ["\n", "\r\n", "\\n", "\\\\n", "\\n\" +\n            \"", "\n          # ", " ", "\\r\\n", "'\n . '"]
            {
                let key = block(name, join);
                assert_eq!(found(&format!("key: \"{key}\", end")), [("PRIVATE_KEY", &*key)]);
            }
        }
        assert_held_at_every_cut(&format!("a {}\nb", block("EC PRIVATE KEY", "\\n")));
    }

    #[test]
    fn headers_inside_a_block_are_part_of_it() {
        let key = block("RSA PRIVATE KEY", "\n");
        let headers = "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n";
        let key = key.replacen("KEY-----\n", headers, 1);
        assert_eq!(found(&key), [("PRIVATE_KEY", &*key)]);
    }

    #[test]
    fn without_its_end_a_block_ends_with_its_base64() {
        let key = block("PRIVATE KEY", "\n");
        let (open, _) = key.split_once("\n-----END").unwrap();
        let text = format!("{open}\n\nThis key was cut, and nothing of this sentence belongs to it.");
        assert_eq!(found(&text), [("PRIVATE_KEY", open)]);
        assert_held_at_every_cut(&format!("{text} {}", "More words. ".repeat(20)));
    }

    #[test]
    fn public_parts_and_bare_headers_stay() {
        let prose = "-----BEGIN RSA PRIVATE KEY----- is how generatePrivateKeyFromPemText begins";
        for text in [
            &*block("PUBLIC KEY", "\n"),
            &block("CERTIFICATE", "\n"),
            prose,
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
            "------------------------------",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn prose_behind_a_header_is_not_held_long() {
        let text = format!("-----BEGIN RSA PRIVATE KEY----- {}", "and so on ".repeat(40));
        let hits = look(text.as_bytes(), false);
        assert!(hits.unsure_from > 300, "{hits:?}");
    }

    #[test]
    fn a_block_longer_than_the_cap_is_hidden_up_to_it() {
        let line = format!("{}\n", Dice(8).text(BASE64, 64));
        for (length, is_whole) in [(LOOK_AHEAD - 200, true), (LOOK_AHEAD + 200, false)] {
            let key = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----", line.repeat(length / 65));
            let found = found(&key);
            assert_eq!((found.len(), found[0].1.len() == key.len()), (1, is_whole), "{length}");
            assert!(found[0].1.len() > LOOK_AHEAD - 400);
        }
    }
}
