//! One event as it is written: where its data stands, and the same event with other data.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use crate::wire::Mold;

/// One event.
#[derive(Debug)]
pub(super) struct Frame<'e> {
    event: &'e [u8],
    /// The data, its lines joined by line feeds.
    pub(super) data: Cow<'e, [u8]>,
    /// The `event:` field.
    pub(super) name: Option<&'e [u8]>,
    lines: Vec<Line>,
}

/// A line with data: all of it with its end, and the data.
#[derive(Debug)]
struct Line {
    whole: Range<usize>,
    data: Range<usize>,
}

impl<'e> Frame<'e> {
    pub(super) fn read(event: &'e [u8]) -> Frame<'e> {
        let mut frame = Frame { event, data: Cow::Borrowed(&[]), name: None, lines: Vec::new() };
        // A byte order mark may open the stream.
        let mut start = if event.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        while start < event.len() {
            let end = memchr2(b'\n', b'\r', &event[start..]).map_or(event.len(), |length| start + length);
            let is_pair = event[end..].starts_with(b"\r\n");
            let next = (end + 1 + usize::from(is_pair)).min(event.len());
            let line = &event[start..end];
            let (field, value) = match line.iter().position(|byte| *byte == b':') {
                Some(colon) => (&line[..colon], start + colon + 1),
                None => (line, end),
            };
            let value = value + usize::from(value < end && event[value] == b' ');
            match field {
                b"data" => frame.lines.push(Line { whole: start..next, data: value..end }),
                b"event" => frame.name = Some(&event[value..end]),
                _ => {}
            }
            start = next;
        }
        for (place, line) in frame.lines.iter().enumerate() {
            if place == 0 {
                frame.data = Cow::Borrowed(&event[line.data.clone()]);
            } else {
                let joined = frame.data.to_mut();
                joined.push(b'\n');
                joined.extend_from_slice(&event[line.data.clone()]);
            }
        }
        frame
    }

    /// Whether the blank line is there that ends an event.
    pub(super) fn is_ended(&self) -> bool {
        without_line_end(self.event).is_some_and(|rest| rest.is_empty() || without_line_end(rest).is_some())
    }

    /// The event as one that others may be like but for the text at `inside` in its data; None when that is not one line.
    pub(super) fn mold(&self, inside: Range<usize>) -> Option<Mold> {
        let [line] = self.lines.as_slice() else { return None };
        let at = line.data.start;
        Some(Mold::of(self.event, at + inside.start..at + inside.end))
    }

    /// The event with other data. JSON is put into one line.
    pub(super) fn with_data(&self, data: &[u8], is_json: bool) -> Vec<u8> {
        let mut event = Vec::with_capacity(self.event.len() + data.len());
        let mut copied = 0;
        for (place, line) in self.lines.iter().enumerate() {
            if place > 0 {
                event.extend_from_slice(&self.event[copied..line.whole.start]);
            } else {
                event.extend_from_slice(&self.event[copied..line.data.start]);
                if event.ends_with(b"data") {
                    event.extend_from_slice(b": ");
                }
                write_lines(data, is_json, &mut event);
                event.extend_from_slice(&self.event[line.data.end..line.whole.end]);
            }
            copied = line.whole.end;
        }
        event.extend_from_slice(&self.event[copied..]);
        event
    }
}

fn write_lines(data: &[u8], is_json: bool, event: &mut Vec<u8>) {
    for (place, line) in data.split(|byte| *byte == b'\n').enumerate() {
        if place > 0 {
            event.extend_from_slice(if is_json { b" " } else { b"\ndata: " });
        }
        event.extend_from_slice(line);
    }
}

fn without_line_end(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n")).or_else(|| bytes.strip_suffix(b"\r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_data_changes() {
        let cases = [
            ("data: {}\n\n", "{}", "data: new\n\n"),
            ("event: a\r\ndata:{}\r\nid: 7\r\n\r\n", "{}", "event: a\r\ndata:new\r\nid: 7\r\n\r\n"),
            ("data: {\rdata: }\r: note\r\r", "{\n}", "data: new\r: note\r\r"),
            ("data: {\n: note\ndata: 1\nid: 1\ndata: }\n\n", "{\n1\n}", "data: new\n: note\nid: 1\n\n"),
            ("\u{feff}data: 1", "1", "\u{feff}data: new"),
            ("data\ndata: 1\n\n", "\n1", "data: new\n\n"),
        ];
        for (event, data, changed) in cases {
            let frame = Frame::read(event.as_bytes());
            assert_eq!(frame.data.as_ref(), data.as_bytes(), "{event:?}");
            assert_eq!(String::from_utf8(frame.with_data(b"new", true)).unwrap(), changed);
        }
    }

    #[test]
    fn new_lines_in_the_data_stay_data() {
        let frame = Frame::read(b"data: a\ndata: b\n\n");
        assert_eq!(frame.with_data(b"{\n}", true), b"data: { }\n\n");
        assert_eq!(frame.with_data(b"x\ny", false), b"data: x\ndata: y\n\n");
    }

    #[test]
    fn an_event_ends_in_a_blank_line() {
        for event in ["data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", "data: a\n\r\n", "\n"] {
            assert!(Frame::read(event.as_bytes()).is_ended(), "{event:?}");
        }
        for event in ["data: a", "data: a\n", "data: a\r\n"] {
            assert!(!Frame::read(event.as_bytes()).is_ended(), "{event:?}");
        }
        assert_eq!(Frame::read(b"event: ping\ndata: {}\n\n").name, Some(&b"ping"[..]));
    }
}
