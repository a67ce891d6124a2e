//! Gemini's other kind of stream: one JSON array whose elements come one after the other.
//!
//! Each element is treated like an event. What is added stands as an element of its own, so that the array stays JSON.

use bytes::{Bytes, BytesMut};

use super::document::Document;
use super::watch::Stopped;
use super::{Flow, StreamFilter, applied};
use crate::limits::SSE_EVENT_BYTES;

const COMMA: Bytes = Bytes::from_static(b",");

/// Cuts an array into its elements.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// What has come of the element that is open.
    open: BytesMut,
    depth: usize,
    /// At which depth elements stand: inside the array, or at the top if there is none.
    top: Option<usize>,
    is_text: bool,
    is_escaping: bool,
}

/// What an array is made of.
#[derive(Debug, PartialEq, Eq)]
enum Slice {
    /// What stands between elements.
    Between(Bytes),
    /// A whole element.
    Element(Bytes),
    /// The bracket that closes the array.
    End(Bytes),
}

impl StreamFilter {
    /// Takes the next bytes of a stream that is a JSON array and not events, cut anywhere. Closed by
    /// [`StreamFilter::end`] as well. When stopped, the array is left where its last element can be written.
    pub fn push_array(&mut self, bytes: &[u8], out: &mut Vec<Bytes>) -> Flow {
        let whole = || Bytes::copy_from_slice(bytes);
        self.pass(whole, out, |filter, out| {
            if filter.unread.is_some() {
                return filter.unread(bytes, out);
            }
            let slices = filter.elements.push(bytes);
            for slice in slices {
                filter.slice(slice, out)?;
            }
            if filter.elements.open.len() > SSE_EVENT_BYTES {
                let rest = filter.elements.open.split().freeze();
                return filter.unread(&rest, out);
            }
            Ok(())
        })
    }

    /// The array was cut off: gives what came of its last element.
    pub(super) fn end_array(&mut self, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        let rest = self.elements.open.split().freeze();
        if !rest.is_empty() {
            let said = self.said_plainly(&rest)?;
            out.push(said.map_or(rest, Bytes::from));
        }
        Ok(())
    }

    fn slice(&mut self, slice: Slice, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        match slice {
            Slice::Between(bytes) => {
                let said = self.said_plainly(&bytes)?;
                out.push(said.map_or(bytes, Bytes::from));
                Ok(())
            }
            Slice::Element(element) => self.element(element, out),
            Slice::End(bracket) => {
                let mut added = Vec::new();
                let result = self.end_all(&mut added);
                added.iter().for_each(|event| out.extend([COMMA, bare(event)]));
                out.push(if result.is_ok() { bracket } else { COMMA });
                result
            }
        }
    }

    fn element(&mut self, element: Bytes, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        let Some(document) = Document::read(&element) else {
            let said = self.said_plainly(&element)?;
            out.push(said.map_or_else(|| element.clone(), Bytes::from));
            return Ok(());
        };
        let mut added = Vec::new();
        let result = self.look(&document, None, true, &mut added);
        added.iter().for_each(|event| out.extend([bare(event), COMMA]));
        let (edits, _) = result?;
        out.push(if edits.is_empty() { element.clone() } else { applied(&element, edits).into() });
        Ok(())
    }
}

impl Elements {
    /// Whether the stream is an array.
    pub(super) fn is_begun(&self) -> bool {
        self.top.is_some()
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<Slice> {
        let mut slices = Vec::new();
        let mut start = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.is_escaping {
                self.is_escaping = false;
                continue;
            }
            match byte {
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => self.is_escaping = *byte == b'\\',
                b'{' | b'[' => {
                    let top = *self.top.get_or_insert(usize::from(*byte == b'['));
                    self.depth += 1;
                    if self.depth == top + 1 {
                        slices.push(Slice::Between(Bytes::copy_from_slice(&bytes[start..at])));
                        start = at;
                    }
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.top == Some(self.depth) {
                        self.open.extend_from_slice(&bytes[start..=at]);
                        slices.push(Slice::Element(self.open.split().freeze()));
                        start = at + 1;
                    } else if self.depth == 0 {
                        slices.push(Slice::Between(Bytes::copy_from_slice(&bytes[start..at])));
                        slices.push(Slice::End(Bytes::copy_from_slice(&bytes[at..=at])));
                        start = at + 1;
                    }
                }
                _ => {}
            }
        }
        if self.top.is_some_and(|top| self.depth > top) {
            self.open.extend_from_slice(&bytes[start..]);
        } else {
            slices.push(Slice::Between(Bytes::copy_from_slice(&bytes[start..])));
        }
        slices.retain(|slice| !matches!(slice, Slice::Between(bytes) if bytes.is_empty()));
        slices
    }
}

/// The data of an event of our own.
fn bare(event: &Bytes) -> Bytes {
    let start = if event.starts_with(b"data: ") { 6 } else { 0 };
    event.slice(start..event.trim_ascii_end().len())
}
