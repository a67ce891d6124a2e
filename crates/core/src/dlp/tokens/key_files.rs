//! Private keys in other clothes: a PEM block in base64, PuTTY's files, the members of a JWK, seeds of NATS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::alphabet::{BASE32, PADDED, URL_SAFE};
use super::format::{Format, begins};
use super::matching::bounded_end;
use super::pem::{PRIVATE_KEY, look_at_lines};
use crate::dlp::hits::Hits;
use crate::dlp::kind::Tier;
use crate::dlp::view::{LOOK_AHEAD, LOOK_BACK, View};

/// `S`, a letter for the role, and base32.
pub(super) const NATS_SEED: Format = begins(&["SA", "SC", "SN", "SO", "SP", "SU", "SX"]).exactly(BASE32, 56).digits(1);

/// So much of base64 shows the whole first line of a block.
const FIRST_LINE: usize = 64;
/// The least that a private member of a JWK has: 256 bits.
const LEAST_MEMBER: usize = 42;
const LONGEST_MEMBER: usize = 1400;
/// So far back the other members of a JWK are looked for: what is held back begins a little behind the trigger.
const MEMBERS_BACK: usize = LOOK_BACK - 32;
/// So far ahead the other members of a JWK are looked for.
const MEMBERS_AHEAD: usize = 1024;

/// Looks at `-----BEGIN` in base64.
pub(super) fn look_at_base64(view: &View<'_>, at: usize, hits: &mut Hits) {
    if hits.findings.last().is_some_and(|last| last.start < at && at < last.end) {
        return;
    }
    let first = bounded_end(view, at, FIRST_LINE, |byte| PADDED.has(byte));
    if view.may_go_on(first) && first - at < FIRST_LINE {
        return hits.unsure(at);
    }
    let Ok(line) = STANDARD_NO_PAD.decode(&view.text[at..at + (first - at) / 4 * 4]) else { return };
    if memchr::memmem::find(&line, b"PRIVATE KEY").is_none() {
        return;
    }
    let end = bounded_end(view, at, LOOK_AHEAD - 1, |byte| PADDED.has(byte));
    if view.may_go_on(end) && end - at < LOOK_AHEAD - 1 {
        return hits.unsure(at);
    }
    hits.found(PRIVATE_KEY, Tier::Proof, at, end);
}

/// Looks at the line of a PuTTY file behind which the private lines stand.
pub(super) fn look_at_putty(view: &View<'_>, at: usize, hits: &mut Hits) {
    look_at_lines(view, at, at + b"Private-Lines:".len(), hits);
}

/// Looks at the end of a member's name, `d":`, behind its quote.
pub(super) fn look_at_jwk(view: &View<'_>, at: usize, hits: &mut Hits) {
    let is_between = |byte: u8| matches!(byte, b'"' | b'\\' | b':' | b' ' | b'\n' | b'\t');
    let start = bounded_end(view, at + 1, 16, is_between);
    let end = bounded_end(view, start, LONGEST_MEMBER, |byte| URL_SAFE.has(byte));
    if view.may_go_on(end) {
        return hits.unsure(start);
    }
    if end - start < LEAST_MEMBER {
        return;
    }
    let before = &view.text[at.saturating_sub(MEMBERS_BACK)..at];
    let is_key = |text: &[u8]| memchr::memmem::find(text, b"kty").is_some();
    if !is_key(before) {
        let limit = bounded_end(view, end, MEMBERS_AHEAD, |byte| byte != b'}');
        if !is_key(&view.text[end..limit]) {
            if view.may_go_on(limit) && limit - end < MEMBERS_AHEAD {
                hits.unsure(start);
            }
            return;
        }
    }
    hits.found(PRIVATE_KEY, Tier::Proof, start, end);
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::dlp::tokens::alphabet::BASE64;
    use crate::dlp::tokens::tests::{Dice, assert_held_at_every_cut, found};

    #[test]
    fn a_block_in_base64_is_found_and_a_certificate_is_not() {
        let block = |name: &str| STANDARD.encode(format!("-----BEGIN {name}-----\n{}\n", Dice(1).text(BASE64, 200)));
        let key = block("RSA PRIVATE KEY");
        assert_eq!(found(&format!("tls.key: {key}\n")), [("PRIVATE_KEY", &*key)]);
        assert_held_at_every_cut(&format!("tls.key: {key}\n"));
        assert_eq!(found(&block("CERTIFICATE")), []);
    }

    #[test]
    fn the_private_lines_of_putty() {
        let line = Dice(2).text(BASE64, 64);
        let text = format!("Public-Lines: 1\n{line}\nPrivate-Lines: 1\n{line}\n");
        assert_eq!(found(&text), [("PRIVATE_KEY", &*format!("Private-Lines: 1\n{line}"))]);
        assert_held_at_every_cut(&format!("{text}{}", "and words behind ".repeat(12)));
    }

    #[test]
    fn the_private_member_of_a_jwk() {
        let d = Dice(3).text(URL_SAFE, 43);
        for text in [
            format!(r#"{{"kty":"EC","crv":"P-256","d":"{d}"}}"#),
            format!(r#"{{"crv":"P-256", "d" : "{d}", "kty":"EC"}}"#).replace("\"d\" :", "\"d\":"),
            format!(r#"{{\"kty\":\"EC\",\"d\":\"{d}\"}}"#),
        ] {
            assert_eq!(found(&text), [("PRIVATE_KEY", &*d)], "{text}");
            assert_held_at_every_cut(&text);
        }
        assert_eq!(found(&format!(r#"{{"a":"b","d":"{d}"}}"#)), []);
        assert_eq!(found(r#"{"kty":"EC","d":"short"}"#), []);
    }

    #[test]
    fn seeds_of_nats() {
        let seed = format!("SUA{}7", Dice(4).text(BASE32, 54));
        assert_eq!(found(&format!("seed {seed}\n")), [("PRIVATE_KEY", &*seed)]);
        assert_eq!(found(&seed[1..]), []);
    }
}
