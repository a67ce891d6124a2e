//! Looks at one text of a body: what was found in it is named by its place in the raw bytes.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::escape::{Decoded, Places, unescaped};
use super::found::{Form, Found, What};
use super::items::Items;
use super::rules::{Rule, State, is_exempt, is_given};
use crate::dlp::restore::{Placeholders, keep_apart};
use crate::dlp::scan::Scanner;
use crate::json;
use crate::limits::JSON_LEVELS;
use crate::wire::Dialect;

/// What is needed to look at texts, and what was found so far.
#[derive(Debug)]
pub(super) struct Walker<'i> {
    pub(super) scanner: &'i Scanner,
    /// What is put back; None towards the provider.
    pub(super) placeholders: Option<&'i Placeholders<'i>>,
    pub(super) dialect: Dialect,
    pub(super) found: Vec<Found>,
    /// Where an answer repeats its text token by token.
    pub(super) logprobs: Vec<Range<usize>>,
    /// The strings that the walk is inside of, outermost first.
    around: Vec<Places>,
    spare: Vec<Decoded>,
}

/// A string in raw JSON.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// Without its quotes.
    pub(super) content: Range<usize>,
    pub(super) is_escaped: bool,
}

impl<'i> Walker<'i> {
    pub(super) fn new(scanner: &'i Scanner, placeholders: Option<&'i Placeholders<'i>>, dialect: Dialect) -> Self {
        let (found, logprobs, around, spare) = <(Vec<Found>, Vec<_>, Vec<_>, Vec<_>)>::default();
        Walker { scanner, placeholders, dialect, found, logprobs, around, spare }
    }

    /// In how many strings the walk is.
    pub(super) fn level(&self) -> u8 {
        self.around.len() as u8
    }

    /// Looks at a string of `buf`. What stands there from `context` on belongs to it: its key.
    pub(super) fn look(
        &mut self,
        buf: &[u8],
        string: &Text,
        context: Option<usize>,
        rule: Rule,
        form: Form,
        path: &dyn Fn() -> String,
    ) {
        let Range { start, end } = string.content.clone();
        if start >= end || matches!(rule, Rule::Never | Rule::Logprobs) {
            return;
        }
        let before = self.found.len();
        let context = context.unwrap_or(start);
        let is_key_escaped = memchr::memchr(b'\\', &buf[context..start]).is_some();
        if string.is_escaped || is_key_escaped {
            let mut decoded = self.spare.pop().unwrap_or_default();
            let key = if is_key_escaped { &unescaped(&buf[context..start], 1) } else { &buf[context..start] };
            decoded.fill(key, buf, start..end);
            let inside = key.len()..decoded.text.len();
            decoded.text.extend_from_slice(if key.is_empty() { b"" } else { b"\"" });
            let is_given = is_given(rule, &decoded.text[inside.clone()]);
            self.look_at_decoded(&mut decoded, inside, rule, form, path);
            self.give(before, is_given);
            self.spare.push(decoded);
        } else if !is_exempt(rule, &buf[start..end]) {
            // The closing quote is context as well.
            let stop = if context < start { (end + 1).min(buf.len()) } else { end };
            let marked = self.marked(&buf[context..stop], start - context..end - context);
            for (what, range) in marked {
                let first = self.to_raw(range.start + context..range.end + context);
                self.push(what, form, first, path(), range.start + context - start);
            }
            self.give(before, is_given(rule, &buf[start..end]));
        }
    }

    /// Where a part of the text being walked stands in the body.
    pub(super) fn to_raw(&self, part: Range<usize>) -> Range<usize> {
        self.around.iter().rev().fold(part, |part, places| places.raw(part))
    }

    /// What stands in `inside` of a text, in order and apart.
    pub(super) fn marked(&self, text: &[u8], inside: Range<usize>) -> Vec<(What, Range<usize>)> {
        let mut findings = self.scanner.scan(text, inside.start, true).findings;
        for finding in &mut findings {
            let range = finding.start.max(inside.start)..finding.end.min(inside.end);
            let Range { start, end } = whole_characters(text, range);
            (finding.start, finding.end) = (start, end);
        }
        findings.retain(|finding| finding.start < finding.end);
        let of = |known: &Placeholders<'_>| known.in_text(&text[..inside.end], inside.start);
        let mut known = self.placeholders.map(of).unwrap_or_default();
        keep_apart(&mut findings, &mut known);
        let found = findings.into_iter().map(|one| (What::Finding(one.entity, one.tier), one.start..one.end));
        let mut marked: Vec<_> = found.collect();
        if !known.is_empty() {
            marked.extend(known.into_iter().map(|own| (What::Placeholder(own.entity, own.number), own.range)));
            marked.sort_by_key(|(_, range)| range.start);
        }
        marked
    }

    fn look_at_decoded(
        &mut self,
        decoded: &mut Decoded,
        inside: Range<usize>,
        rule: Rule,
        form: Form,
        path: &dyn Fn() -> String,
    ) {
        if is_exempt(rule, &decoded.text[inside.clone()]) {
            return;
        }
        if usize::from(self.level()) < JSON_LEVELS && holds_json(&decoded.text[inside.clone()]) {
            let before = self.found.len();
            let text = std::mem::take(&mut decoded.text);
            self.around.push(std::mem::take(&mut decoded.places));
            self.walk(&text, inside, (State::Free, Rule::Look), &mut Items::none());
            decoded.text = text;
            decoded.places = self.around.pop().unwrap_or_default();
            if self.found.len() > before {
                let path = path();
                self.found[before..].iter_mut().for_each(|found| found.path.insert_str(0, &path));
            }
            return;
        }
        for (what, range) in self.marked(&decoded.text, inside.clone()) {
            let first = self.to_raw(decoded.places.raw(range.clone()));
            self.push(what, form, first, path(), range.start - inside.start);
        }
    }

    fn give(&mut self, from: usize, is_given: bool) {
        if is_given {
            self.found[from..].iter_mut().for_each(Found::give);
        }
    }

    fn push(&mut self, what: What, form: Form, first: Range<usize>, path: String, start: usize) {
        let level = self.level();
        self.found.push(Found { what, form, first, others: Vec::new(), level, path, start });
    }
}

/// The range with the whole of each UTF-8 character that it has a part of.
pub(super) fn whole_characters(text: &[u8], range: Range<usize>) -> Range<usize> {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let (mut start, mut end) = (range.start, range.end);
    while start > 0 && is_inside(start) {
        start -= 1;
    }
    while is_inside(end) {
        end += 1;
    }
    start..end
}

fn holds_json(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) && json::from_slice::<IgnoredAny>(text).is_ok()
}
