//! Where to look, and what of all that was found stands.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use super::catalogue::KINDS;
use super::finding::Finding;
use super::hits::Hits;
use super::kind::{Entity, Tier};
use super::options::{KindView, OptionsError, ScanOptions, Settings};
use super::prefilter::{MayBe, Trigger, WordSearch, each_trigger};
use super::view::{LOOK_BACK, OPEN_WORD, View};
use super::{credentials, names, numbers, tokens};

static WORDS: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(credentials::WORDS, tokens::MARKS));
pub(super) static CATALOGUE: LazyLock<Arc<Settings>> = LazyLock::new(|| Arc::new(Settings::catalogue()));

/// A number may begin behind the escape that the trigger stands in.
const ESCAPE: usize = 8;

/// Looks for what stands in the catalogue, and for own patterns. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scanner {
    settings: Arc<Settings>,
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// In order, and apart from each other. All end before `settled`.
    pub findings: Vec<Finding>,
    /// What stands before this does not change, whatever follows.
    pub settled: usize,
}

impl Default for Scanner {
    /// With the whole catalogue, but for what is off by default.
    fn default() -> Scanner {
        Scanner { settings: CATALOGUE.clone() }
    }
}

impl Scanner {
    /// With these options.
    ///
    /// # Errors
    /// The first thing in the options that cannot be.
    pub fn new(options: ScanOptions) -> Result<Scanner, OptionsError> {
        Ok(Scanner { settings: Arc::new(Settings::new(options)?) })
    }

    /// The name of a kind.
    #[must_use]
    pub fn id(&self, entity: Entity) -> &str {
        self.kind(entity).map_or("SECRET", |kind| kind.id)
    }

    /// What a finding is.
    #[must_use]
    pub fn kind(&self, entity: Entity) -> Option<KindView<'_>> {
        self.settings.kind(entity)
    }

    /// Whether a kind is looked for; some must be switched on first.
    #[must_use]
    pub fn looks_for(&self, entity: Entity) -> bool {
        self.settings.wants(entity)
    }

    /// The kind or own pattern of this name.
    #[must_use]
    pub fn entity(&self, id: &str) -> Option<Entity> {
        self.settings.entity(id)
    }

    /// Looks at `text` from `from` on; what stands before is context, of which [`LOOK_BACK`] bytes matter. Unless
    /// `is_end`, more may follow, and what touches the end is left open.
    #[must_use]
    pub fn scan(&self, text: &[u8], from: usize, is_end: bool) -> Scan {
        let view = View { text, is_end };
        let mut hits = Hits::of(&self.settings);
        let begin = from.saturating_sub(LOOK_BACK);
        let is_any_number = numbers::wants_more(&hits);
        let number = |view: &View<'_>, at, digits| is_any_number | numbers::may_begin(view, at, digits);
        each_trigger(&view, begin, &WORDS, &MayBe { token: tokens::may_begin_with, number }, |trigger, at| {
            let is_over = match trigger {
                Trigger::Word(word) => credentials::reach(word).is_some_and(|reach| at + reach < from),
                _ => at + ESCAPE < from && !trigger.may_lead_on(),
            };
            if is_over {
                return;
            }
            hits.trigger = at;
            look(&view, trigger, at, &mut hits);
        });
        if hits.wants_optional() {
            numbers::look_for_optional(&view, begin, &mut hits);
        }
        self.settings.patterns.look(&view, begin, &mut hits);
        if !is_end {
            hits.unsure(open_word(text));
        }
        // Most texts hold nothing, and none should cost what an allow-list costs.
        hits.findings.retain(|found| !self.settings.is_allowed(&text[found.start..found.end]));
        resolve(hits, from, text.len())
    }
}

/// Asks whoever knows what such a place may be.
fn look(view: &View<'_>, trigger: Trigger, at: usize, hits: &mut Hits<'_>) {
    match trigger {
        Trigger::Token if !tokens::may_begin(&view.text[at..]) => {}
        Trigger::Token => tokens::at_word(view, at, hits),
        Trigger::Sign => names::at_sign(view, at, hits),
        Trigger::Digits => numbers::at_digits(view, at, hits),
        Trigger::Country => numbers::at_country(view, at, hits),
        Trigger::Dashes => tokens::at_dashes(view, at, hits),
        Trigger::Mark(mark) => tokens::at_mark(view, at, mark, hits),
        Trigger::Word(word) => credentials::at_word(view, at, word, hits),
        Trigger::Url => {
            credentials::at_url(view, at, hits);
            names::at_url(view, at, hits);
        }
    }
}

/// Where the word begins that the text ends in: it may be the beginning of anything. Of a long word only the end is
/// open by itself; what began earlier has had bytes enough to say whether it may go on.
fn open_word(text: &[u8]) -> usize {
    let first = text.len().saturating_sub(OPEN_WORD);
    text[first..].iter().rposition(|byte| !(b'!'..=0x7f).contains(byte)).map_or(first, |space| first + space + 1)
}

/// Of findings that overlap the longest stands, then the surer one, then the one that stands first in the catalogue. Of
/// secrets it takes the bytes of all: no rest of one may stay. And a secret stands before anything else: of an address
/// around a password the parts beside it are left. Nothing is said of what is not settled.
fn resolve(mut hits: Hits<'_>, from: usize, end: usize) -> Scan {
    let mut settled = hits.unsure_from.min(end).max(from);
    let mut findings = std::mem::take(&mut hits.findings);
    let is_secret = |finding: &Finding| hits.is_secret(finding.entity);
    // What begins before `from` was judged when that was settled, and lost.
    findings.retain(|finding| finding.start >= from && finding.start < finding.end);
    findings
        .sort_unstable_by_key(|finding| (finding.start, Reverse(finding.end), Reverse(finding.tier), finding.entity));
    let secrets = united(findings.iter().filter(|finding| is_secret(finding)), is_own);
    let others = longest(findings.iter().filter(|finding| !is_secret(finding)));
    let mut standing: Vec<Standing> =
        secrets.iter().map(|&finding| Standing { finding, whole: finding.start }).collect();
    for other in others {
        beside(other, &secrets, &mut standing);
    }
    standing.sort_unstable_by_key(|one| one.finding.start);
    while let Some(last) = standing.pop_if(|last| last.finding.end > settled) {
        settled = settled.min(last.whole).max(from);
    }
    Scan { findings: standing.into_iter().map(|one| one.finding).collect(), settled }
}

fn is_own(entity: Entity) -> bool {
    usize::from(entity.0) >= KINDS.len()
}

/// A finding, or a part of one.
struct Standing {
    finding: Finding,
    /// Where the whole begins.
    whole: usize,
}

fn longest<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<Finding> {
    let mut standing: Vec<Finding> = Vec::new();
    for finding in findings {
        match standing.last_mut() {
            Some(last) if finding.start < last.end => {
                let length = |one: &Finding| one.end - one.start;
                if (length(finding), finding.tier) > (length(last), last.tier) {
                    *last = *finding;
                }
            }
            _ => standing.push(*finding),
        }
    }
    standing
}

/// As [`longest`], with the bytes of all that hang together. An own pattern is tried at every place: of its matches that
/// overlap each other the rest is none.
fn united<'f>(findings: impl Iterator<Item = &'f Finding>, is_own: fn(Entity) -> bool) -> Vec<Finding> {
    let mut standing: Vec<Finding> = Vec::new();
    // Of the last one, without what it took in.
    let mut alone = (0, Tier::Context);
    for finding in findings {
        let length = (finding.end - finding.start, finding.tier);
        match standing.last_mut() {
            Some(last) if finding.start < last.end => {
                if length <= alone && finding.entity == last.entity && is_own(finding.entity) {
                    continue;
                }
                last.end = last.end.max(finding.end);
                if length > alone {
                    (last.entity, last.tier, alone) = (finding.entity, finding.tier, length);
                }
            }
            _ => {
                standing.push(*finding);
                alone = length;
            }
        }
    }
    standing
}

/// What is left of a finding beside the secrets in it.
fn beside(finding: Finding, secrets: &[Finding], standing: &mut Vec<Standing>) {
    let whole = finding.start;
    let mut start = finding.start;
    let first = secrets.partition_point(|secret| secret.end <= start);
    for secret in secrets[first..].iter().take_while(|secret| secret.start < finding.end) {
        if start < secret.start {
            standing.push(Standing { finding: Finding { start, end: secret.start, ..finding }, whole });
        }
        start = secret.end;
    }
    if start < finding.end {
        standing.push(Standing { finding: Finding { start, ..finding }, whole });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::{Family, PatternSpec};

    #[test]
    fn the_example_is_found_at_every_cut() {
        let text = b"My API key is sk-1234567890abcdef.";
        let scanner = Scanner::default();
        let whole = scanner.scan(text, 0, true);
        assert_eq!((whole.findings[0].start, whole.findings[0].end, whole.settled), (14, 33, 34));
        for cut in 15..=33 {
            let part = scanner.scan(&text[..cut], 0, false);
            assert_eq!((part.findings.len(), part.settled), (0, 14), "{cut}");
        }
    }

    #[test]
    fn a_secret_inside_something_else_is_a_secret() {
        let scanner = Scanner::default();
        let text = "see postgres://app:hunter2Xq9z@10.2.3.4/app for more, and so on";
        let whole = scanner.scan(text.as_bytes(), 0, true);
        let shown = |scan: &Scan| -> Vec<(String, String)> {
            let show = |one: &Finding| (scanner.id(one.entity).to_owned(), text[one.start..one.end].to_owned());
            scan.findings.iter().map(show).collect()
        };
        let found = shown(&whole);
        assert!(found.contains(&("DB_URL".to_owned(), "hunter2Xq9z".to_owned())), "{found:?}");
        assert!(found.iter().any(|(_, value)| value.contains("10.2.3.4")), "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{found:?}");
        for cut in 0..text.len() {
            let first = scanner.scan(&text.as_bytes()[..cut], 0, false);
            let second = scanner.scan(text.as_bytes(), first.settled, true);
            assert_eq!([shown(&first), shown(&second)].concat(), found, "{cut}");
        }
    }

    #[test]
    fn no_rest_of_a_secret_stays_beside_another() {
        let secret = |entity, start, end| Finding { entity: Entity(entity), start, end, tier: Tier::Format };
        let of = |list: &[Finding]| united(list.iter(), |_| false);
        assert_eq!(of(&[secret(1, 0, 10), secret(2, 8, 30)]), [secret(2, 0, 30)]);
        assert_eq!(of(&[secret(1, 0, 20), secret(2, 15, 30)]), [secret(1, 0, 30)]);
        // What was taken in does not count towards the length.
        assert_eq!(of(&[secret(1, 0, 10), secret(2, 8, 15), secret(3, 14, 26)]), [secret(3, 0, 26)]);
        assert_eq!(of(&[secret(1, 0, 20), secret(2, 5, 10), secret(3, 20, 22)]), [secret(1, 0, 20), secret(3, 20, 22)]);
    }

    #[test]
    fn overlapping_secrets_are_one_at_every_cut() {
        let own = |id: &str, regex: &str| PatternSpec {
            id: id.to_owned(),
            regex: regex.to_owned(),
            family: Family::Credential,
            title: String::new(),
            words: Vec::new(),
        };
        let patterns = vec![own("FIRST", "AA-[0-9]{6}-BB"), own("SECOND", "BB-[a-z]{12}"), own("DIGITS", "[7-9]{4}")];
        let scanner = Scanner::new(ScanOptions { patterns, ..ScanOptions::default() }).unwrap();
        let text = b"so AA-123456-BB-abcdefghijkl and 789789789 end";
        let found = |scan: Scan| -> Vec<(String, String)> {
            let show = |one: &Finding| {
                (scanner.id(one.entity).to_owned(), String::from_utf8_lossy(&text[one.start..one.end]).into_owned())
            };
            scan.findings.iter().map(show).collect()
        };
        let whole = found(scanner.scan(text, 0, true));
        let expected = [("SECOND", "AA-123456-BB-abcdefghijkl"), ("DIGITS", "7897"), ("DIGITS", "8978")]
            .map(|(id, value)| (id.to_owned(), value.to_owned()));
        assert_eq!(whole, expected);
        for cut in 0..text.len() {
            let first = scanner.scan(&text[..cut], 0, false);
            let second = scanner.scan(text, first.settled, true);
            assert_eq!([found(first), found(second)].concat(), whole, "{cut}");
        }
    }

    #[test]
    fn words_suit_the_search_for_them() {
        assert!(credentials::WORDS.len() <= 24, "more of them make every scan slower");
        let is_good =
            |word: &&str| (3..=32).contains(&word.len()) && !word.bytes().any(|byte| byte.is_ascii_uppercase());
        assert!(credentials::WORDS.iter().all(is_good));
    }
}
