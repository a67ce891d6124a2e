//! Files as lines: decompressed where they are compressed, one line in memory at a time.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sprag_core::limits::REPLAY_LINE_BYTES;

/// How the files of a folder end that are read.
const ENDINGS: [&str; 3] = [".jsonl", ".jsonl.gz", ".jsonl.zst"];
/// Folders below a named one that are looked into.
const FOLDER_DEPTH: usize = 6;
const READ_BYTES: usize = 1 << 18;

/// The lines of one file.
pub struct Lines<'r> {
    reader: Box<dyn BufRead + 'r>,
    line: Vec<u8>,
    number: u64,
    most_bytes: usize,
}

/// A line that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It does not fit into memory within bounds.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// It is not text.
    #[error("not UTF-8 text")]
    NotText,
}

impl<'r> Lines<'r> {
    /// The lines of a file that may be compressed with gzip or zstd: its first bytes tell.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(file: impl Read + 'r) -> io::Result<Lines<'r>> {
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let reader: Box<dyn BufRead + 'r> = match file.fill_buf()? {
            [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(file))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                Box::new(BufReader::with_capacity(READ_BYTES, zstd::Decoder::with_buffer(file)?))
            }
            _ => Box::new(file),
        };
        Ok(Lines { reader, line: Vec::new(), number: 0, most_bytes: REPLAY_LINE_BYTES })
    }

    /// The next line that is not empty, with its number.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, Result<&str, Unread>)>> {
        loop {
            self.line.clear();
            let most = self.most_bytes as u64 + 1;
            if self.reader.by_ref().take(most).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_whole = self.line.last() == Some(&b'\n');
            if !is_whole && self.line.len() > self.most_bytes {
                skip_line(&mut self.reader)?;
                return Ok(Some((self.number, Err(Unread::TooLong(self.most_bytes)))));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let line = std::str::from_utf8(self.line.trim_ascii()).map_err(|_| Unread::NotText);
        Ok(Some((self.number, line.map(|line| line.trim_start_matches('\u{feff}')))))
    }
}

/// The files to read: those named, and of each folder the recordings in it, by name.
///
/// # Errors
/// When a name leads nowhere, or a folder holds no recording.
pub fn files(named: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        collect(path, FOLDER_DEPTH, &mut found)?;
        if found.is_empty() {
            let why = format!("no file in {} ends in {}", path.display(), ENDINGS.join(", "));
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// Folders below folders: agents keep their sessions by day or by project.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_recording(&path) {
            found.push(path);
        } else if depth > 0 && path.is_dir() && !path.is_symlink() {
            collect(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn is_recording(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| ENDINGS.iter().any(|ending| name.ends_with(ending))) && path.is_file()
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let (length, is_end) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(file: &[u8], most_bytes: usize) -> Vec<(u64, Result<String, Unread>)> {
        let mut lines = Lines { most_bytes, ..Lines::new(file).unwrap() };
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next_line().unwrap() {
            found.push((number, line.map(str::to_owned)));
        }
        found
    }

    #[test]
    fn lines_are_counted_and_empty_ones_passed_over() {
        let read = all(b"\xef\xbb\xbfone\r\n\n  two\n\xff\nthree", 100);
        let expected = [(1, Ok("one")), (3, Ok("two")), (4, Err(Unread::NotText)), (5, Ok("three"))];
        assert_eq!(read, expected.map(|(number, line)| (number, line.map(str::to_owned))));
    }

    #[test]
    fn a_line_at_the_bound_is_read_and_one_past_it_is_not() {
        let too_long = Err(Unread::TooLong(4));
        assert_eq!(all(b"1234\n12345\n1", 4), [(1, Ok("1234".into())), (2, too_long.clone()), (3, Ok("1".into()))]);
        assert_eq!(all(b"1234", 4), [(1, Ok("1234".into()))]);
        assert_eq!(all(b"12345", 4), [(1, too_long)]);
        assert_eq!(Lines::new(&b""[..]).unwrap().most_bytes, REPLAY_LINE_BYTES);
    }

    #[test]
    fn compressed_files_read_the_same() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"one\ntwo\n").unwrap();
        let gzip = gzip.finish().unwrap();
        let twice = [gzip.as_slice(), gzip.as_slice()].concat();
        assert_eq!(all(&twice, 100).len(), 4, "what is put together with `cat` is read to its end");
        let zstd = zstd::encode_all(&b"one\ntwo\n"[..], 1).unwrap();
        assert_eq!(all(&zstd, 100), all(&gzip, 100));
    }

    #[test]
    fn a_folder_stands_for_the_recordings_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(files(&[folder.path().to_owned()]).unwrap_err().to_string().contains(".jsonl.gz"));
        for name in ["b.jsonl", "a.jsonl.gz", "notes.md"] {
            fs::write(path(name), "x").unwrap();
        }
        let named = [path("notes.md"), folder.path().to_owned()];
        assert_eq!(files(&named).unwrap(), [path("notes.md"), path("a.jsonl.gz"), path("b.jsonl")]);
    }
}
