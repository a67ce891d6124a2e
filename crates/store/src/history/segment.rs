//! The files of the spool: their names, and reading one back line by line.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use sprag_core::limits::EVENT_LINE_BYTES;

use crate::error::StoreError;

/// A closed file of the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its place in the order of recording.
    pub(super) number: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// Where the segment of a number lies.
pub(super) fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:010}.jsonl"))
}

/// The segments in a directory, oldest first. Other files are left alone.
pub(super) fn list(dir: &Path) -> Result<Vec<Segment>, StoreError> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).map_err(StoreError::file(dir))? {
        let entry = entry.map_err(StoreError::file(dir))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl")).and_then(|n| n.parse().ok());
        if let Some(number) = number.filter(|&number| path_of(dir, number) == entry.path()) {
            let bytes = entry.metadata().map_err(StoreError::file(&entry.path()))?.len();
            segments.push(Segment { number, bytes });
        }
    }
    segments.sort_by_key(|segment| segment.number);
    Ok(segments)
}

/// Hands every whole line of a file to `each`, without its end. A last line without an end was cut off by a crash and is
/// skipped; a line that is too long to be ours comes in pieces that cannot be read. A missing file has no lines.
pub(super) fn for_each_line(path: &Path, mut each: impl FnMut(&[u8])) -> Result<(), StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::file(path)(error)),
    };
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(EVENT_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let read = read.map_err(StoreError::file(path))?;
        if read == 0 {
            return Ok(());
        }
        if let Some(whole) = line.strip_suffix(b"\n") {
            each(whole);
        } else if read > EVENT_LINE_BYTES {
            each(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(content: &[u8]) -> Vec<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = path_of(dir.path(), 1);
        fs::write(&path, content).unwrap();
        let mut lines = Vec::new();
        for_each_line(&path, |line| lines.push(line.to_vec())).unwrap();
        lines
    }

    #[test]
    fn a_torn_last_line_is_skipped() {
        assert_eq!(lines_of(b"one\ntwo\nthr"), [b"one", b"two"]);
        assert_eq!(lines_of(b""), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_line_is_read_up_to_the_bound_and_in_pieces_past_it() {
        let mut content = vec![b'x'; EVENT_LINE_BYTES];
        content.push(b'\n');
        assert_eq!(lines_of(&content), [vec![b'x'; EVENT_LINE_BYTES]]);
        content.insert(0, b'x');
        assert!(lines_of(&content).iter().all(|line| line.len() <= EVENT_LINE_BYTES + 1));
        assert_eq!(lines_of(&content).len(), 2);
    }

    #[test]
    fn segments_come_in_the_order_of_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["0000000010.jsonl", "0000000009.jsonl", "8.jsonl", "notes.txt", "12345678901.jsonl", "x.jsonl"] {
            fs::write(dir.path().join(name), "abc").unwrap();
        }
        let numbers: Vec<u64> = list(dir.path()).unwrap().iter().map(|segment| segment.number).collect();
        assert_eq!(numbers, [9, 10, 12_345_678_901]);
        assert!(for_each_line(&path_of(dir.path(), 7), |_| panic!("no lines")).is_ok());
    }
}
