//! Events that a process hands over to whoever has the data directory.
//!
//! The directory belongs to one process at a time, and `sprag run` must not wait for it: it writes its events into files of
//! `handover/`. A file that is being written is a `.part`, locked by its writer; a closed one is a `.jsonl`. The holder of the
//! directory takes closed files, and parts whose writer is gone. Every event has its id, so taking a file twice counts
//! nothing twice.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use sprag_core::event::Event;
use sprag_core::limits::{EVENT_LINE_BYTES, HANDOVER_BYTES};

use super::line::{Line, read_line, write_event};
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
    part: Option<(File, PathBuf)>,
    /// Bytes written so far.
    bytes: u64,
    line: Vec<u8>,
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

    /// Writes an event down.
    ///
    /// # Errors
    /// When the disk does not take it, or so much was written that nobody can want more.
    pub fn write(&mut self, event: &Event) -> Result<(), StoreError> {
        if !write_event(&mut self.line, event) || self.line.len() > EVENT_LINE_BYTES + 1 {
            return Err(StoreError::NotRecording("an event is too long".to_owned()));
        }
        if self.bytes + self.line.len() as u64 > HANDOVER_BYTES {
            return Err(StoreError::NotRecording("too many events wait for the data directory".to_owned()));
        }
        let (file, path) = match &mut self.part {
            Some(part) => part,
            empty => empty.insert(open_part(&self.dir, &self.name, self.number)?),
        };
        file.write_all(&self.line).map_err(StoreError::file(path))?;
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Closes the file being written, so that it can be taken.
    ///
    /// # Errors
    /// When it cannot be renamed; then it is taken once this process is gone.
    pub fn close(&mut self) -> Result<(), StoreError> {
        let Some((file, path)) = self.part.take() else { return Ok(()) };
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

/// Takes what was handed over, the oldest file first. `take` says whether it has an event; if it has not, the file stays. For the
/// holder of the data directory only.
///
/// # Errors
/// When a file can be neither read nor deleted.
pub fn take_handed_over(data_dir: &Path, mut take: impl FnMut(Event) -> bool) -> Result<u64, StoreError> {
    let dir = data_dir.join(FOLDER);
    let mut taken = 0;
    for path in waiting(&dir)? {
        let mut has_all = true;
        for_each_line(&path, |line| {
            if let Some(Line::Event(event)) = read_line(line).filter(|_| has_all) {
                has_all = take(*event);
                taken += u64::from(has_all);
            }
        })?;
        if !has_all {
            break;
        }
        fs::remove_file(&path).map_err(StoreError::file(&path))?;
    }
    Ok(taken)
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
fn open_part(dir: &Path, name: &str, number: u32) -> Result<(File, PathBuf), StoreError> {
    let path = dir.join(format!("{name}-{number:06}.{OPEN}"));
    let draft = path.with_extension("new");
    let failed = StoreError::file(&path);
    let made = private_file().write(true).create(true).truncate(true).open(&draft);
    let made = made.and_then(|file| file.lock().and_then(|()| fs::rename(&draft, &path)).map(|()| file));
    made.map(|file| (file, path.clone())).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::samples::step;

    fn taken(dir: &Path) -> Vec<String> {
        let mut ids = Vec::new();
        take_handed_over(dir, |event| {
            ids.push(event.id);
            true
        })
        .unwrap();
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
        let mut seen = 0;
        let count = take_handed_over(dir.path(), |_| {
            seen += 1;
            seen < 2
        });
        assert_eq!((count.unwrap(), seen), (1, 2), "nothing is offered after a refusal");
        assert_eq!(taken(dir.path()), ["a", "b", "c"], "the whole file comes again");
    }

    #[test]
    fn there_is_an_end_to_what_may_wait() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Handover::begin(dir.path(), "w").unwrap();
        let mut line = Vec::new();
        assert!(write_event(&mut line, &step("a", "r", 1)));
        writer.bytes = HANDOVER_BYTES - line.len() as u64;
        assert!(writer.write(&step("a", "r", 1)).is_ok());
        assert!(writer.write(&step("b", "r", 1)).is_err());
    }
}
