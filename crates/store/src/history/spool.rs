//! Events on their way to the database, in append-only files.
//!
//! An event is written with one `write` before the caller goes on, so it survives the end of the process by any
//! means; it does not wait for the disk. When there is no room, money goes first: detail is dropped and counted, and
//! while nothing can be written at all, money is held in memory until it can. Losing power may lose the last seconds.
//! The beginnings of calls, which stand among the events, are the first to be left out.

mod kept;
mod noted;

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use foldhash::fast::RandomState;
use sprag_core::event::Event;
use sprag_core::limits::{EVENT_LINE_BYTES, OPEN_CALLS, SPOOL_HELD_BYTES};
use xxhash_rust::xxh3::xxh3_128;

use self::kept::Kept;
use self::noted::Noted;
use super::complaint::Complaint;
use super::line::{Line, read_line, write_event, write_money, write_open};
use super::open_calls::OpenCall;
use super::segment::{self, Segment};
use crate::data_dir::{create_private_dir, private_file};
use crate::error::StoreError;
use crate::shards::with_lock;

/// What became of a recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Written, and safe from the end of the process.
    Whole,
    /// Only its money was written: the spool is full, or the event too long.
    MoneyOnly,
    /// Its money is held in memory until the disk takes it.
    Held,
    /// Nothing of it was kept. No total depended on it.
    Dropped,
    /// Nothing of it was kept, money included: the disk fails and the memory set aside for that is full.
    Lost,
}

/// When a line must be in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before the caller goes on.
    Now,
    /// With the next [`Spool::write_out`], for which the caller sees to it.
    Together,
}

/// What has been recorded since the start, and what stands in its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Why recording has stopped; absent while it works.
    pub problem: Option<String>,
    /// Bytes waiting for the database.
    pub bytes: u64,
    /// Files that they lie in.
    pub segments: usize,
    /// Bytes of money held in memory.
    pub held_bytes: usize,
    /// Events written whole.
    pub whole: u64,
    /// Events of which only the money was kept, held ones included.
    pub money_only: u64,
    /// Events dropped on which no total depends.
    pub dropped: u64,
    /// Events lost with their money.
    pub lost: u64,
    /// Calls on record as under way.
    pub open_calls: usize,
    /// Calls that went on without that: there was no room, or the disk took nothing.
    pub unopened: u64,
}

/// The writing end, shared by all requests, and the closed files for the one thread that empties them.
pub(super) struct Spool {
    dir: PathBuf,
    /// The number of the first file that this process writes.
    first_own: u64,
    max_bytes: u64,
    writer: Mutex<Writer>,
}

struct Writer {
    segment_bytes: u64,
    /// The number of the file being written, or to be opened by the next write.
    number: u64,
    file: Option<File>,
    /// Bytes of whole lines in `file`.
    bytes: u64,
    closed: VecDeque<Segment>,
    closed_bytes: u64,
    /// What is to stand in `file` next.
    noted: Noted,
    /// What the lines of `file` and of closed files say.
    kept: Kept,
    /// Whole lines that could not be written.
    held: Vec<u8>,
    /// Hashes of the ids of calls that are on record as under way. Also those whose event was lost: on disk they are open.
    open: HashSet<u128, RandomState>,
    problem: Option<String>,
    complaint: Complaint,
    status: SpoolStatus,
}

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Spool {
    /// Opens the directory; what an earlier process left in it counts as closed.
    pub(super) fn open(dir: &Path, max_bytes: u64, segment_bytes: u64) -> Result<Spool, StoreError> {
        create_private_dir(dir)?;
        let closed = VecDeque::from(segment::list(dir)?);
        let writer = Writer {
            segment_bytes,
            number: closed.back().map_or(1, |last| last.number + 1),
            file: None,
            bytes: 0,
            closed_bytes: closed.iter().map(|segment| segment.bytes).sum(),
            closed,
            noted: Noted::default(),
            kept: Kept::default(),
            held: Vec::new(),
            open: HashSet::default(),
            problem: None,
            complaint: Complaint::default(),
            status: SpoolStatus::default(),
        };
        Ok(Spool { dir: dir.to_owned(), first_own: writer.number, max_bytes, writer: Mutex::new(writer) })
    }

    /// Writes down that a call is under way, if there is room. The second value is that of [`Spool::record`].
    pub(super) fn open_call(&self, call: OpenCall, when: When) -> (bool, bool) {
        LINE.with_borrow_mut(|line| {
            let is_written = write_open(line, &call) && line.len() <= EVENT_LINE_BYTES + 1;
            let outcome = with_lock(&self.writer, |writer| {
                let closed_before = writer.closed.len();
                let has_room = is_written && writer.total_bytes() + line.len() as u64 <= self.max_bytes;
                let is_open = has_room && writer.open_call(&self.dir, call, line, when);
                writer.status.unopened += u64::from(!is_open);
                (is_open, writer.closed.len() > closed_before)
            });
            line.shrink_to(EVENT_LINE_BYTES);
            outcome
        })
    }

    /// Writes an event down. The second value says that a file was closed and can be emptied.
    pub(super) fn record(&self, event: &Event, when: When) -> (Recorded, bool) {
        LINE.with_borrow_mut(|line| {
            let is_written = write_event(line, event) && line.len() <= EVENT_LINE_BYTES + 1;
            let outcome = with_lock(&self.writer, |writer| {
                let closed_before = writer.closed.len();
                let has_room = is_written && writer.total_bytes() + line.len() as u64 <= self.max_bytes;
                let recorded = writer.record(&self.dir, event, line, has_room, when);
                writer.status.count(recorded);
                (recorded, writer.closed.len() > closed_before)
            });
            line.shrink_to(EVENT_LINE_BYTES);
            outcome
        })
    }

    /// Writes what was noted, with one `write`. True if a file was closed and can be emptied.
    pub(super) fn write_out(&self) -> bool {
        with_lock(&self.writer, |writer| {
            let closed_before = writer.closed.len();
            // What could not be written is held, as if it had been written by itself.
            let _ = writer.write_out(&self.dir);
            writer.closed.len() > closed_before
        })
    }

    /// Whether a file was left behind by an earlier process.
    pub(super) fn is_inherited(&self, segment: Segment) -> bool {
        segment.number < self.first_own
    }

    /// Tries to write again after a failure.
    pub(super) fn recover(&self) -> Result<(), StoreError> {
        with_lock(&self.writer, |writer| writer.recover(&self.dir).map_err(StoreError::NotRecording))
    }

    /// Closes the file being written, so that all recorded so far can be emptied.
    pub(super) fn close_current(&self) {
        with_lock(&self.writer, |writer| {
            let _ = writer.write_out(&self.dir);
            if writer.bytes > 0 {
                writer.close_current();
            }
        });
    }

    /// The oldest closed file.
    pub(super) fn oldest_closed(&self) -> Option<(Segment, PathBuf)> {
        let segment = with_lock(&self.writer, |writer| writer.closed.front().copied())?;
        Some((segment, segment::path_of(&self.dir, segment.number)))
    }

    /// What a closed file says, where that is still in memory. It is given once; after that the file says it.
    pub(super) fn take_lines(&self, segment: Segment) -> Option<Vec<Line>> {
        with_lock(&self.writer, |writer| writer.kept.take(segment.number))
    }

    /// Whether more comes in than is taken out.
    pub(super) fn is_behind(&self) -> bool {
        with_lock(&self.writer, |writer| writer.closed.len() > 1)
    }

    /// Deletes a closed file whose events are in the database.
    pub(super) fn remove(&self, segment: Segment) {
        let path = segment::path_of(&self.dir, segment.number);
        if let Err(error) = fs::remove_file(&path) {
            // Harmless but for the space: the next start reads it again and finds every event known.
            tracing::warn!(path = %path.display(), %error, "cannot delete a file of the spool");
        }
        with_lock(&self.writer, |writer| {
            writer.closed.retain(|other| other.number != segment.number);
            writer.closed_bytes = writer.closed.iter().map(|other| other.bytes).sum();
        });
    }

    pub(super) fn status(&self) -> SpoolStatus {
        with_lock(&self.writer, |writer| SpoolStatus {
            problem: writer.problem.clone(),
            bytes: writer.total_bytes(),
            segments: writer.closed.len() + usize::from(writer.file.is_some()),
            held_bytes: writer.held.len(),
            open_calls: writer.open.len(),
            ..writer.status.clone()
        })
    }
}

impl Writer {
    fn open_call(&mut self, dir: &Path, call: OpenCall, line: &[u8], when: When) -> bool {
        let id = xxh3_128(call.id.as_bytes());
        let is_one_too_many = self.open.len() >= OPEN_CALLS && !self.open.contains(&id);
        if self.problem.is_some() || is_one_too_many {
            return false;
        }
        let said = self.kept.has_room(line.len()).then(|| Line::Open(Box::new(call)));
        // Before it is written: should that fail, alone or together with others, it is taken out again.
        let is_new = self.open.insert(id);
        if let Err(error) = self.append(dir, line, said, when) {
            if is_new {
                self.open.remove(&id);
            }
            self.fail(&error);
            return false;
        }
        true
    }

    fn record(&mut self, dir: &Path, event: &Event, line: &mut Vec<u8>, has_room: bool, when: When) -> Recorded {
        let id = xxh3_128(event.id.as_bytes());
        let is_open = self.open.contains(&id);
        let recorded = self.record_as(dir, event, line, (has_room, is_open), when);
        if is_open && recorded != Recorded::Lost {
            self.open.remove(&id);
        }
        recorded
    }

    fn record_as(
        &mut self,
        dir: &Path,
        event: &Event,
        line: &mut Vec<u8>,
        (has_room, is_open): (bool, bool),
        when: When,
    ) -> Recorded {
        if self.problem.is_none() && has_room {
            let said = self.kept.has_room(line.len()).then(|| Line::Event(Box::new(event.clone())));
            match self.append(dir, line, said, when) {
                Ok(()) => return Recorded::Whole,
                Err(error) => self.fail(&error),
            }
        }
        if !write_money(line, event, is_open) {
            return Recorded::Dropped;
        }
        if self.problem.is_none() {
            match self.append(dir, line, None, when) {
                Ok(()) => return Recorded::MoneyOnly,
                Err(error) => self.fail(&error),
            }
        }
        self.hold(line)
    }

    fn hold(&mut self, line: &[u8]) -> Recorded {
        if self.held.len() + line.len() > SPOOL_HELD_BYTES {
            return Recorded::Lost;
        }
        self.held.extend_from_slice(line);
        Recorded::Held
    }

    /// Puts a line behind all others. `said` is what it says; absent where that is for the reader to find out.
    fn append(&mut self, dir: &Path, line: &[u8], said: Option<Line>, when: When) -> io::Result<()> {
        if when == When::Together && self.noted.has_room(line.len()) {
            self.noted.add(line, said);
            return Ok(());
        }
        self.write_out(dir)?;
        self.write(dir, line)?;
        self.kept.add(said, line.len());
        self.close_if_full();
        Ok(())
    }

    /// Writes what was noted. Where that fails, what money depends on is held and the rest is dropped.
    fn write_out(&mut self, dir: &Path) -> io::Result<()> {
        if self.noted.is_empty() {
            return Ok(());
        }
        let (bytes, mut lines) = self.noted.take();
        if let Err(error) = self.write(dir, &bytes) {
            self.fail(&error);
            bytes.split_inclusive(|&byte| byte == b'\n').for_each(|line| self.give_up(line));
            return Err(error);
        }
        for line in lines.drain(..) {
            self.kept.add(line.said, line.bytes);
        }
        self.noted.reuse(bytes, lines);
        self.close_if_full();
        Ok(())
    }

    /// A noted line that cannot be written, after it was counted as if it had been.
    fn give_up(&mut self, line: &[u8]) {
        match read_line(line) {
            Some(Line::Open(call)) => {
                self.open.remove(&xxh3_128(call.id.as_bytes()));
                self.status.unopened += 1;
            }
            Some(Line::Event(event)) => {
                self.status.whole = self.status.whole.saturating_sub(1);
                let mut money = Vec::new();
                // As if it were open: whether its beginning is on disk is no longer known.
                let recorded =
                    if write_money(&mut money, &event, true) { self.hold(&money) } else { Recorded::Dropped };
                if recorded == Recorded::Lost {
                    self.open.insert(xxh3_128(event.id.as_bytes()));
                }
                self.status.count(recorded);
            }
            None => {}
        }
    }

    /// Writes whole lines, all of them or none.
    fn write(&mut self, dir: &Path, lines: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => {
                let path = segment::path_of(dir, self.number);
                empty.insert(private_file().append(true).create_new(true).open(path)?)
            }
        };
        if let Err(error) = file.write_all(lines) {
            // Half a line must not stand before the next one. If it cannot be cut off, it stays the last of its file.
            if file.set_len(self.bytes).is_err() {
                self.close_current();
            }
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        Ok(())
    }

    fn close_if_full(&mut self) {
        if self.bytes >= self.segment_bytes {
            self.close_current();
        }
    }

    fn close_current(&mut self) {
        if self.file.take().is_some() {
            self.closed.push_back(Segment { number: self.number, bytes: self.bytes });
            self.kept.close(self.number);
            self.closed_bytes += self.bytes;
            self.number += 1;
            self.bytes = 0;
        }
    }

    fn fail(&mut self, error: &io::Error) {
        if self.complaint.is_due() {
            tracing::error!(%error, "recording has stopped; requests go on, and their money is held in memory");
        }
        self.problem = Some(error.to_string());
    }

    fn recover(&mut self, dir: &Path) -> Result<(), String> {
        if self.problem.is_none() {
            return Ok(());
        }
        // An empty line means nothing to the reader and shows whether the disk takes anything.
        let held = std::mem::take(&mut self.held);
        let probe: &[u8] = if held.is_empty() { b"\n" } else { &held };
        match self.append(dir, probe, None, When::Now) {
            Ok(()) => {
                self.problem = None;
                tracing::info!(held_bytes = held.len(), "recording again");
                Ok(())
            }
            Err(error) => {
                self.held = held;
                self.fail(&error);
                Err(error.to_string())
            }
        }
    }

    fn total_bytes(&self) -> u64 {
        self.closed_bytes + self.bytes + self.noted.size_bytes() as u64
    }
}

impl SpoolStatus {
    fn count(&mut self, recorded: Recorded) {
        match recorded {
            Recorded::Whole => self.whole += 1,
            Recorded::MoneyOnly | Recorded::Held => self.money_only += 1,
            Recorded::Dropped => self.dropped += 1,
            Recorded::Lost => self.lost += 1,
        }
    }
}

#[cfg(test)]
mod tests;
