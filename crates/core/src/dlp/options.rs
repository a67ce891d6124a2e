//! What a scanner is to look for, as somebody configured it.

use thiserror::Error;

use super::catalogue::KINDS;
use super::kind::{Entity, Family};
use super::names::INTERNAL;
use super::pattern::{PatternError, PatternSpec, Patterns};
use crate::limits::ALLOWED_VALUES;

/// What differs from the default catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Kinds that are not looked for.
    pub off: Vec<String>,
    /// Kinds that are looked for, though they are off by default.
    pub on: Vec<String>,
    /// Patterns of one's own.
    pub patterns: Vec<PatternSpec>,
    /// Domains that are inside one's network: `corp.example.com` and all below it.
    pub domains: Vec<String>,
    /// Values that are never reported.
    pub allowed: Vec<String>,
    /// Regular expressions of values that are never reported. They must match the whole value.
    pub allowed_patterns: Vec<String>,
}

/// What is wrong with the options.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OptionsError {
    /// An own pattern is wrong.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There is no such kind.
    #[error("there is no kind `{0}`; `sprag scan --kinds` lists them")]
    Kind(String),
    /// Too much of it.
    #[error("`{list}` holds {length} entries; at most {ALLOWED_VALUES} are possible, so use a pattern")]
    Many {
        /// Which list.
        list: &'static str,
        /// How many.
        length: usize,
    },
}

/// A kind as people see it; also of own patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindView<'s> {
    /// The name that placeholders carry.
    pub id: &'s str,
    /// What it belongs to.
    pub family: Family,
    /// What it is, for people.
    pub title: &'s str,
}

/// The options, checked.
#[derive(Debug)]
pub(super) struct Settings {
    /// By entity; own patterns are always on.
    is_on: Vec<bool>,
    /// Some are on that are off by default.
    pub(super) wants_optional: bool,
    own: Vec<PatternSpec>,
    pub(super) patterns: Patterns,
    /// Small letters, without dots before and behind.
    pub(super) domains: Vec<String>,
    /// In order.
    allowed: Vec<Vec<u8>>,
    allowed_patterns: Patterns,
}

impl Settings {
    pub(super) fn new(options: ScanOptions) -> Result<Settings, OptionsError> {
        let mut is_on: Vec<bool> = KINDS.iter().map(|kind| kind.is_on).collect();
        for (ids, is) in [(&options.on, true), (&options.off, false)] {
            for id in ids {
                let place = KINDS.iter().position(|kind| kind.id == id);
                is_on[place.ok_or_else(|| OptionsError::Kind(id.clone()))?] = is;
            }
        }
        let wants_optional = is_on.iter().zip(KINDS.iter()).any(|(is_on, kind)| *is_on && !kind.is_on);
        for (place, pattern) in options.patterns.iter().enumerate() {
            let is_taken = KINDS.iter().any(|kind| kind.id == pattern.id)
                || options.patterns[..place].iter().any(|other| other.id == pattern.id);
            if is_taken {
                return Err(PatternError::Taken(pattern.id.clone()).into());
            }
        }
        bounded("allowed", options.allowed.len())?;
        bounded("domains", options.domains.len())?;
        let patterns = Patterns::new(&options.patterns, u16::try_from(KINDS.len()).unwrap_or(u16::MAX))?;
        let allowed_patterns: Vec<PatternSpec> = options.allowed_patterns.into_iter().map(allowed_pattern).collect();
        let mut allowed: Vec<Vec<u8>> = options.allowed.into_iter().map(String::into_bytes).collect();
        allowed.sort_unstable();
        let domain = |domain: String| domain.trim_matches(['.', '*']).to_ascii_lowercase();
        let own = options.domains.into_iter().map(domain).filter(|domain| !domain.is_empty());
        let domains = with_internal(own.collect());
        let allowed_patterns = Patterns::new(&allowed_patterns, 0)?;
        Ok(Settings { is_on, wants_optional, own: options.patterns, patterns, domains, allowed, allowed_patterns })
    }

    pub(super) fn catalogue() -> Settings {
        Settings {
            is_on: KINDS.iter().map(|kind| kind.is_on).collect(),
            wants_optional: false,
            own: Vec::new(),
            patterns: Patterns::default(),
            domains: with_internal(Vec::new()),
            allowed: Vec::new(),
            allowed_patterns: Patterns::default(),
        }
    }

    pub(super) fn wants(&self, entity: Entity) -> bool {
        self.is_on.get(usize::from(entity.0)).copied().unwrap_or(true)
    }

    /// Whether this value is never reported.
    pub(super) fn is_allowed(&self, value: &[u8]) -> bool {
        self.allowed.binary_search_by(|allowed| allowed.as_slice().cmp(value)).is_ok()
            || self.allowed_patterns.is_whole(value)
    }

    pub(super) fn kind(&self, entity: Entity) -> Option<KindView<'_>> {
        let place = usize::from(entity.0);
        match KINDS.get(place) {
            Some(kind) => Some(KindView { id: kind.id, family: kind.family, title: kind.title }),
            None => {
                let own = self.own.get(place - KINDS.len())?;
                Some(KindView { id: &own.id, family: own.family, title: &own.title })
            }
        }
    }

    pub(super) fn entity(&self, id: &str) -> Option<Entity> {
        let ids = KINDS.iter().map(|kind| kind.id).chain(self.own.iter().map(|own| own.id.as_str()));
        let place = ids.into_iter().position(|known| known == id)?;
        u16::try_from(place).ok().map(Entity)
    }
}

/// Own domains, and those that everybody has inside.
fn with_internal(mut domains: Vec<String>) -> Vec<String> {
    domains.extend(INTERNAL.iter().map(|&name| name.to_owned()));
    domains
}

fn bounded(list: &'static str, length: usize) -> Result<(), OptionsError> {
    if length > ALLOWED_VALUES { Err(OptionsError::Many { list, length }) } else { Ok(()) }
}

fn allowed_pattern(regex: String) -> PatternSpec {
    let (title, words) = (String::new(), Vec::new());
    PatternSpec { id: "ALLOWED".to_owned(), regex, family: Family::Credential, title, words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::Scanner;

    fn pattern(id: &str, regex: &str) -> PatternSpec {
        let (title, words) = ("a number of ours".to_owned(), Vec::new());
        PatternSpec { id: id.to_owned(), regex: regex.to_owned(), family: Family::Pii, title, words }
    }

    fn ids(options: ScanOptions, text: &str) -> Vec<String> {
        let scanner = Scanner::new(options).unwrap();
        let findings = scanner.scan(text.as_bytes(), 0, true).findings;
        findings.iter().map(|found| scanner.kind(found.entity).unwrap().id.to_owned()).collect()
    }

    #[test]
    fn a_kind_can_be_switched_off_and_on() {
        let text = "sk-1234567890abcdef mia@mail.org";
        assert_eq!(ids(ScanOptions::default(), text), ["OPENAI_KEY", "EMAIL"]);
        let off = vec!["EMAIL".to_owned()];
        assert_eq!(ids(ScanOptions { off: off.clone(), ..ScanOptions::default() }, text), ["OPENAI_KEY"]);
        // Off is the stronger word.
        assert_eq!(ids(ScanOptions { on: off.clone(), off, ..ScanOptions::default() }, text), ["OPENAI_KEY"]);
        let unknown = ScanOptions { off: vec!["EMIAL".to_owned()], ..ScanOptions::default() };
        assert_eq!(Scanner::new(unknown).unwrap_err(), OptionsError::Kind("EMIAL".to_owned()));
    }

    #[test]
    fn own_patterns_have_names_too() {
        let patterns = vec![pattern("STAFF_NUMBER", "EMP-[0-9]{6}")];
        let scanner = Scanner::new(ScanOptions { patterns, ..ScanOptions::default() }).unwrap();
        let entity = scanner.entity("STAFF_NUMBER").unwrap();
        let view = KindView { id: "STAFF_NUMBER", family: Family::Pii, title: "a number of ours" };
        assert_eq!((usize::from(entity.0), scanner.kind(entity)), (KINDS.len(), Some(view)));
        assert_eq!(scanner.entity("EMAIL").and_then(|entity| scanner.kind(entity)).map(|kind| kind.id), Some("EMAIL"));
        assert_eq!((scanner.entity("NOTHING"), scanner.kind(Entity(u16::MAX))), (None, None));
        for taken in ["EMAIL", "TWICE"] {
            let patterns = vec![pattern("TWICE", "a"), pattern(taken, "b")];
            let error = Scanner::new(ScanOptions { patterns, ..ScanOptions::default() }).unwrap_err();
            assert_eq!(error, PatternError::Taken(taken.to_owned()).into());
        }
    }

    #[test]
    fn allowed_values_are_not_reported() {
        let allowed = ScanOptions {
            allowed: vec!["mia@mail.org".to_owned()],
            allowed_patterns: vec!["sk-test[0-9]{1,40}".to_owned()],
            ..ScanOptions::default()
        };
        let text = "mia@mail.org xmia@mail.org sk-test12345678901234 sk-test12345678901234a";
        assert_eq!(ids(allowed, text), ["EMAIL", "OPENAI_KEY"]);
    }

    #[test]
    fn lists_have_a_bound() {
        for (length, is_good) in [(ALLOWED_VALUES, true), (ALLOWED_VALUES + 1, false)] {
            let all = vec!["x".to_owned(); length];
            assert_eq!(Scanner::new(ScanOptions { allowed: all.clone(), ..ScanOptions::default() }).is_ok(), is_good);
            assert_eq!(Scanner::new(ScanOptions { domains: all, ..ScanOptions::default() }).is_ok(), is_good);
        }
    }
}
