//! Events that a process hands over to whoever has the data directory.
//!
//! The directory belongs to one process at a time, and `sprag run` must not wait for it: it writes its events into files of
//! `handover/`. A file that is being written is a `.part`, locked by its writer; a closed one is a `.jsonl`. The holder of the
//! directory takes closed files, and parts whose writer is gone. Every event has its id, so taking a file twice puts nothing
//! on record twice; within one process none is offered twice.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use sprag_core::event::Event;
use sprag_core::limits::{EVENT_LINE_BYTES, HANDOVER_BYTES};

use super::line::{Line, read_line, write_event, write_money};
use super::segment::for_each_line;
use crate::data_dir::{create_private_dir, private_file};
use crate::error::StoreError;

const FOLDER: &str = "handover";
const CLOSED: &str = "jsonl";
const OPEN: &str = "part";

/// The writing end.
#[derive(Debug)]
pub struct Handover {
    dir: PathBuf,
    name: String,
    number: u32,
    part: Option<Part>,
    /// Bytes that wait to be taken, or fewer: what was taken is noticed when there seems to be no room.
    bytes: u64,
    line: Vec<u8>,
}

/// The file being written.
#[derive(Debug)]
struct Part {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines in it.
    bytes: u64,
}

impl Handover {
    /// Begins to hand over to the holder of a data directory. `name` is unique to this writer.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn begin(data_dir: &Path, name: &str) -> Result<Handover, StoreError> {
        let dir = data_dir.join(FOLDER);
        create_private_dir(&dir)?;
        Ok(Handover { dir, name: name.to_owned(), number: 0, part: None, bytes: 0, line: Vec::new() })
    }

    /// Writes an event down; of one that is too long, its money.
    ///
    /// # Errors
    /// When the disk does not take it, or so much waits that nobody can want more.
    pub fn write(&mut self, event: &Event) -> Result<(), StoreError> {
        let is_whole = write_event(&mut self.line, event) && self.line.len() <= EVENT_LINE_BYTES + 1;
        let is_written = is_whole || write_money(&mut self.line, event, false);
        self.line.shrink_to(EVENT_LINE_BYTES);
        if !is_written || self.line.len() > EVENT_LINE_BYTES + 1 {
            return Err(StoreError::NotRecording("an event is too long".to_owned()));
        }
        let more = self.line.len() as u64;
        if self.bytes + more > HANDOVER_BYTES {
            self.bytes = self.waiting_bytes();
        }
        if self.bytes + more > HANDOVER_BYTES {
            return Err(StoreError::NotRecording("too many events wait for the data directory".to_owned()));
        }
        let part = match &mut self.part {
            Some(part) => part,
            empty => empty.insert(open_part(&self.dir, &self.name, self.number)?),
        };
        if let Err(error) = part.file.write_all(&self.line) {
            let failed = StoreError::file(&part.path)(error);
            // Half a line must not stand before the next one. If it cannot be cut off, it stays the last of its file.
            if part.file.set_len(part.bytes).is_err() {
                let _ = self.close();
            }
            return Err(failed);
        }
        part.bytes += more;
        self.bytes += more;
        Ok(())
    }

    /// Bytes of this writer that nobody has taken yet.
    fn waiting_bytes(&self) -> u64 {
        let own = format!("{}-", self.name);
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let own = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&own)));
        own.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Closes the file being written, so that it can be taken.
    ///
    /// # Errors
    /// When it cannot be renamed; then it is taken once this process is gone.
    pub fn close(&mut self) -> Result<(), StoreError> {
        let Some(Part { file, path, .. }) = self.part.take() else { return Ok(()) };
        self.number += 1;
        let renamed = fs::rename(&path, path.with_extension(CLOSED)).map_err(StoreError::file(&path));
        drop(file);
        renamed
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// The reading end, for the holder of the data directory only.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// Files that could not be taken whole or not be deleted, and how many of their lines were taken. They still wait.
    begun: BTreeMap<PathBuf, u64>,
}

impl HandedOver {
    /// Takes what was handed over, the oldest file first. `take` says whether it has an event; if it has not, the file stays,
    /// and the next time goes on with that event.
    ///
    /// # Errors
    /// When a file can be neither read nor deleted.
    pub fn take(&mut self, data_dir: &Path, mut take: impl FnMut(Event) -> bool) -> Result<u64, StoreError> {
        let mut taken = 0;
        let waiting = waiting(&data_dir.join(FOLDER))?;
        self.begun.retain(|path, _| waiting.contains(path));
        for path in waiting {
            let before = self.begun.remove(&path).unwrap_or_default();
            let (mut number, mut done, mut has_all) = (0, before, true);
            let read = for_each_line(&path, |line| {
                number += 1;
                if number <= before || !has_all {
                    return;
                }
                if let Some(Line::Event(event)) = read_line(line) {
                    has_all = take(*event);
                    taken += u64::from(has_all);
                }
                done += u64::from(has_all);
            });
            let removed = read.and_then(|()| match has_all {
                true => fs::remove_file(&path).map_err(StoreError::file(&path)),
                false => Ok(()),
            });
            if removed.is_err() || !has_all {
                self.begun.insert(path, done);
                return removed.map(|()| taken);
            }
        }
        Ok(taken)
    }
}

/// Files that nobody writes any more.
fn waiting(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::file(dir)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::file(dir))?.path();
        let is_waiting = match path.extension().and_then(|end| end.to_str()) {
            Some(CLOSED) => true,
            Some(OPEN) => is_left(&path),
            _ => false,
        };
        if is_waiting {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the writer of a part is gone.
fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Makes a part that is locked before anybody sees it.
fn open_part(dir: &Path, name: &str, number: u32) -> Result<Part, StoreError> {
    let path = dir.join(format!("{name}-{number:06}.{OPEN}"));
    let draft = path.with_extension("new");
    // A draft is empty. What is cut off of a part later must not leave a hole, so lines go to its end.
    let made = private_file().append(true).create(true).open(&draft);
    let made = made.and_then(|file| file.lock().and_then(|()| fs::rename(&draft, &path)).map(|()| file));
    let file = made.map_err(StoreError::file(&path))?;
    Ok(Part { file, path, bytes: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::samples::step;

    fn taken(dir: &Path) -> Vec<String> {
        let mut ids = Vec::new();
        let take = |event: Event| {
            ids.push(event.id);
            true
        };
        HandedOver::default().take(dir, take).unwrap();
        ids
    }

    #[test]
    fn closed_files_are_taken_once_and_open_ones_when_their_writer_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(taken(dir.path()), Vec::<String>::new(), "nobody has handed anything over");
        let mut one = Handover::begin(dir.path(), "one").unwrap();
        one.write(&step("a", "r", 1)).unwrap();
        assert_eq!(taken(dir.path()), Vec::<String>::new(), "it is being written");
        one.close().unwrap();
        one.write(&step("b", "r", 2)).unwrap();
        assert_eq!(taken(dir.path()), ["a"]);
        assert_eq!(taken(dir.path()), Vec::<String>::new());
        // A crash takes the lock away and leaves the part.
        one.part.take();
        assert_eq!(taken(dir.path()), ["b"]);
        assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_taken_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Handover::begin(dir.path(), "w").unwrap();
        for id in ["a", "b", "c"] {
            writer.write(&step(id, "r", 1)).unwrap();
        }
        writer.close().unwrap();
        let mut reader = HandedOver::default();
        let mut seen = Vec::new();
        let count = reader.take(dir.path(), |event| {
            seen.push(event.id);
            seen.len() < 2
        });
        assert_eq!((count.unwrap(), seen), (1, vec!["a".to_owned(), "b".to_owned()]), "nothing after a refusal");
        assert_eq!(reader.take(dir.path(), |_| false).unwrap(), 0);
        let mut seen = Vec::new();
        let count = reader.take(dir.path(), |event| {
            seen.push(event.id);
            seen.len() < 2
        });
        assert_eq!((count.unwrap(), seen), (1, vec!["b".to_owned(), "c".to_owned()]), "what was taken is not offered");
        assert_eq!(taken(dir.path()), ["a", "b", "c"], "another process has taken nothing yet");
    }

    #[test]
    fn a_file_that_cannot_be_deleted_is_not_taken_again() {
        let dir = tempfile::tempdir().unwrap();
        Handover::begin(dir.path(), "w").unwrap();
        let path = dir.path().join(FOLDER).join("w-000000.jsonl");
        let mut line = Vec::new();
        assert!(write_event(&mut line, &step("a", "r", 1)));
        fs::write(&path, &line).unwrap();
        let mut reader = HandedOver::default();
        // It is gone before it can be deleted, and then there again.
        let gone = reader.take(dir.path(), |_| fs::remove_file(&path).is_ok());
        assert!(gone.is_err(), "{gone:?}");
        fs::write(&path, &line).unwrap();
        assert_eq!(reader.take(dir.path(), |_| panic!("it was taken")).unwrap(), 0);
        assert!(!path.exists());
    }

    #[test]
    fn there_is_an_end_to_what_may_wait() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Handover::begin(dir.path(), "w").unwrap();
        let mut line = Vec::new();
        assert!(write_event(&mut line, &step("a", "r", 1)));
        writer.bytes = HANDOVER_BYTES - line.len() as u64;
        assert!(writer.write(&step("a", "r", 1)).is_ok());
        let waits = File::create(dir.path().join(FOLDER).join("w-000009.jsonl")).unwrap();
        waits.set_len(HANDOVER_BYTES - line.len() as u64).unwrap();
        assert!(writer.write(&step("b", "r", 1)).is_err());
        File::create(dir.path().join(FOLDER).join("x-000000.jsonl")).unwrap().set_len(HANDOVER_BYTES).unwrap();
        waits.set_len(0).unwrap();
        assert!(writer.write(&step("b", "r", 1)).is_ok(), "what was taken makes room");
    }

    #[test]
    fn of_a_long_event_the_money_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Handover::begin(dir.path(), "w").unwrap();
        let long = Event { path: "x".repeat(EVENT_LINE_BYTES), ..step("a", "r", 1) };
        writer.write(&long).unwrap();
        writer.close().unwrap();
        let mut costs = Vec::new();
        let take = |event: Event| {
            costs.push((event.id, event.cost));
            true
        };
        HandedOver::default().take(dir.path(), take).unwrap();
        assert_eq!(costs, [(long.id, long.cost)]);
    }

    #[test]
    fn half_a_line_spoils_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Handover::begin(dir.path(), "w").unwrap();
        writer.write(&step("a", "r", 1)).unwrap();
        // The disk takes half a line, and then nothing, not even a cut.
        let part = writer.part.as_mut().unwrap();
        part.file.write_all(b"{\"event\":{").unwrap();
        part.file = File::open(&part.path).unwrap();
        assert!(writer.write(&step("b", "r", 2)).is_err());
        writer.write(&step("c", "r", 3)).unwrap();
        // It can be cut, and the next line stands where it was.
        let part = writer.part.as_mut().unwrap();
        part.file.write_all(b"{\"event\":{").unwrap();
        part.file.set_len(part.bytes).unwrap();
        writer.write(&step("d", "r", 4)).unwrap();
        drop(writer);
        assert_eq!(taken(dir.path()), ["a", "c", "d"]);
    }
}
