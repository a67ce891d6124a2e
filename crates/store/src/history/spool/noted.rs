//! Lines that are about to be written together, each with what it says.

use sprag_core::limits::SPOOL_NOTED_BYTES;

use crate::history::line::Line;

/// Whole lines in their order.
#[derive(Debug, Default)]
pub(super) struct Noted {
    bytes: Vec<u8>,
    lines: Vec<NotedLine>,
}

#[derive(Debug)]
pub(super) struct NotedLine {
    pub(super) bytes: usize,
    /// Absent where that is for the reader of the file to find out.
    pub(super) said: Option<Line>,
}

impl Noted {
    /// Whether another line can wait for those after it.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= SPOOL_NOTED_BYTES
    }

    pub(super) fn add(&mut self, line: &[u8], said: Option<Line>) {
        self.bytes.extend_from_slice(line);
        self.lines.push(NotedLine { bytes: line.len(), said });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many bytes wait.
    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All of it, to be written or given up.
    pub(super) fn take(&mut self) -> (Vec<u8>, Vec<NotedLine>) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.lines))
    }

    /// Gives emptied room back, to be used again.
    pub(super) fn reuse(&mut self, mut bytes: Vec<u8>, mut lines: Vec<NotedLine>) {
        if self.lines.is_empty() {
            bytes.clear();
            lines.clear();
            (self.bytes, self.lines) = (bytes, lines);
        }
    }
}
