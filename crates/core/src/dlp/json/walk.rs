//! Goes through raw JSON, one token after the other, and has every text looked at that may be.
//!
//! No tree is built and nothing recurses but JSON inside strings, which is bounded. Any bytes can be walked: what is not
//! JSON gives fewer findings, never a panic. Beyond [`JSON_DEPTH`] places lose their paths and rules, and every text there
//! is looked at.

use std::ops::Range;

use super::found::{Form, Found, What};
use super::frame::{Frame, TextPart, path_of};
use super::items::Items;
use super::rules::{Rule, State, is_server, is_signature, is_text, marks, marks_of_type, rule, rule_of_called};
use super::text::{Text, Walker};
use crate::dlp::view::LOOK_BACK;
use crate::json::end_of_string;
use crate::limits::JSON_DEPTH;

/// Fewer digits are no card, and in most bodies they are plenty.
const CARD_DIGITS: usize = 13;
/// How deep an object is that is passed over in one go: usage, with details.
const FLAT: usize = 4;
/// Shorter keys hold nothing.
const KEY_BYTES: usize = 6;

impl Walker<'_> {
    /// Looks at the value that stands in `range` of `buf`. `items` are looked at by themselves.
    pub(super) fn walk(&mut self, buf: &[u8], range: Range<usize>, root: (State, Rule), items: &mut Items<'_>) {
        let mut frames = Vec::with_capacity(8);
        frames.push(Frame::root(root));
        let (mut at, mut deep) = (range.start, 0_usize);
        while at < range.end {
            let is_deepest = frames.len() > JSON_DEPTH;
            let Some(top) = frames.last_mut() else { return };
            if deep == 0 && items.next_is(at, range.end) {
                let path = || path_of(&frames, buf);
                at = items.look(self, buf, self.value_rule(&frames, buf), path);
                continue;
            }
            match buf[at] {
                b'"' => {
                    let string = string_at(buf, at, range.end);
                    let next = string.content.end + 1;
                    match deep {
                        0 if top.expects_key => self.key(&mut frames, buf, string),
                        0 => self.string(&mut frames, buf, string),
                        _ => self.look(buf, &string, None, Rule::Look, Form::Text, &|| path_of(&frames, buf)),
                    }
                    at = next;
                    continue;
                }
                b'{' | b'[' if is_deepest => deep += 1,
                open @ (b'{' | b'[') => {
                    let rule = self.value_rule(&frames, buf);
                    // Nothing in it is looked at, unless it goes too deep for rules.
                    if rule.1 == Rule::Never
                        && frames.len() + FLAT <= JSON_DEPTH
                        && let Some(end) = end_of_flat(buf, at, range.end)
                    {
                        at = end;
                        continue;
                    }
                    let found = self.found.len();
                    frames.extend(frames.last().map(|top| top.child(open == b'[', rule, at, found)));
                }
                b'}' | b']' if deep > 0 => deep -= 1,
                b'}' | b']' => self.close(&mut frames, buf, at + 1),
                b',' if deep == 0 => top.go_on(),
                b'-' | b'0'..=b'9' => {
                    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                    let length = buf[at..range.end].iter().take_while(|byte| is_part(byte)).count();
                    if length >= CARD_DIGITS {
                        self.number(&frames, buf, at..at + length);
                    }
                    at += length;
                    continue;
                }
                // Gemini says so of a part that is a thought.
                b't' if &buf[top.key.clone()] == b"thought" && deep == 0 => top.marks |= marks::REASONING,
                _ => {}
            }
            at += 1;
        }
        // What was never closed is looked at as well.
        while frames.last().is_some() {
            self.encoded(&mut frames, buf);
            frames.pop();
        }
    }

    fn value_rule(&self, frames: &[Frame], buf: &[u8]) -> (State, Rule) {
        match frames.last() {
            Some(top) if top.is_array || top.rule == Rule::Given => (top.state, top.rule),
            Some(top) => {
                let (parent, key) = (&buf[top.name.clone()], &buf[top.key.clone()]);
                let called = if top.rule == Rule::Called { rule_of_called(key) } else { None };
                (top.state, called.unwrap_or_else(|| rule(self.dialect, top.state, parent, key)))
            }
            None => (State::Free, Rule::Look),
        }
    }

    fn key(&mut self, frames: &mut [Frame], buf: &[u8], string: Text) {
        let Some((top, _)) = frames.split_last_mut() else { return };
        top.expects_key = false;
        top.key = string.content.clone();
        // Two keys may be one, written differently.
        top.marks |= if string.is_escaped { marks::TWO_TYPES } else { 0 };
        let key = &buf[string.content.clone()];
        let is_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        top.is_key_shown = key.iter().all(is_word);
        if top.is_key_shown || top.state == State::Never {
            return;
        }
        let before = self.found.len();
        if key.len() >= KEY_BYTES {
            let form = Form::Key(top.keys_found);
            let path = || path_of(frames, buf);
            self.look(buf, &string, None, Rule::Look, form, &path);
        }
        let found = self.found.len() - before;
        if let Some(top) = frames.last_mut() {
            top.is_key_shown = found == 0 && key.iter().all(u8::is_ascii_graphic);
            top.keys_found = top.keys_found.saturating_add(u16::from(found > 0));
        }
    }

    fn string(&mut self, frames: &mut [Frame], buf: &[u8], string: Text) {
        let (_, rule) = self.value_rule(frames, buf);
        let Some(top) = frames.last_mut() else { return };
        let content = &buf[string.content.clone()];
        if !top.is_array {
            let key = &buf[top.key.clone()];
            if top.state.has_seals() && key == b"type" {
                let doubt = if top.marks & marks::TYPE != 0 { marks::TWO_TYPES } else { 0 };
                top.marks |= marks::TYPE | doubt | marks_of_type(content);
            } else if top.state.has_seals() && is_signature(key) && !content.is_empty() {
                top.marks |= marks::SIGNED;
            }
            if key == b"text" && top.state == State::Protocol {
                top.text = Some(TextPart { content: string.content.clone() });
            }
            if matches!(rule, Rule::Base64 | Rule::LongBase64) {
                top.encoded.push((top.key.clone(), rule, string));
                return;
            }
        }
        self.value(frames, buf, &string, rule);
    }

    /// Looks at the text of the key, or place in a list, that is being read.
    fn value(&mut self, frames: &[Frame], buf: &[u8], string: &Text, rule: Rule) {
        let key = frames.last().filter(|top| !top.is_array).map(|top| top.key.start.saturating_sub(1));
        let context = key.filter(|start| string.content.start.saturating_sub(*start) <= LOOK_BACK);
        self.look(buf, string, context, rule, Form::Text, &|| path_of(frames, buf));
    }

    /// Looks at what may be encoded bytes, once it is known what object it stands in.
    fn encoded(&mut self, frames: &mut [Frame], buf: &[u8]) {
        let Some(top) = frames.last_mut() else { return };
        let is_text = is_text(top.marks);
        for (key, rule, string) in std::mem::take(&mut top.encoded) {
            if let Some(top) = frames.last_mut() {
                (top.key, top.is_key_shown) = (key, true);
            }
            self.value(frames, buf, &string, if is_text { Rule::Look } else { rule });
        }
    }

    fn number(&mut self, frames: &[Frame], buf: &[u8], token: Range<usize>) {
        let (_, rule) = self.value_rule(frames, buf);
        let digits = buf[token.clone()].strip_prefix(b"-").unwrap_or(&buf[token.clone()]);
        if matches!(rule, Rule::Never | Rule::Logprobs) || !digits.iter().all(u8::is_ascii_digit) {
            return;
        }
        let start =
            frames.last().filter(|top| !top.is_array).map_or(token.start, |top| top.key.start.saturating_sub(1));
        let start = if token.start - start <= LOOK_BACK { start } else { token.start };
        let scan = self.scanner.scan(&buf[start..token.end], token.start - start, true);
        if let Some(finding) = scan.findings.first() {
            let first = self.to_raw(token);
            let what = What::Finding(finding.entity, finding.tier);
            let path = path_of(frames, buf);
            let level = self.level();
            self.found.push(Found { what, form: Form::Number, first, others: Vec::new(), level, path, start: 0 });
        }
    }

    /// The end of an object or a list.
    fn close(&mut self, frames: &mut Vec<Frame>, buf: &[u8], end: usize) {
        self.encoded(frames, buf);
        let Some(closed) = (frames.len() > 1).then(|| frames.pop()).flatten() else { return };
        if closed.is_sealed() {
            self.found.truncate(closed.found_from);
        } else if closed.rule == Rule::Called && !closed.is_array && !is_server(closed.marks) {
            self.found[closed.found_from..].iter_mut().for_each(Found::take_back);
        } else if let Some(text) = closed.text
            && let Some(parent) = frames.last_mut()
            && parent.is_array
        {
            parent.texts.push((parent.index, text));
        }
        if closed.texts.len() > 1 && self.level() == 0 {
            let path = path_of(frames, buf);
            self.look_at_seams(buf, &closed.texts, closed.found_from, &path);
        }
        if closed.rule == Rule::Logprobs && self.level() == 0 {
            self.logprobs.push(closed.start..end);
        }
    }
}

/// The place behind the object or list that begins at `at`; none where it has no end, or goes deeper than [`FLAT`].
fn end_of_flat(buf: &[u8], at: usize, end: usize) -> Option<usize> {
    let buf = buf.get(..end)?;
    let (mut at, mut depth) = (at, 0);
    loop {
        match buf.get(at)? {
            b'"' => at = end_of_string(buf, at + 1)?.0,
            b'{' | b'[' if depth == FLAT => return None,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// The string whose opening quote stands at `at`.
fn string_at(buf: &[u8], at: usize, end: usize) -> Text {
    let start = at + 1;
    if let Some((end, is_escaped)) = buf.get(..end).and_then(|buf| end_of_string(buf, start)) {
        return Text { content: start..end, is_escaped };
    }
    // What no string of JSON would hold is looked at all the same.
    let (mut from, mut is_escaped) = (start, false);
    while let Some(length) = memchr::memchr2(b'"', b'\\', buf.get(from..end).unwrap_or_default()) {
        if buf[from + length] == b'"' {
            return Text { content: start..from + length, is_escaped };
        }
        is_escaped = true;
        from += length + 2;
    }
    Text { content: start.min(end)..end, is_escaped }
}
