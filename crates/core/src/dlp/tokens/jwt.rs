//! JSON Web Tokens: signed ones of three parts, encrypted ones of five.
//!
//! Not everything that begins with `eyJ` is one: page tokens and cookies have the same beginning. The header must
//! decode to JSON that names an algorithm, or both of the first parts must be JSON in base64 by their looks.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::alphabet::{BASE64, PADDED, URL_SAFE};
use super::matching::{LONGEST_RUN, bounded_end};
use super::run_ends::EXACT;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

const JWT: Entity = entity("JWT");
/// The least that a part of a token without a readable header has.
const LEAST_PART: usize = 16;
/// So much of a header is decoded; its algorithm stands at the front.
const DECODED: usize = 256;

/// Looks at base64 that begins like an object in JSON.
pub(super) fn look(view: &View<'_>, at: usize, hits: &mut Hits) {
    // In the middle of another token.
    if at.checked_sub(1).is_some_and(|before| matches!(view.text[before], b'-' | b'_')) {
        return;
    }
    let header = hits.run_ends.end(view, URL_SAFE, at);
    if header - at > LONGEST_RUN {
        return;
    }
    if view.may_go_on(header) {
        return hits.unsure(at);
    }
    if view.text.get(header) != Some(&b'.') {
        return;
    }
    let kind = header_of(&view.text[at..header]);
    let payload = hits.run_ends.end(view, BASE64.and(URL_SAFE), header + 1);
    if payload - header > EXACT {
        return;
    }
    if view.may_go_on(payload) {
        return hits.unsure(at);
    }
    if view.text.get(payload) != Some(&b'.') {
        return;
    }
    let second = &view.text[header + 1..payload];
    let is_json = second.starts_with(b"ey") || second.starts_with(b"ew");
    let looks_so = is_json && second.len() >= LEAST_PART && header - at >= LEAST_PART;
    let tier = match kind {
        Header::Encrypted | Header::Signed => Tier::Proof,
        Header::Other if looks_so => Tier::Format,
        Header::Other => return,
    };
    let signature = payload + 1;
    let mut end = signature;
    let parts = if kind == Header::Encrypted { 3 } else { 1 };
    for part in 0..parts {
        if part > 0 {
            match view.text.get(end) {
                Some(b'.') => end += 1,
                _ if view.may_go_on(end) => return hits.unsure(at),
                _ => break,
            }
        }
        end = bounded_end(view, end, LONGEST_RUN, |byte| URL_SAFE.has(byte));
        if view.may_go_on(end) {
            return hits.unsure(at);
        }
    }
    // Without a signature a token proves nothing. What cannot be read is hidden all the same.
    if end > signature || tier != Tier::Proof {
        hits.found(JWT, tier, at, end);
    }
}

/// Looks at `eyJ` in base64: a token that was encoded once more.
pub(super) fn look_at_base64(view: &View<'_>, at: usize, hits: &mut Hits) {
    let end = hits.run_ends.end(view, PADDED, at);
    if end - at > LONGEST_RUN || at.checked_sub(1).is_some_and(|before| matches!(view.text[before], b'+' | b'/')) {
        return;
    }
    if view.may_go_on(end) {
        return hits.unsure(at);
    }
    let bytes = &view.text[at..end];
    let bare = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    let Ok(token) = STANDARD_NO_PAD.decode(&bytes[..bare]) else { return };
    let mut parts = token.split(|byte| *byte == b'.');
    let (header, payload) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if header_of(header) == Header::Signed && payload.starts_with(b"ey") && parts.next().is_some() {
        hits.found(JWT, Tier::Proof, at, end);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Signed,
    Encrypted,
    Other,
}

fn header_of(text: &[u8]) -> Header {
    let text = &text[..text.len().min(DECODED)];
    let whole = text.len() - usize::from(text.len() % 4 == 1);
    let Ok(json) = URL_SAFE_NO_PAD.decode(&text[..whole]) else { return Header::Other };
    let has = |name: &[u8]| memchr::memmem::find(&json, name).is_some();
    match json.first() {
        Some(b'{') if has(b"\"enc\"") => Header::Encrypted,
        Some(b'{') if has(b"\"alg\"") || has(b"\"typ\"") => Header::Signed,
        _ => Header::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::tokens::alphabet::ALNUM;
    use crate::dlp::tokens::tests::{Dice, assert_held_at_every_cut, found};

    fn token(header: &str, rest: &str) -> String {
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
    }

    fn payload() -> String {
        URL_SAFE_NO_PAD.encode(r#"{"sub":"1234567890","admin":true}"#)
    }

    #[test]
    fn signed_tokens_are_found_whole() {
        let signature = Dice(1).text(ALNUM, 43);
        for header in [
            r#"{"alg":"HS256","typ":"JWT"}"#,
            "{ \"typ\": \"JWT\" }",
            "{\n \"alg\":\"ES256\"}",
            "{\r\n\"alg\":\"none\"}",
        ] {
            let token = token(header, &format!("{}.{signature}", payload()));
            assert_eq!(found(&format!("Bearer {token}, and more")), [("JWT", &*token)]);
            assert_held_at_every_cut(&format!("Bearer {token} and more"));
        }
    }

    #[test]
    fn tokens_that_were_encoded_again_are_found() {
        let signature = Dice(5).text(ALNUM, 43);
        let token = token(r#"{"alg":"HS256","typ":"JWT"}"#, &format!("{}.{signature}", payload()));
        let again = base64::engine::general_purpose::STANDARD.encode(&token);
        assert_eq!(found(&format!("token: {again}\n")), [("JWT", &*again)]);
        assert_held_at_every_cut(&format!("token: {again}\n"));
        assert_eq!(found(&STANDARD_NO_PAD.encode(format!("{}.txt", &token[..30]))), []);
    }

    #[test]
    fn encrypted_tokens_have_five_parts() {
        let mut dice = Dice(2);
        let rest = format!(".{}.{}.{}", dice.text(ALNUM, 16), dice.text(ALNUM, 90), dice.text(ALNUM, 22));
        let token = token(r#"{"alg":"dir","enc":"A256GCM"}"#, &rest);
        assert_eq!(found(&format!("'{token}'")), [("JWT", &*token)]);
        assert_held_at_every_cut(&format!("'{token}'"));
    }

    #[test]
    fn a_header_that_cannot_be_read_needs_a_payload_that_looks_like_json() {
        let mut dice = Dice(3);
        let broken = format!("eyJ{}.eyJ{}.{}", dice.text(ALNUM, 30), dice.text(ALNUM, 30), dice.text(ALNUM, 30));
        assert_eq!(found(&broken), [("JWT", &*broken)]);
    }

    #[test]
    fn page_tokens_cookies_and_unsecured_tokens_stay() {
        let mut dice = Dice(4);
        let page = URL_SAFE_NO_PAD.encode(r#"{"v":"v1","page_start":{"id":"a1b2c3"}}"#);
        let cookie = token(r#"{"user_id":12345}"#, &format!("{}.{}", dice.text(ALNUM, 6), dice.text(ALNUM, 27)));
        let unsecured = token(r#"{"alg":"none"}"#, &format!("{}.", payload()));
        for text in [page.clone(), format!("{page}.rs"), cookie, unsecured, "eyJ.eyJ.x".to_owned()] {
            assert_eq!(found(&text), [], "{text}");
        }
    }
}
