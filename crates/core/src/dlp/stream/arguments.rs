//! The arguments of a tool, which come as JSON in pieces cut anywhere, also inside an escape.
//!
//! Structure passes at once. The texts in it are looked at as what they mean, each behind its name, and what stays of
//! them is written as it was. What turns out not to be JSON is plain text from there on.

use zeroize::Zeroizing;

use super::escape;
use super::text::{Cut, PlainText, TextFilter};
use super::watch::{Spot, Stopped};
use crate::limits::{ARGUMENT_SCALAR_BYTES, EVENT_DEPTH};

/// Numbers of so many digits may be a card's.
pub(super) const LONG_NUMBER: usize = 13;
/// So much of a name counts as context.
const KEY_BYTES: usize = 128;

/// Reads the arguments of one call.
#[derive(Debug)]
pub(super) struct Arguments {
    state: State,
    expects: Expects,
    /// For each open object or array whether it is an object.
    open: Vec<bool>,
    /// The name of what comes.
    key: Vec<u8>,
    /// Bytes read.
    at: usize,
}

#[derive(Debug)]
enum State {
    Between,
    Text(Box<OpenText>),
    /// A number or a word.
    Scalar(Vec<u8>),
    NotJson(Box<PlainText>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// Nothing but an object, an array or a text makes it JSON.
    First,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// A string that has not ended.
#[derive(Debug)]
struct OpenText {
    filter: TextFilter,
    is_key: bool,
    /// As it is written, from the first byte that is not decided.
    raw: Zeroizing<Vec<u8>>,
    /// How much of it the filter knows.
    fed: usize,
    /// The last byte was a backslash that begins an escape.
    is_escaping: bool,
}

impl Arguments {
    pub(super) fn new() -> Arguments {
        Arguments { state: State::Between, expects: Expects::First, open: Vec::new(), key: Vec::new(), at: 0 }
    }

    /// Takes what comes next; what can go on is added to `out`, also when the call is to be stopped.
    pub(super) fn push(
        &mut self,
        spot: &mut Spot<'_>,
        more: &[u8],
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        let mut rest = more;
        while !rest.is_empty() {
            let taken = match &mut self.state {
                State::Between => self.structure(rest, out),
                State::Text(text) => {
                    let (taken, is_closed) = text.take(rest);
                    let key = text.is_key.then_some(&mut self.key);
                    text.feed(spot, is_closed, key, out)?;
                    if is_closed {
                        out.push(b'"');
                        self.expects = if text.is_key { Expects::Colon } else { self.behind_value() };
                        self.state = State::Between;
                    }
                    taken
                }
                State::Scalar(scalar) => {
                    let is_part = |byte: &&u8| is_scalar(**byte);
                    let length = rest.iter().take_while(is_part).count();
                    let length = length.min(ARGUMENT_SCALAR_BYTES + 1 - scalar.len());
                    scalar.extend_from_slice(&rest[..length]);
                    if length < rest.len() || scalar.len() > ARGUMENT_SCALAR_BYTES {
                        self.end_scalar(spot, out)?;
                    }
                    length
                }
                State::NotJson(text) => {
                    text.push(spot, rest, is_end, out)?;
                    rest.len()
                }
            };
            self.at += taken;
            rest = &rest[taken..];
        }
        if is_end {
            self.end(spot, out)?;
        }
        Ok(())
    }

    /// Gives what is decided; the rest will never come. A number that is open may be half of one.
    pub(super) fn break_off(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        match &mut self.state {
            State::Text(text) => text.break_off(spot, out),
            State::NotJson(text) => text.break_off(spot, out),
            State::Between | State::Scalar(_) => Ok(()),
        }
    }

    pub(super) fn is_holding(&self) -> bool {
        match &self.state {
            State::Between => false,
            State::Text(text) => !text.raw.is_empty(),
            State::Scalar(scalar) => !scalar.is_empty(),
            State::NotJson(text) => text.is_holding(),
        }
    }

    fn end(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        if matches!(self.state, State::Scalar(_)) {
            self.end_scalar(spot, out)?;
        }
        match &mut self.state {
            State::Text(text) => text.feed(spot, true, None, out),
            State::NotJson(text) => text.push(spot, b"", true, out),
            State::Between | State::Scalar(_) => Ok(()),
        }
    }

    /// Passes structure on, up to where a text or a scalar begins.
    fn structure(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        use Expects::*;
        for (at, byte) in rest.iter().enumerate() {
            let is_value = matches!(self.expects, First | Value | ValueOrEnd);
            let is_object = self.open.last().copied();
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                b'{' | b'[' if is_value && self.open.len() < EVENT_DEPTH => {
                    self.open.push(*byte == b'{');
                    self.expects = if *byte == b'{' { KeyOrEnd } else { ValueOrEnd };
                }
                b'}' if is_object == Some(true) && matches!(self.expects, KeyOrEnd | CommaOrEnd) => self.close(),
                b']' if is_object == Some(false) && matches!(self.expects, ValueOrEnd | CommaOrEnd) => self.close(),
                b',' if self.expects == CommaOrEnd => self.expects = if is_object == Some(true) { Key } else { Value },
                b':' if self.expects == Colon => self.expects = Value,
                b'"' if is_value || matches!(self.expects, Key | KeyOrEnd) => {
                    out.push(b'"');
                    let place = self.at + at + 1;
                    self.state = State::Text(Box::new(OpenText::new(!is_value, &self.key, place)));
                    if !is_value {
                        self.key.clear();
                    }
                    return at + 1;
                }
                byte if is_scalar(*byte) && is_value && self.expects != First => {
                    self.state = State::Scalar(Vec::new());
                    return at;
                }
                _ => {
                    self.state = self.not_json(self.at + at);
                    return at;
                }
            }
            out.push(*byte);
        }
        rest.len()
    }

    fn close(&mut self) {
        self.open.pop();
        self.expects = self.behind_value();
    }

    fn behind_value(&self) -> Expects {
        if self.open.is_empty() { Expects::Nothing } else { Expects::CommaOrEnd }
    }

    fn not_json(&self, at: usize) -> State {
        State::NotJson(Box::new(PlainText::new(&behind(&self.key, b""), at)))
    }

    fn end_scalar(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        let next = self.not_json(self.at);
        let State::Scalar(scalar) = std::mem::replace(&mut self.state, State::Between) else { return Ok(()) };
        if scalar.len() > ARGUMENT_SCALAR_BYTES || !is_word_or_number(&scalar) {
            self.state = next;
            let State::NotJson(text) = &mut self.state else { return Ok(()) };
            return text.push(spot, &scalar, false, out);
        }
        self.expects = self.behind_value();
        number(spot, &scalar, &self.key, self.at, out)
    }
}

/// Passes a number on, as a text with a placeholder if it is a finding.
pub(super) fn number(
    spot: &mut Spot<'_>,
    number: &[u8],
    key: &[u8],
    at: usize,
    out: &mut Vec<u8>,
) -> Result<(), Stopped> {
    if number.iter().filter(|byte| byte.is_ascii_digit()).count() < LONG_NUMBER {
        out.extend_from_slice(number);
        return Ok(());
    }
    let mut text = Vec::new();
    PlainText::new(&behind(key, b""), at).push(spot, number, true, &mut text)?;
    if text == number {
        out.extend_from_slice(number);
    } else {
        out.push(b'"');
        escape::write(&text, out);
        out.push(b'"');
    }
    Ok(())
}

/// What stands before a value with this name.
pub(super) fn behind(key: &[u8], quote: &[u8]) -> Vec<u8> {
    if key.is_empty() { Vec::new() } else { [b"\"", key, b"\": ", quote].concat() }
}

impl OpenText {
    fn new(is_key: bool, key: &[u8], at: usize) -> OpenText {
        let context = if is_key { Vec::new() } else { behind(key, b"\"") };
        let filter = TextFilter::new(&context, at);
        OpenText { filter, is_key, raw: Zeroizing::default(), fed: 0, is_escaping: false }
    }

    /// How many bytes were taken, and whether the string ended with them.
    fn take(&mut self, rest: &[u8]) -> (usize, bool) {
        for (at, byte) in rest.iter().enumerate() {
            if self.is_escaping {
                self.is_escaping = false;
            } else if *byte == b'"' {
                self.raw.extend_from_slice(&rest[..at]);
                return (at + 1, true);
            } else {
                self.is_escaping = *byte == b'\\';
            }
        }
        self.raw.extend_from_slice(rest);
        (rest.len(), false)
    }

    fn feed(
        &mut self,
        spot: &mut Spot<'_>,
        is_end: bool,
        key: Option<&mut Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        let mut text = Zeroizing::new(Vec::new());
        while let Some(unit) = escape::unit(&self.raw[self.fed..], is_end) {
            text.extend_from_slice(unit.text());
            self.fed += unit.raw;
        }
        if let Some(key) = key {
            key.extend(text.iter().take(KEY_BYTES - key.len().min(KEY_BYTES)));
        }
        let mut cuts = Vec::new();
        let result = self.filter.push(spot, &text, is_end, &mut cuts);
        self.apply(cuts, is_end, out);
        result
    }

    fn break_off(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        let mut cuts = Vec::new();
        let result = self.filter.break_off(spot, &mut cuts);
        self.apply(cuts, false, out);
        result
    }

    fn apply(&mut self, cuts: Vec<Cut>, is_end: bool, out: &mut Vec<u8>) {
        let mut at = 0;
        for cut in cuts {
            let (start, mut length) = (at, 0);
            while length < cut.length
                && let Some(unit) = escape::unit(&self.raw[at..], is_end)
            {
                at += unit.raw;
                length += unit.text().len();
            }
            match &cut.with {
                None => out.extend_from_slice(&self.raw[start..at]),
                Some(with) => escape::write(with.as_bytes(), out),
            }
        }
        self.raw.drain(..at);
        self.fed -= at.min(self.fed);
    }
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

fn is_word_or_number(scalar: &[u8]) -> bool {
    let is_number = scalar.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-')
        && scalar.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    is_number || [&b"true"[..], b"false", b"null"].contains(&scalar)
}

#[cfg(test)]
mod tests;
