//! Names that go on record with a call: of models, tools, paths. They are the caller's or the provider's own words, and
//! may hold what nobody wants to keep.
//!
//! No policy is asked: what is found is hidden, also where it may pass in the call itself. What is said in a call is
//! never on record, and is not looked at here.

use std::borrow::Cow;

use super::catalogue::KINDS;
use super::finding::Finding;
use super::kind::{Family, Tier};
use super::scan::{Scan, Scanner};

/// A name as it may go on record, at most `most` bytes long. Twice as much is looked at, so that nothing is divided
/// before it is known. The end of what is looked at is left out where it might be the beginning of something: what
/// was cut off, here or before, may be the rest of it.
#[must_use]
pub fn for_record<'n>(scanner: &Scanner, name: &'n str, most: usize) -> Cow<'n, str> {
    // A cut that spares a character leaves up to three bytes less.
    let is_whole = name.len() + 3 < 2 * most;
    let name = &name[..name.floor_char_boundary(2 * most)];
    let Scan { findings, settled } = scanner.scan(name.as_bytes(), 0, is_whole);
    let name = if is_whole { name } else { &name[..name.floor_char_boundary(settled)] };
    if findings.is_empty() {
        return Cow::Borrowed(&name[..name.floor_char_boundary(most)]);
    }
    let (mut plain, mut at) = (String::with_capacity(name.len()), 0);
    for Finding { entity, start, end, .. } in findings {
        let (start, end) = (name.floor_char_boundary(start), name.ceil_char_boundary(end));
        plain.push_str(name.get(at..start).unwrap_or_default());
        plain.push_str(&format!("[REDACTED:{}]", scanner.id(entity)));
        at = end;
    }
    plain.push_str(name.get(at..).unwrap_or_default());
    plain.truncate(plain.floor_char_boundary(most));
    Cow::Owned(plain)
}

/// Whether a name holds a key or a credential of the catalogue that is one for sure. A run or an agent cannot be called
/// so, because their names stand everywhere.
#[must_use]
pub fn holds_secret(scanner: &Scanner, name: &str) -> bool {
    let is_secret = |found: &Finding| {
        let kind = KINDS.get(usize::from(found.entity.0));
        let is_key = kind.is_some_and(|kind| matches!(kind.family, Family::ApiKey | Family::Credential));
        is_key && found.tier != Tier::Context
    };
    scanner.scan(name.as_bytes(), 0, true).findings.iter().any(is_secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-7Qm2Xv9Lr4Tn8Wb1Kd6Hs3";

    fn told(name: &str, most: usize) -> String {
        for_record(&Scanner::default(), name, most).into_owned()
    }

    #[test]
    fn keys_in_names_do_not_go_on_record() {
        assert_eq!(told(&format!("/v1/keys/{KEY}/usage"), 512), "/v1/keys/[REDACTED:OPENAI_KEY]/usage");
        assert_eq!(told(&format!("ft:{KEY}:x"), 512), "ft:[REDACTED:OPENAI_KEY]:x");
        assert_eq!(told("mia@mail.org/ü-4o", 512), "[REDACTED:EMAIL]/ü-4o");
        for name in ["gpt-4o", "claude-sonnet-4@20250514", "mcp__files__read_file", "/v1/chat/completions", "größe"] {
            assert!(matches!(for_record(&Scanner::default(), name, 512), Cow::Borrowed(told) if told == name));
        }
    }

    #[test]
    fn the_bound_holds_and_no_half_of_a_key_is_left_at_it() {
        let name = format!("{}{}", "long name ".repeat(5), KEY);
        for most in 0..name.len() + 8 {
            let told = told(&name, most);
            assert!(told.len() <= most && !told.contains("7Qm2"), "{most}: {told}");
            // As whoever cut it before has left it.
            let told = self::told(&name[..name.len().min(2 * most)], most);
            assert!(told.len() <= most && !told.contains("7Qm2"), "{most}: {told}");
        }
        assert_eq!(told(&name, name.len() + 1), format!("{}[REDACTED:OPENAI_KEY]", "long name ".repeat(5)));
        let long = "m".repeat(1000);
        assert_eq!(
            [256, 257, 512, 1000].map(|bytes| told(&long[..bytes], 256).len()),
            [256; 4],
            "at the bound and past it"
        );
        assert_eq!(told(&long[..255], 256).len(), 255);
    }

    #[test]
    fn runs_and_agents_are_not_called_like_keys() {
        let scanner = Scanner::default();
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.Zq7VxKw3TnB9mLr2HdYc5PfJ8sWgQm2Xv9Lr4Tn8Wb0";
        for name in [KEY, jwt, "task AKIAZQ7VXKW3TNB9MLR2"] {
            assert!(holds_secret(&scanner, name), "{name}");
        }
        for name in [
            "mia@mail.org",
            "4539148803436467",
            "10.2.3.4",
            "task-123",
            "018f3c5e-7b2a-7c4d-9e1f-2a3b4c5d6e7f",
            "password: qX7fLw2rTz",
        ] {
            assert!(!holds_secret(&scanner, name), "{name}");
        }
    }
}
