//! Every row of the table, by keys made from the row itself.

use std::ops::Range;

use proptest::prelude::*;

use super::alphabet::{Alphabet, HEX_DASH};
use super::format::{Format, OPEN, Part};
use super::matching::{Reading, is_key, read};
use super::*;
use crate::dlp::catalogue::{KINDS, VENDORS};
use crate::dlp::finding::Finding;
use crate::dlp::scan::Scanner;
use crate::dlp::view::{LOOK_BACK, OPEN_WORD};

/// Numbers that look random and are the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    pub(super) fn text(&mut self, of: Alphabet, length: usize) -> String {
        let letters: Vec<u8> = (0..128).filter(|byte| of.has(*byte)).collect();
        (0..length).map(|_| char::from(letters[self.below(letters.len())])).collect()
    }
}

/// What all triggers say about a text, without what the engine adds.
pub(super) fn look(text: &[u8], is_end: bool) -> Hits<'static> {
    let view = View { text, is_end };
    let mut hits = Hits::new();
    for at in 0..text.len() {
        if text[at].is_ascii_alphanumeric() && view.is_word_start(at) {
            at_word(&view, at, &mut hits);
        }
        for (which, mark) in MARKS.iter().enumerate() {
            if text[at..].starts_with(mark.as_bytes()) {
                at_mark(&view, at, which, &mut hits);
            }
        }
        if text[at..].starts_with(b"-----") {
            at_dashes(&view, at, &mut hits);
        }
    }
    hits
}

/// The longest of what is found, by name.
pub(super) fn found(text: &str) -> Vec<(&'static str, &str)> {
    let scan = Scanner::default().scan(text.as_bytes(), 0, true);
    scan.findings.iter().map(|one| (KINDS[usize::from(one.entity.0)].id, &text[one.start..one.end])).collect()
}

/// Cuts the text everywhere: nothing that is found in the whole may have been let go before.
pub(super) fn assert_held_at_every_cut(text: &str) {
    let whole = Scanner::default().scan(text.as_bytes(), 0, true).findings;
    for finding in &whole {
        for cut in finding.start + 1..=finding.end {
            let scan = Scanner::default().scan(&text.as_bytes()[..cut], 0, false);
            let is_held = scan.settled <= finding.start || scan.findings.contains(finding);
            assert!(is_held, "{text}: cut at {cut}, {finding:?}, {scan:?}");
        }
    }
    assert_eq!(in_pieces(text.as_bytes(), 1), whole, "{text}");
}

/// Scans as a stream does, by pieces of this size.
fn in_pieces(text: &[u8], size: usize) -> Vec<Finding> {
    let scanner = Scanner::default();
    let (mut findings, mut settled) = (Vec::new(), 0usize);
    let mut end = 0;
    while end < text.len() || settled < text.len() {
        end = (end + size).min(text.len());
        let base = settled.saturating_sub(LOOK_BACK);
        let scan = scanner.scan(&text[base..end], settled - base, end == text.len());
        let moved = |one: &Finding| Finding { start: one.start + base, end: one.end + base, ..*one };
        findings.extend(scan.findings.iter().map(moved));
        settled = scan.settled + base;
    }
    findings
}

/// A key of this format.
fn example(format: &Format, prefix: &str, dice: &mut Dice) -> String {
    for _ in 0..10_000 {
        let mut key = prefix.to_owned();
        for part in format.parts() {
            match *part {
                Part::Text(text) => key.push_str(text),
                Part::Run { of, least: 36, most: 36 } if of == HEX_DASH => {
                    let groups = [8, 4, 4, 4, 12].map(|length| dice.text(alphabet::HEX, length));
                    key.push_str(&groups.join("-"));
                }
                Part::Run { of, least, most } => {
                    let more = if most == OPEN { 0 } else { dice.below(most - least + 1) };
                    key.push_str(&dice.text(of, least + more));
                }
            }
        }
        let ends_plainly = key.as_bytes().last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'=');
        if ends_plainly && is_key(format, key.as_bytes(), prefix.len()) {
            return key;
        }
    }
    panic!("no example for {prefix}");
}

/// Every format with each of its prefixes, and the kind.
fn rows() -> Vec<(&'static str, &'static Format, &'static str)> {
    let mut rows = Vec::new();
    for vendor in VENDORS.iter().flat_map(|table| table.iter()) {
        for format in vendor.formats {
            let prefixes = if format.prefixes.is_empty() { &[""] } else { format.prefixes };
            rows.extend(prefixes.iter().map(|prefix| (vendor.kind.id, format, *prefix)));
        }
    }
    rows
}

#[test]
fn the_table_is_as_large_as_promised_and_in_step_with_the_catalogue() {
    let vendors: Vec<_> = VENDORS.iter().flat_map(|table| table.iter()).collect();
    assert!(vendors.len() >= 100, "{}", vendors.len());
    for (place, vendor) in vendors.iter().enumerate() {
        assert_eq!(KINDS[place], vendor.kind);
        assert!(!vendor.formats.is_empty(), "{}", vendor.kind.id);
    }
    let marks: Vec<_> = rows().iter().filter_map(|(_, format, _)| Some(format.mark?.text)).collect();
    assert!(marks.iter().all(|mark| MARKS.contains(mark)));
    let addresses = rows().into_iter().filter(|(_, format, _)| format.is_address);
    assert!(addresses.map(|(_, _, prefix)| prefix.len()).max().unwrap() + ADDRESS <= OPEN_WORD);
}

#[test]
fn every_row_is_found_whole_and_named() {
    let mut dice = Dice(1);
    for (id, format, prefix) in rows() {
        for _ in 0..24 {
            let key = example(format, prefix, &mut dice);
            for (before, after) in [
                ("", ""),
                ("key=\"", "\" // mine"),
                ("Use ", ", please"),
                ("{\\\"k\\\":\\\"", "\\\"}"),
                ("x\\n", "\\n"),
            ] {
                let text = format!("{before}{key}{after}");
                assert_eq!(found(&text), [(id, &*key)], "{text}");
            }
        }
    }
}

#[test]
fn every_row_is_held_at_every_cut() {
    let mut dice = Dice(2);
    for (_, format, prefix) in rows() {
        let key = example(format, prefix, &mut dice);
        assert_held_at_every_cut(&format!("Take {key} and go."));
    }
}

#[test]
fn what_is_one_character_short_or_broken_is_no_key() {
    let mut dice = Dice(3);
    for (id, format, prefix) in rows() {
        let least = (0..500).map(|_| example(format, prefix, &mut dice)).min_by_key(String::len).unwrap();
        let short = &least[..least.len() - 1];
        for text in [
            short.to_owned(),
            format!("{short} "),
            format!("{} {}", &least[..prefix.len() + 1], &least[prefix.len()..]),
        ] {
            let view = View { text: text.as_bytes(), is_end: true };
            assert_eq!(read(format, &view, 0, prefix.len(), &mut RunEnds::default()), Reading::Other, "{id} {text}");
        }
    }
}

#[test]
fn the_first_bytes_of_every_row_may_begin_one() {
    let mut dice = Dice(4);
    for (id, format, prefix) in rows() {
        let key = example(format, prefix, &mut dice);
        assert!(may_begin(key.as_bytes()) || format.mark.is_some(), "{id} {key}");
    }
    let prose =
        "The quick brown fox jumps over one lazy dog while eating bread in 12 towns of Morocco, Norway and Oman";
    let begins: Vec<_> = prose.split(' ').filter(|word| may_begin(word.as_bytes())).collect();
    assert!(begins.is_empty(), "{begins:?}");
}

#[test]
fn the_example_of_the_specification() {
    assert_eq!(found("My API key is sk-1234567890abcdef"), [("OPENAI_KEY", "sk-1234567890abcdef")]);
}

#[test]
fn words_that_begin_like_keys_stay() {
    for text in [
        "sk-learn and scikit-learn 1.2.3, sk-SK, task-notification-2024, risk-1234567890abcdef",
        "napi_create_reference_with_a_long_name, github_pattern_matching_is_not_what_we_want",
        "hf_requiredCharacteristicTypesForDisplayMetadata phx_error_component_for_the_whole_page",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-xxxxxxxxxxxxxxxx sk-0000000000000000",
        "EURASIA, AKIA, XASIA1234567890123456, fw_version, rpa_robot, pat.example, s.length",
        "Private-Lines: 14 are what we expect of putty; -----BEGIN RSA PRIVATE KEY----- is only a line",
        "deadbeefdeadbeefdeadbeefdeadbeef and 0123456789abcdef0123456789abcdef.tar.gz 12345678:Apple",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn a_webhook_is_hidden_with_its_scheme_and_host() {
    let mut dice = Dice(5);
    let path = format!("T{}/B{}/{}", "0A1B2C3D4", "5E6F7G8H9", dice.text(alphabet::ALNUM, 24));
    let url = format!("https://hooks.slack.com/services/{path}");
    assert_eq!(found(&format!("curl {url}.")), [("SLACK_WEBHOOK", &*url)]);
    assert_held_at_every_cut(&format!("curl {url} "));
}

#[test]
fn base64_of_a_picture_holds_no_keys() {
    let mut dice = Dice(6);
    let noise = dice.text(alphabet::BASE64, 60);
    let key = format!("AKIA{}", dice.text(alphabet::CAPITAL_ALNUM, 16));
    assert_eq!(found(&format!("{noise}/{key}/{noise}")), []);
    assert_eq!(found(&format!("{noise}/{key} ")), []);
    assert_eq!(found(&format!(" {key}/{noise}")), []);
    assert_eq!(found(&format!("path/{key}/more")), [("AWS_ACCESS_KEY", &*key)]);
    let long = dice.text(alphabet::ALNUM, matching::LONGEST_RUN);
    assert_eq!(found(&format!("sk-{long}")).len(), 1, "at the bound");
    assert_eq!(found(&format!("sk-{long}a")), [], "one past it");
}

#[test]
fn hostile_text_is_walked_over_a_few_times_at_most() {
    for piece in
        ["sk-", "sk-1", "eyJ", "eyJ.", "eyJ-", "ghp_", "glpat-1.", "EAAA/", "1234:", "A3-", "-----BEGIN ", "ya29.1-"]
    {
        let text = piece.repeat((256 << 10) / piece.len());
        let hits = look(text.as_bytes(), true);
        assert!(hits.run_ends.walked < 12 * text.len(), "{piece}: {}", hits.run_ends.walked);
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(seed in any::<u64>(), size in 1usize..80) {
        let mut dice = Dice(seed);
        let rows = rows();
        let mut text = String::new();
        for _ in 0..6 {
            text.push_str(["words and ", "\"", "=", "\\n", " https://", "x_"][dice.below(6)]);
            let (_, format, prefix) = rows[dice.below(rows.len())];
            let key = example(format, prefix, &mut dice);
            let kept: Range<usize> = 0..key.len() - [0, 0, 0, 1, 5][dice.below(5)].min(key.len());
            text.push_str(&key[kept]);
        }
        let whole = Scanner::default().scan(text.as_bytes(), 0, true).findings;
        prop_assert_eq!(in_pieces(text.as_bytes(), size), whole, "{}", text);
    }
}
