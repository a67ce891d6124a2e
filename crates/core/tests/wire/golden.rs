//! Each answer on file gives the reply written beside it. Adding a case is adding a file.
//!
//! `<case>.reply.txt` holds the reply, and for a stream what was said about its events. With `SPRAG_BLESS=1` the tests
//! write these files instead of comparing; read the difference before you keep it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use sprag_core::wire::{Passing, Tap};

use crate::fixture::{self, Fixture};

#[test]
fn answers_on_file_are_read_as_expected() {
    let mut cases: BTreeMap<PathBuf, Vec<Fixture>> = BTreeMap::new();
    for fixture in fixture::all() {
        cases.entry(fixture.expected_path()).or_default().push(fixture);
    }
    assert!(!cases.is_empty());
    for (expected_path, fixtures) in cases {
        let mut replies = Vec::new();
        let mut passing = String::new();
        for fixture in fixtures {
            let reply = if fixture.is_stream() {
                let (_, events, reply) = fixture::stream(fixture.dialect, &[&fixture.bytes]);
                passing = events.iter().map(|(_, passing)| letter(*passing)).collect();
                reply
            } else {
                let mut tap = Tap::new(fixture.dialect);
                tap.json(&fixture.bytes);
                tap.into_reply()
            };
            replies.push((fixture.path, fixture::render(&reply)));
        }
        for (path, reply) in &replies {
            assert_eq!(*reply, replies[0].1, "{} and its twin are one answer", path.display());
        }
        let mut got = replies[0].1.clone();
        if !passing.is_empty() {
            got += &format!("passing: {passing}\n");
        }
        if std::env::var_os("SPRAG_BLESS").is_some() {
            fs::write(&expected_path, &got).unwrap();
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        assert_eq!(got, expected, "{}", expected_path.display());
    }
}

fn letter(passing: Passing) -> char {
    match passing {
        Passing::Forward => '.',
        Passing::Hold => 'H',
        Passing::UsageOnly => 'U',
        Passing::Last => 'L',
    }
}
