//! From what somebody wrote to an automaton, or to a word on what is wrong.

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, meta};
use regex_syntax::hir::{Hir, Look};

use super::{PatternError, PatternSpec};
use crate::limits::{PATTERN_AUTOMATON_BYTES, PATTERN_ID_BYTES, PATTERN_MATCH_BYTES, PATTERN_WORD_BYTES};

pub(super) type Dfa = dense::DFA<Vec<u32>>;

/// The group that says what is hidden.
pub(super) const SECRET: &str = "secret";

/// A pattern that can be searched.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) dfa: Dfa,
    /// Which bytes can begin it.
    pub(super) first: Box<[bool; 256]>,
    /// In small letters.
    pub(super) words: Vec<Vec<u8>>,
    /// Finds the part that is hidden in what was found.
    pub(super) groups: Option<meta::Regex>,
}

impl Pattern {
    pub(super) fn new(spec: &PatternSpec) -> Result<Pattern, PatternError> {
        let id = || spec.id.clone();
        if !is_id(&spec.id) {
            return Err(PatternError::Id(id()));
        }
        let is_word = |word: &&String| (1..=PATTERN_WORD_BYTES).contains(&word.len());
        if let Some(word) = spec.words.iter().find(|word| !is_word(word)) {
            return Err(PatternError::Word { id: id(), word: word.clone() });
        }
        let hir = parse(spec)?;
        let facts = hir.properties();
        if facts.minimum_len().is_none_or(|length| length == 0) {
            return Err(PatternError::Empty(id()));
        }
        if facts.maximum_len().is_none_or(|length| length > PATTERN_MATCH_BYTES) {
            return Err(PatternError::Long(id()));
        }
        if facts.look_set().contains(Look::Start) || facts.look_set().contains(Look::End) {
            return Err(PatternError::Anchor(id()));
        }
        let large = |what: String| PatternError::Large { id: id(), what };
        let dfa = automaton(&[&spec.regex], StartKind::Anchored).map_err(large)?;
        let groups = if spec.regex.contains("<secret>") { Some(groups(spec).map_err(large)?) } else { None };
        let words = spec.words.iter().map(|word| word.to_ascii_lowercase().into_bytes()).collect();
        let first = first_bytes(&dfa);
        Ok(Pattern { dfa, first, words, groups })
    }
}

/// One automaton for all of them.
pub(super) fn automaton(patterns: &[&str], start: StartKind) -> Result<Dfa, String> {
    dense::Builder::new()
        .syntax(syntax())
        .thompson(thompson::Config::new().nfa_size_limit(Some(PATTERN_AUTOMATON_BYTES)))
        .configure(
            dense::Config::new()
                .start_kind(start)
                .dfa_size_limit(Some(PATTERN_AUTOMATON_BYTES))
                .determinize_size_limit(Some(PATTERN_AUTOMATON_BYTES)),
        )
        .build_many(patterns)
        .map_err(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
}

fn is_id(id: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=PATTERN_ID_BYTES).contains(&id.len()) && id.bytes().all(is_part)
}

/// Lines have beginnings and ends; the text, which may be a stream, has none.
fn syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).multi_line(true)
}

fn parse(spec: &PatternSpec) -> Result<Hir, PatternError> {
    syntax::parse_with(&spec.regex, &syntax()).map_err(|error| {
        let place = match &error {
            regex_syntax::Error::Parse(error) => Some((error.kind().to_string(), error.span().start.offset)),
            regex_syntax::Error::Translate(error) => Some((error.kind().to_string(), error.span().start.offset)),
            _ => None,
        };
        let what = place.map_or_else(|| error.to_string(), |(what, at)| format!("{what}, at byte {at}"));
        PatternError::Syntax { id: spec.id.clone(), what }
    })
}

fn groups(spec: &PatternSpec) -> Result<meta::Regex, String> {
    let limit = meta::Config::new().nfa_size_limit(Some(PATTERN_AUTOMATON_BYTES)).utf8_empty(false);
    meta::Builder::new().syntax(syntax()).configure(limit).build(&spec.regex).map_err(|error| error.to_string())
}

/// Whatever stands before: behind which byte a match begins is no matter here.
fn first_bytes(dfa: &Dfa) -> Box<[bool; 256]> {
    let mut first = Box::new([false; 256]);
    for before in [None, Some(b' '), Some(b'\n'), Some(b'\r'), Some(b'a'), Some(0xff)] {
        let text: Vec<u8> = before.into_iter().chain([b'a']).collect();
        let input = Input::new(&text).span(text.len() - 1..text.len()).anchored(Anchored::Yes);
        let Ok(start) = dfa.start_state_forward(&input) else { continue };
        for byte in 0..=255 {
            first[usize::from(byte)] |= !dfa.is_dead_state(dfa.next_state(start, byte));
        }
    }
    first
}
