//! Where own patterns match.
//!
//! What a pattern matches at a place is asked for each place on its own and never from the end of the last match on:
//! so the answer does not depend on where the search began. An automaton for all patterns together first says which
//! stretches of the text hold a match at all.

use regex_automata::dfa::{Automaton, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input};

use super::compile::{Dfa, Pattern, SECRET, automaton};
use super::{PatternError, PatternSpec};
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;
use crate::limits::{PATTERN_MATCH_BYTES, PATTERNS};

/// How far back words may stand.
pub(super) const WORDS_WITHIN: usize = 256;
/// Text that is searched closely, or not, at a time.
const STRETCH: usize = 4 << 10;

/// All patterns of somebody's own.
#[derive(Debug, Default)]
pub(in crate::dlp) struct Patterns {
    patterns: Vec<Pattern>,
    /// Any of them anywhere; too large for some, and then each stretch is searched closely.
    any: Option<Dfa>,
    /// The entity of the first.
    first: u16,
}

enum At {
    /// It matches up to here.
    Match(usize),
    Nothing,
    /// The text ends too early to say.
    Open,
}

impl Patterns {
    /// Checks them all. Their entities begin at `first`.
    pub(in crate::dlp) fn new(specs: &[PatternSpec], first: u16) -> Result<Patterns, PatternError> {
        if specs.len() > PATTERNS {
            return Err(PatternError::Many(specs.len()));
        }
        let patterns = specs.iter().map(Pattern::new).collect::<Result<Vec<Pattern>, PatternError>>()?;
        let sources: Vec<&str> = specs.iter().map(|spec| spec.regex.as_str()).collect();
        let any = if specs.is_empty() { None } else { automaton(&sources, StartKind::Unanchored).ok() };
        Ok(Patterns { patterns, any, first })
    }

    /// Looks for all of them from `from` on.
    pub(in crate::dlp) fn look(&self, view: &View<'_>, from: usize, hits: &mut Hits) {
        if self.patterns.is_empty() {
            return;
        }
        let mut start = from;
        while start < view.text.len() {
            let end = view.text.len().min(start + STRETCH);
            // Near an open end a match may not be whole yet.
            let is_near_end = view.may_go_on(end + PATTERN_MATCH_BYTES);
            if is_near_end || self.is_any_in(view.text, start, end) {
                self.look_closely(view, start, end, hits);
            }
            start = end;
        }
    }

    /// Whether this value is one of them as a whole.
    pub(in crate::dlp) fn is_whole(&self, value: &[u8]) -> bool {
        let view = View { text: value, is_end: true };
        self.patterns.iter().any(|pattern| matches!(pattern.at(&view, 0), At::Match(end) if end == value.len()))
    }

    fn is_any_in(&self, text: &[u8], start: usize, end: usize) -> bool {
        let Some(any) = &self.any else { return true };
        let last = text.len().min(end + PATTERN_MATCH_BYTES);
        let input = Input::new(text).span(start..last).anchored(Anchored::No).earliest(true);
        // An error would mean a byte that the automaton cannot read.
        !matches!(any.try_search_fwd(&input), Ok(None))
    }

    fn look_closely(&self, view: &View<'_>, start: usize, end: usize, hits: &mut Hits) {
        for (entity, pattern) in (self.first..).zip(&self.patterns) {
            for at in start..end {
                if !pattern.first[usize::from(view.text[at])] {
                    continue;
                }
                hits.trigger = at;
                match pattern.at(view, at) {
                    At::Nothing => {}
                    // A character that is cut may be the end of it.
                    At::Match(end) if view.may_go_on(end + 3) && is_inside(view.text, end) => hits.unsure(at),
                    At::Open if pattern.has_words(view.text, at) => hits.unsure(whole_start(view.text, at)),
                    At::Match(end) if pattern.has_words(view.text, at) => {
                        let (from, to) = pattern.hidden(view.text, at, end);
                        hits.found(Entity(entity), Tier::Proof, whole_start(view.text, from), whole_end(view.text, to));
                    }
                    At::Open | At::Match(_) => {}
                }
            }
        }
    }
}

impl Pattern {
    /// What matches at this place and at no other.
    fn at(&self, view: &View<'_>, at: usize) -> At {
        let input = Input::new(view.text).span(at..view.text.len()).anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state_forward(&input) else { return At::Nothing };
        let mut found = At::Nothing;
        for (place, byte) in view.text[at..].iter().enumerate() {
            state = self.dfa.next_state(state, *byte);
            if self.dfa.is_match_state(state) {
                // A match is known one byte late.
                found = At::Match(at + place);
            } else if self.dfa.is_dead_state(state) || self.dfa.is_quit_state(state) {
                return found;
            }
        }
        if !view.is_end {
            return if self.is_over(state) { found } else { At::Open };
        }
        if self.dfa.is_match_state(self.dfa.next_eoi_state(state)) { At::Match(view.text.len()) } else { found }
    }

    /// Whether nothing that follows could change what was found.
    fn is_over(&self, state: StateID) -> bool {
        (0..=255).all(|byte| self.dfa.is_dead_state(self.dfa.next_state(state, byte)))
    }

    fn has_words(&self, text: &[u8], at: usize) -> bool {
        let before = &text[at.saturating_sub(WORDS_WITHIN)..at];
        let is_there =
            |word: &Vec<u8>| before.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_slice()));
        self.words.is_empty() || self.words.iter().any(is_there)
    }

    /// The part that is to be hidden.
    fn hidden(&self, text: &[u8], start: usize, end: usize) -> (usize, usize) {
        let Some(groups) = &self.groups else { return (start, end) };
        let mut found = groups.create_captures();
        groups.search_captures(&Input::new(text).span(start..end).anchored(Anchored::Yes), &mut found);
        let secret = found.get_group_by_name(SECRET).filter(|secret| !secret.is_empty());
        secret.map_or((start, end), |secret| (secret.start, secret.end))
    }
}

/// Where the character begins that `at` stands in.
fn whole_start(text: &[u8], at: usize) -> usize {
    (0..4).find_map(|back| at.checked_sub(back).filter(|at| !is_inside(text, *at))).unwrap_or(at)
}

/// Where the character ends that `end` stands in.
fn whole_end(text: &[u8], end: usize) -> usize {
    (0..4).map(|ahead| end + ahead).find(|end| !is_inside(text, *end)).unwrap_or(end)
}

fn is_inside(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80)
}
