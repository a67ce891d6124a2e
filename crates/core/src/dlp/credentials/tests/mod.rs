//! What is found, what stays, and that a cut changes nothing.

mod cuts;
mod found;
mod stays;

use super::{WORDS, at_url, at_word};
use crate::dlp::hits::Hits;
use crate::dlp::view::{LOOK_BACK, View};
use crate::dlp::{Finding, KINDS};

/// What is found in a text: kind and value.
fn found(text: &str) -> Vec<(&'static str, &str)> {
    let (findings, _) = scan(text.as_bytes(), 0, true);
    findings.iter().map(|finding| (id(finding), &text[finding.start..finding.end])).collect()
}

/// What is found when the text comes in pieces that end at `cuts`.
fn found_in_pieces<'t>(text: &'t str, cuts: &[usize]) -> Vec<(&'static str, &'t str)> {
    let (mut all, mut from) = (Vec::new(), 0);
    for cut in cuts.iter().copied().chain([text.len()]) {
        let begin = from - from.min(LOOK_BACK);
        let (findings, settled) = scan(&text.as_bytes()[begin..cut], from - begin, cut == text.len());
        for finding in findings {
            assert!(finding.start + begin >= from, "what was let go cannot be found: {text}");
            all.push((id(&finding), &text[begin + finding.start..begin + finding.end]));
        }
        from = begin + settled;
    }
    all
}

/// These detectors alone, without what the scanner holds back for all: what they hold back must be enough for them.
fn scan(text: &[u8], from: usize, is_end: bool) -> (Vec<Finding>, usize) {
    let (view, mut hits) = (View { text, is_end }, Hits::new());
    for at in 0..text.len() {
        hits.trigger = at;
        for (word, form) in WORDS.iter().enumerate() {
            if text[at..].get(..form.len()).is_some_and(|here| here.eq_ignore_ascii_case(form.as_bytes())) {
                at_word(&view, at, word, &mut hits);
            }
        }
        if text[at..].starts_with(b"://") {
            at_url(&view, at, &mut hits);
        }
    }
    let Hits { mut findings, unsure_from, .. } = hits;
    findings.retain(|finding| finding.end > from);
    findings.sort_by_key(|finding| (finding.start, std::cmp::Reverse(finding.end), std::cmp::Reverse(finding.tier)));
    let mut standing: Vec<Finding> = Vec::new();
    for finding in findings {
        match standing.last_mut() {
            Some(last) if finding.start < last.end => {
                if finding.end - finding.start > last.end - last.start {
                    *last = finding;
                }
            }
            _ => standing.push(finding),
        }
    }
    let mut settled = unsure_from.min(text.len()).max(from);
    while let Some(last) = standing.pop_if(|last| last.end > settled) {
        settled = settled.min(last.start).max(from);
    }
    (standing, settled)
}

fn id(finding: &Finding) -> &'static str {
    KINDS[usize::from(finding.entity.0)].id
}
