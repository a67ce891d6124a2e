//! `dlp`: what is looked for, and what is done about it.

use std::sync::Arc;

use sprag_core::dlp::{DlpRules, FAMILIES, Family, KINDS, OptionsError, PatternSpec, ScanOptions, Scanner, Seen, Ways};

use super::{place, told};
use crate::config::file::{self, AgentDlp};
use crate::config::problem::{Problem, nearest};
use crate::config::settings;

/// What is looked for.
pub(super) fn resolve(written: &file::Dlp, problems: &mut Vec<Problem>) -> settings::Dlp {
    let patterns: Vec<PatternSpec> = written.patterns.iter().map(pattern).collect();
    let known = problems.len();
    // One by one, so that each can be told by its place.
    for (place, pattern) in patterns.iter().enumerate() {
        let alone = ScanOptions { patterns: vec![pattern.clone()], ..ScanOptions::default() };
        complain(&format!("dlp.patterns[{place}]"), Scanner::new(alone), problems);
    }
    for (place, regex) in written.allow_patterns.iter().enumerate() {
        let alone = ScanOptions { allowed_patterns: vec![regex.clone()], ..ScanOptions::default() };
        complain(&format!("dlp.allow_patterns[{place}]"), Scanner::new(alone), problems);
    }
    let options = ScanOptions {
        off: Vec::new(),
        on: written.kinds.clone(),
        patterns,
        domains: written.internal_domains.clone(),
        allowed: written.allow.clone(),
        allowed_patterns: written.allow_patterns.clone(),
    };
    let scanner = match problems.len() == known {
        true => complain("dlp", Scanner::new(options), problems),
        false => None,
    };
    settings::Dlp {
        written: written.clone(),
        scanner: Arc::new(scanner.unwrap_or_default()),
        seen: Arc::new(Seen::new(rand::random())),
    }
}

fn pattern(written: &file::DlpPattern) -> PatternSpec {
    PatternSpec {
        id: written.id.clone(),
        regex: written.regex.clone(),
        family: Family::Credential,
        title: written.title.clone().unwrap_or_else(|| written.id.clone()),
        words: written.words.clone(),
    }
}

fn complain(key: &str, made: Result<Scanner, OptionsError>, problems: &mut Vec<Problem>) -> Option<Scanner> {
    made.map_err(|error| problems.push(told(key, &error))).ok()
}

/// Rules with what is written for an agent; `key` is where that stands.
pub(super) fn over(base: &Arc<DlpRules>, written: &AgentDlp, key: &str, problems: &mut Vec<Problem>) -> Arc<DlpRules> {
    let mut rules = DlpRules::clone(base);
    if let Some(profile) = written.profile {
        rules.profile = profile.into();
    }
    if let Some(reversible) = &written.reversible {
        check_names(&rules, reversible.iter(), &place(key, "reversible"), problems);
        rules.reversible.clone_from(reversible);
    }
    for (table, modes) in
        [("modes", &written.modes), ("request_modes", &written.request_modes), ("answer_modes", &written.answer_modes)]
    {
        let Some(modes) = modes else { continue };
        check_names(&rules, modes.keys(), &place(key, table), problems);
        for (name, mode) in modes {
            let mode = Some((*mode).into());
            let ways = rules.modes.entry(name.clone()).or_insert(Ways { request: None, answer: None });
            if table != "answer_modes" {
                ways.request = mode;
            }
            if table != "request_modes" {
                ways.answer = mode;
            }
        }
    }
    // Thousands of agents share what they have in common.
    if rules == **base { base.clone() } else { Arc::new(rules) }
}

fn check_names<'a>(rules: &DlpRules, names: impl Iterator<Item = &'a String>, key: &str, problems: &mut Vec<Problem>) {
    let known = || {
        let families = FAMILIES.iter().map(|(name, _)| *name);
        families.chain(KINDS.iter().map(|kind| kind.id)).chain(rules.own.iter().map(String::as_str))
    };
    for name in names.filter(|name| !known().any(|known| known == *name)) {
        let problem = Problem::value(key, format!("there is no kind or family `{name}`"));
        let known: Vec<&str> = known().collect();
        problems.push(match nearest(name, &known) {
            Some((near, true)) => problem.hint(format!("did you mean `{near}`?")),
            _ => problem.hint("`sprag scan --kinds` lists them"),
        });
    }
}
