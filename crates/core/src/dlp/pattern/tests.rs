use proptest::prelude::*;

use super::*;
use crate::dlp::{Family, Finding, OptionsError, Piece, ScanOptions, Scanner, TextStream};
use crate::limits::{PATTERN_ID_BYTES, PATTERN_WORD_BYTES, PATTERNS};

fn spec(regex: &str) -> PatternSpec {
    let (title, words) = ("ours".to_owned(), Vec::new());
    PatternSpec { id: "OURS".to_owned(), regex: regex.to_owned(), family: Family::Pii, title, words }
}

fn scanner(patterns: Vec<PatternSpec>) -> Result<Scanner, OptionsError> {
    Scanner::new(ScanOptions { patterns, ..ScanOptions::default() })
}

fn found(spec: PatternSpec, text: &str) -> Vec<&str> {
    let findings = scanner(vec![spec]).unwrap().scan(text.as_bytes(), 0, true).findings;
    findings.iter().map(|found| &text[found.start..found.end]).collect()
}

fn said(spec: PatternSpec) -> String {
    scanner(vec![spec]).unwrap_err().to_string()
}

#[test]
fn matches_stand_one_behind_the_other() {
    assert_eq!(found(spec("[0-9]{4}"), "123456789 12 4321"), ["1234", "5678", "4321"]);
    assert_eq!(
        found(spec(r"\bEMP-[0-9]{4,6}\b"), "EMP-1234 TEMP-1234 EMP-1234567 EMP-123456"),
        ["EMP-1234", "EMP-123456"]
    );
    assert_eq!(found(spec("(?i)case-[a-f]{2}$"), "CASE-ab\ncase-abc\ncase-CD"), ["CASE-ab", "case-CD"]);
    let far = ["x ".repeat(10_000), "EMP-1234".to_owned()].concat();
    assert_eq!(found(spec("EMP-[0-9]{4}"), &far), ["EMP-1234"]);
}

#[test]
fn a_group_says_what_is_hidden() {
    assert_eq!(found(spec("staff (?<secret>[0-9]{4}) of"), "staff 1234 of, staff 99 of"), ["1234"]);
}

#[test]
fn words_must_stand_before() {
    let with_words = PatternSpec { words: vec!["staff".to_owned()], ..spec("[0-9]{4}") };
    assert_eq!(found(with_words.clone(), "5678 Staff: 1234"), ["1234"]);
    for (gap, count) in [(251, 1), (252, 0)] {
        let text = format!("STAFF{}1234", " ".repeat(gap));
        assert_eq!(found(with_words.clone(), &text).len(), count, "{gap}");
    }
}

#[test]
fn characters_stay_whole() {
    assert_eq!(found(spec("key:.{1,3}"), "key:ab漢字 key:é🦀"), ["key:ab漢", "key:é🦀"]);
}

#[test]
fn errors_say_which_where_and_what_to_do() {
    assert_eq!(
        said(spec("a(b")),
        "pattern `OURS`: not a regular expression: unclosed group, at byte 1; look-around and back-references are not \
         possible"
    );
    assert!(said(spec("a*")).contains("matches the empty text"));
    assert!(said(spec("a+")).contains("may match more than 512 bytes; write a bound such as {1,64}"));
    assert!(said(spec(r"\Aabc")).contains(r"\A and \z have no meaning"));
    assert!(said(spec("[ab]{1,200}a[ab]{20}")).contains("too large to search"));
    assert!(said(PatternSpec { id: "ours".to_owned(), ..spec("a") }).contains("pattern `ours`: an id is"));
}

#[test]
fn bounds_hold() {
    for (over, is_good) in [(0, true), (1, false)] {
        let id = |length: usize| "A".repeat(length);
        assert_eq!(scanner(vec![PatternSpec { id: id(PATTERN_ID_BYTES + over), ..spec("a") }]).is_ok(), is_good);
        assert_eq!(scanner(vec![spec(&format!("a{{1,{}}}", 512 + over))]).is_ok(), is_good);
        let words = vec!["w".repeat(PATTERN_WORD_BYTES + over)];
        assert_eq!(scanner(vec![PatternSpec { words, ..spec("a") }]).is_ok(), is_good);
        let many = (0..PATTERNS + over).map(|n| PatternSpec { id: format!("P{n}"), ..spec("abc") }).collect();
        assert_eq!(scanner(many).is_ok(), is_good);
    }
    assert!(scanner(vec![PatternSpec { words: vec![String::new()], ..spec("a") }]).is_err());
}

#[test]
fn an_open_end_holds_back_only_what_may_match() {
    let scanner = scanner(vec![spec("staff [0-9]{4}")]).unwrap();
    for (text, settled) in [("our staff 12", 4), ("our staff ", 4), ("our staff x ", 12), ("our staff 1234, ", 16)] {
        assert_eq!(scanner.scan(text.as_bytes(), 0, false).settled, settled, "{text}");
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        parts in prop::collection::vec("[0-9]{1,9}|staff |STAFF|[ab]{1,20}|key:|[é漢🦀 \n]{1,6}|sk-[a-z0-9]{18}", 1..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let words = vec!["staff".to_owned()];
        let patterns = vec![
            spec("[ab]{2,9}a"),
            PatternSpec { id: "NEAR".to_owned(), words, ..spec(r"\b[0-9]{3,6}\b") },
            PatternSpec { id: "PART".to_owned(), ..spec("(?i)staff (?<secret>[0-9]{2})[0-9]") },
            PatternSpec { id: "ANY".to_owned(), ..spec("key:.{2,5}") },
            PatternSpec { id: "LINE".to_owned(), ..spec("^[0-9]{2}$") },
        ];
        let scanner = scanner(patterns).unwrap();
        let text = parts.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let (mut stream, mut out) = (TextStream::new(b""), Vec::new());
        for (place, ends) in cuts.windows(2).enumerate() {
            stream.push(&scanner, &text[ends[0]..ends[1]], place + 2 == cuts.len(), &mut out);
        }
        let (mut at, mut findings) = (0, Vec::new());
        for piece in &out {
            match piece {
                Piece::Plain(plain) => {
                    prop_assert!(std::str::from_utf8(plain).is_ok());
                    at += plain.len();
                }
                Piece::Found { entity, tier, value } => {
                    findings.push(Finding { entity: *entity, start: at, end: at + value.len(), tier: *tier });
                    at += value.len();
                }
            }
        }
        prop_assert_eq!(findings, scanner.scan(&text, 0, true).findings);
    }
}
