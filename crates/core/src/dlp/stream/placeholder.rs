//! Putting back what the client itself has sent: `[EMAIL_1]` becomes the address again, also when it comes in pieces.
//!
//! How they may be spelled is said in `restore`. Text is held back from a `[` on while it can still become a placeholder
//! of the vault, and no longer.

use std::sync::PoisonError;

use zeroize::Zeroizing;

use super::text::Cut;
use crate::dlp::inspector::Inspector;
use crate::dlp::restore::{Spelled, spelled};
use crate::dlp::scan::Scanner;
use crate::dlp::vault::Vault;

/// Looks for placeholders in one text.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    /// From the bracket on.
    open: Vec<u8>,
}

enum Fit {
    Whole(Zeroizing<String>),
    Open,
    No,
}

impl Placeholders {
    /// Takes text in which nothing else was found.
    pub(super) fn take(&mut self, inspector: &Inspector, plain: &[u8], cuts: &mut Vec<Cut>) {
        let is_quiet = self.open.is_empty() && memchr::memchr(b'[', plain).is_none();
        let vault = inspector.vault.as_ref().filter(|_| !is_quiet);
        let Some(vault) = vault else { return keep(plain.len(), cuts) };
        let vault = vault.lock().unwrap_or_else(PoisonError::into_inner);
        if vault.is_empty() {
            self.give_up(cuts);
            return keep(plain.len(), cuts);
        }
        for byte in plain {
            if *byte == b'[' {
                self.give_up(cuts);
            } else if self.open.is_empty() {
                keep(1, cuts);
                continue;
            }
            self.open.push(*byte);
            match fit(&vault, &inspector.scanner, &self.open) {
                Fit::Whole(value) => {
                    cuts.push(Cut { length: self.open.len(), with: Some(value) });
                    self.open.clear();
                }
                Fit::Open => {}
                Fit::No => self.give_up(cuts),
            }
        }
    }

    /// What is open is no placeholder.
    pub(super) fn give_up(&mut self, cuts: &mut Vec<Cut>) {
        keep(self.open.len(), cuts);
        self.open.clear();
    }
}

/// The client's own value, if `found` is a placeholder that a detector took for one.
pub(super) fn own_value(inspector: &Inspector, found: &[u8]) -> Option<Zeroizing<String>> {
    let vault = inspector.vault.as_ref().filter(|_| found.starts_with(b"[") && found.ends_with(b"]"))?;
    let vault = vault.lock().unwrap_or_else(PoisonError::into_inner);
    match fit(&vault, &inspector.scanner, found) {
        Fit::Whole(value) => Some(value),
        Fit::Open | Fit::No => None,
    }
}

fn keep(length: usize, cuts: &mut Vec<Cut>) {
    match cuts.last_mut() {
        _ if length == 0 => {}
        Some(Cut { length: before, with: None }) => *before += length,
        _ => cuts.push(Cut { length, with: None }),
    }
}

/// Whether `open` is a placeholder of the vault, or its beginning.
fn fit(vault: &Vault, scanner: &Scanner, open: &[u8]) -> Fit {
    match spelled(open, vault.kinds().map(|entity| (entity, scanner.id(entity)))) {
        Spelled::Whole(entity, number) => match vault.value(entity, number) {
            Some(value) => Fit::Whole(Zeroizing::new(value.to_owned())),
            None => Fit::No,
        },
        Spelled::Open => Fit::Open,
        Spelled::Other => Fit::No,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::dlp::kind::Entity;
    use crate::dlp::policy::DlpPolicy;
    use crate::dlp::restore;
    use crate::dlp::stream::testing::entity;
    use crate::limits::PLACEHOLDER_BYTES;

    fn inspector() -> Inspector {
        let mut vault = Vault::default();
        let email: Entity = entity("EMAIL");
        assert_eq!(vault.keep(email, "mia@example.org"), Some(1));
        assert_eq!(vault.keep(email, "tom@example.org"), Some(2));
        let vault = Some(Arc::new(Mutex::new(vault)));
        Inspector { scanner: Arc::new(Scanner::default()), policy: Arc::new(DlpPolicy::default()), vault }
    }

    fn restored(text: &str, size: usize) -> String {
        let (inspector, mut placeholders, mut cuts) = (inspector(), Placeholders::default(), Vec::new());
        for part in text.as_bytes().chunks(size) {
            placeholders.take(&inspector, part, &mut cuts);
            assert!(placeholders.open.len() <= PLACEHOLDER_BYTES);
        }
        placeholders.give_up(&mut cuts);
        let (mut at, mut out) = (0, String::new());
        for cut in cuts {
            out.push_str(cut.with.as_ref().map_or(&text[at..at + cut.length], |with| with.as_str()));
            at += cut.length;
        }
        assert_eq!(at, text.len());
        out
    }

    /// The same by what bodies are read with.
    fn restored_whole(text: &str) -> String {
        let (inspector, mut out, mut at) = (inspector(), String::new(), 0);
        for one in restore::Placeholders::of(&inspector).unwrap().in_text(text.as_bytes(), 0) {
            out.push_str(&text[at..one.range.start]);
            out.push_str(&restore::value(&inspector, one.entity, one.number).unwrap());
            at = one.range.end;
        }
        out + &text[at..]
    }

    #[test]
    fn known_placeholders_come_back_however_they_are_cut_and_written() {
        let cases = [
            ("to [EMAIL_1], cc [EMAIL_2].", "to mia@example.org, cc tom@example.org."),
            ("[email_1][ Email 2 ]", "mia@example.orgtom@example.org"),
            (r"[EMAIL\_1]", "mia@example.org"),
            ("[[EMAIL_1]]", "[mia@example.org]"),
            ("[EMA[EMAIL_1]", "[EMAmia@example.org"),
            ("[EMAIL_3] [EMAIL] [EMAIL_] [MAIL_1] [EMAIL_1", "[EMAIL_3] [EMAIL] [EMAIL_] [MAIL_1] [EMAIL_1"),
            ("[EMAIL_99999999999999999]", "[EMAIL_99999999999999999]"),
            ("[EMAIL_+1] [EMAIL_0000000001] [EMAIL__1]", "[EMAIL_+1] [EMAIL_0000000001] [EMAIL__1]"),
            ("[EMAIL_000000001]", "mia@example.org"),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len() {
                assert_eq!(restored(text, size), expected, "{text} by {size}");
            }
            assert_eq!(restored_whole(text), expected, "{text} as a whole");
        }
    }

    #[test]
    fn a_placeholder_that_was_found_is_no_finding() {
        let own = |found: &str| own_value(&inspector(), found.as_bytes()).map(|value| value.to_string());
        assert_eq!(own("[EMAIL_2]").as_deref(), Some("tom@example.org"));
        assert_eq!((own("[EMAIL_3]"), own("[EMAIL_2"), own("x"), own("[")), (None, None, None, None));
    }

    #[test]
    fn only_what_may_become_one_is_held() {
        let (inspector, mut placeholders) = (inspector(), Placeholders::default());
        for (text, held) in [("see [the", 0), ("[", 1), ("[em", 3), ("[x", 0), ("[EMAIL_1 x", 0), ("[   ", 4)] {
            placeholders.take(&inspector, text.as_bytes(), &mut Vec::new());
            assert_eq!(placeholders.open.len(), held, "{text}");
            placeholders.give_up(&mut Vec::new());
        }
        let spaces = format!("[{}", " ".repeat(PLACEHOLDER_BYTES));
        placeholders.take(&inspector, &spaces.as_bytes()[..PLACEHOLDER_BYTES], &mut Vec::new());
        assert_eq!(placeholders.open.len(), PLACEHOLDER_BYTES);
        placeholders.take(&inspector, b" ", &mut Vec::new());
        assert_eq!(placeholders.open.len(), 0);
    }
}
