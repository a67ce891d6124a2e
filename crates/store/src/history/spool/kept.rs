//! What files of the spool say, as far as it is still in memory.
//!
//! An event is on disk for the case that the process ends. Mostly it does not, and then whoever empties a file need not read what was written
//! a moment ago: its lines are here. Where they are not, because there are too many or it was another process that wrote them, the file is read.

use sprag_core::limits::SPOOL_KEPT_BYTES;

use crate::history::line::Line;

/// Lines of files, by the number of their file. Counted by what they take there.
#[derive(Debug, Default)]
pub(super) struct Kept {
    current: Lines,
    closed: Vec<(u64, Lines)>,
}

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<Line>,
    bytes: usize,
    /// Not all of the file's lines are here, so none is of use.
    is_broken: bool,
}

impl Kept {
    /// Whether the next line of the file being written can be kept.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let kept: usize = self.closed.iter().map(|(_, lines)| lines.bytes).sum();
        !self.current.is_broken && kept + self.current.bytes + bytes <= SPOOL_KEPT_BYTES
    }

    /// The file being written has another line. None: it is not kept, and so none of that file is.
    pub(super) fn add(&mut self, line: Option<Line>, bytes: usize) {
        match line {
            Some(line) if self.has_room(bytes) => {
                self.current.lines.push(line);
                self.current.bytes += bytes;
            }
            _ => self.current = Lines { is_broken: true, ..Lines::default() },
        }
    }

    /// The file being written is closed.
    pub(super) fn close(&mut self, number: u64) {
        let lines = std::mem::take(&mut self.current);
        if !lines.is_broken {
            self.closed.push((number, lines));
        }
    }

    /// All lines of a closed file, in their order. They are no longer kept.
    pub(super) fn take(&mut self, number: u64) -> Option<Vec<Line>> {
        let at = self.closed.iter().position(|(other, _)| *other == number)?;
        Some(self.closed.swap_remove(at).1.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::samples::step;

    fn line(id: &str) -> Option<Line> {
        Some(Line::Event(Box::new(step(id, "r", 1))))
    }

    #[test]
    fn lines_are_kept_by_file_up_to_the_bound_and_no_further() {
        let mut kept = Kept::default();
        kept.add(line("a"), SPOOL_KEPT_BYTES - 10);
        kept.close(1);
        assert!(kept.has_room(10) && !kept.has_room(11));
        kept.add(line("b"), 10);
        kept.close(2);
        kept.add(line("c"), 1);
        kept.close(3);
        assert!(kept.take(3).is_none(), "one past the bound");
        assert_eq!(kept.take(2), Some(vec![line("b").unwrap()]));
        assert!(kept.take(2).is_none(), "once");
        kept.add(line("d"), 10);
        assert_eq!(kept.take(1), Some(vec![line("a").unwrap()]));
        kept.close(4);
        assert_eq!(kept.take(4), Some(vec![line("d").unwrap()]));
    }

    #[test]
    fn a_file_of_which_a_line_is_missing_is_read() {
        let mut kept = Kept::default();
        kept.add(line("a"), 10);
        kept.add(None, 10);
        kept.add(line("b"), 10);
        kept.close(1);
        assert!(kept.take(1).is_none());
    }
}
