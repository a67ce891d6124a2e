//! Server-sent events: where one ends, and what it says.
//!
//! The splitter passes the original bytes on and only watches them: nothing is decoded, normalised or dropped. It
//! follows the line rules of the HTML standard (LF, CRLF and CR, mixed at will). Reading the data of an event is left
//! to [`super::Tap`].
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};

use crate::limits;

/// Cuts a stream of bytes at the ends of its events.
///
/// Each byte is looked at once, however small the chunks are.
#[derive(Debug, Default)]
pub struct Splitter {
    /// The beginning of an event whose end has not arrived.
    pending: BytesMut,
    lines: Lines,
    oversized: bool,
}

/// Whole events, ready to be passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The bytes as they came. Once the splitter is oversized they may go on behind the last end.
    pub bytes: Bytes,
    /// Where each event ends in `bytes`, its blank line included.
    pub ends: Vec<usize>,
}

/// One event, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventView<'a> {
    /// The `event:` field, if there is one.
    pub name: Option<&'a str>,
    /// The `data:` lines, joined by line feeds; empty for a comment.
    pub data: Cow<'a, [u8]>,
}

impl Splitter {
    /// A splitter at the start of a stream.
    #[must_use]
    pub fn new() -> Splitter {
        Splitter::default()
    }

    /// Takes the next bytes of the stream, returns all events that are whole now.
    ///
    /// Without anything pending the result is a slice of `chunk`, not a copy.
    pub fn push(&mut self, chunk: Bytes) -> Block {
        if self.oversized {
            return Block { bytes: chunk, ends: Vec::new() };
        }
        let mut ends = Vec::new();
        if self.pending.is_empty() {
            self.lines.scan(&chunk, 0, &mut ends);
            let whole = ends.last().copied().unwrap_or(0);
            if self.is_too_long(&mut ends, chunk.len()) {
                return Block { bytes: chunk, ends };
            }
            self.pending.extend_from_slice(&chunk[whole..]);
            return Block { bytes: chunk.slice(..whole), ends };
        }
        let seen = self.pending.len();
        self.pending.extend_from_slice(&chunk);
        self.lines.scan(&self.pending, seen, &mut ends);
        let whole = ends.last().copied().unwrap_or(0);
        if self.is_too_long(&mut ends, self.pending.len()) {
            return Block { bytes: self.rest(), ends };
        }
        Block { bytes: self.pending.split_to(whole).freeze(), ends }
    }

    /// Gives back the beginning of an event that never ended; the stream is over.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.pending).freeze()
    }

    /// An event was longer than [`limits::SSE_EVENT_BYTES`]: from then on all bytes pass unread.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// Looks for an event over the limit, whole or not, and forgets the ends from it on.
    fn is_too_long(&mut self, ends: &mut Vec<usize>, total: usize) -> bool {
        if total <= limits::SSE_EVENT_BYTES {
            return false;
        }
        let mut start = 0;
        let fitting =
            ends.iter().take_while(|end| **end - std::mem::replace(&mut start, **end) <= limits::SSE_EVENT_BYTES);
        let fitting = fitting.count();
        let tail = total - ends.last().copied().unwrap_or(0);
        self.oversized = fitting < ends.len() || tail > limits::SSE_EVENT_BYTES;
        ends.truncate(fitting);
        self.oversized
    }
}

/// Reads one event, with or without its closing blank line.
#[must_use]
pub fn parse(event: &[u8]) -> EventView<'_> {
    let mut view = EventView { name: None, data: Cow::Borrowed(&[]) };
    let mut has_data = false;
    for (field, value) in Fields::of(event) {
        match field {
            b"data" if has_data => {
                let joined = view.data.to_mut();
                joined.push(b'\n');
                joined.extend_from_slice(&event[value]);
            }
            b"data" => {
                has_data = true;
                view.data = Cow::Borrowed(&event[value]);
            }
            b"event" => view.name = std::str::from_utf8(&event[value]).ok(),
            _ => {}
        }
    }
    view
}

/// Where the data lies inside the event, when it is exactly one line: the place to splice into.
#[must_use]
pub fn data_range(event: &[u8]) -> Option<Range<usize>> {
    let mut data = Fields::of(event).filter(|(field, _)| *field == b"data");
    let (_, range) = data.next()?;
    data.next().is_none().then_some(range)
}

/// What must be remembered between two bytes to know the lines.
#[derive(Debug)]
struct Lines {
    /// The line so far has no bytes.
    is_empty: bool,
    /// The line before ended in a CR alone.
    after_lone_cr: bool,
    cr: Cr,
}

/// The last byte was a CR, and an LF may follow that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cr {
    No,
    /// It ended a line, or an event already reported.
    Line,
    /// It ended an event; the LF would be part of it.
    Event,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { is_empty: true, after_lone_cr: false, cr: Cr::No }
    }
}

impl Lines {
    /// Looks at `bytes[at..]` and adds the end of each event found.
    ///
    /// A CR that ends an event waits for its LF, so that chunk borders do not move the ends. After a line that
    /// ended in CR alone it does not wait: nobody who writes such lines sends an LF, and the last event must not
    /// hang. Should one come, it goes with the next event.
    fn scan(&mut self, bytes: &[u8], mut at: usize, ends: &mut Vec<usize>) {
        while at < bytes.len() {
            if self.cr != Cr::No {
                let has_lf = bytes[at] == b'\n';
                at += usize::from(has_lf);
                self.after_lone_cr = !has_lf;
                if self.cr == Cr::Event {
                    ends.push(at);
                }
                self.cr = Cr::No;
                continue;
            }
            let Some(length) = memchr2(b'\n', b'\r', &bytes[at..]) else {
                self.is_empty = false;
                return;
            };
            let is_blank = self.is_empty && length == 0;
            let is_cr = bytes[at + length] == b'\r';
            at += length + 1;
            self.is_empty = true;
            if is_blank && (!is_cr || self.after_lone_cr) {
                ends.push(at);
                self.cr = if is_cr { Cr::Line } else { Cr::No };
            } else if is_cr {
                self.cr = if is_blank { Cr::Event } else { Cr::Line };
            }
            self.after_lone_cr = false;
        }
    }
}

/// The fields of one event: name, and range of the value.
struct Fields<'a> {
    event: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn of(event: &'a [u8]) -> Fields<'a> {
        // A byte order mark may open the stream.
        Fields { event, at: if event.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 } }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.event.len() {
            let start = self.at;
            let end = memchr2(b'\n', b'\r', &self.event[start..]).map_or(self.event.len(), |length| start + length);
            self.at = end + 1;
            let line = &self.event[start..end];
            match memchr(b':', line) {
                // Blank lines, the second half of a CRLF, and comments.
                None if line.is_empty() => {}
                Some(0) => {}
                None => return Some((line, end..end)),
                Some(colon) => {
                    let space = usize::from(line.get(colon + 1) == Some(&b' '));
                    return Some((&line[..colon], start + colon + 1 + space..end));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
