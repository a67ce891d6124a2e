//! The directory that holds everything durable. It belongs to one process at a time.
//!
//! The lock is the system's own and goes with the process, so nothing has to be cleaned up after a crash.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// An existing data directory, locked for this process until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Makes the directory where it is missing, readable by its owner only, and locks it.
    ///
    /// # Errors
    /// When it cannot be made or written, or another process holds it.
    pub fn open(path: &Path) -> Result<DataDir, StoreError> {
        create_private_dir(path)?;
        let lock_path = path.join("lock");
        let mut lock = private_file()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(StoreError::file(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { path: path.to_owned(), holder: holder_of(&mut lock) });
            }
            Err(TryLockError::Error(source)) => return Err(StoreError::File { path: lock_path, source }),
        }
        // The number is only for the other process's message, so a full disk is no reason to stop here.
        let _ = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| write!(lock, "{}", std::process::id()));
        Ok(DataDir { path: path.to_owned(), lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that is being started has it as well, until it runs.
        let _ = self.lock.unlock();
    }
}

/// Makes a directory and its parents, open to their owner only. An existing one stays as it is.
pub(crate) fn create_private_dir(path: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).map_err(StoreError::file(path))
}

/// Options that make a new file readable by its owner only.
pub(crate) fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

fn holder_of(lock: &mut File) -> String {
    let mut pid = String::new();
    let read = lock.take(20).read_to_string(&mut pid);
    if read.is_ok() && !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) {
        format!(" (process {pid})")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let dir = DataDir::open(&path).unwrap();
        assert_eq!(dir.path(), path);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(fs::metadata(path.join("lock")).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_second_holder_is_told_who_has_it_and_what_to_do() {
        let parent = tempfile::tempdir().unwrap();
        let first = DataDir::open(parent.path()).unwrap();
        let message = DataDir::open(parent.path()).unwrap_err().to_string();
        assert!(message.contains(&parent.path().display().to_string()), "{message}");
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        assert!(message.contains("--data DIR"), "{message}");
        drop(first);
        assert!(DataDir::open(parent.path()).is_ok());
    }

    #[test]
    fn it_is_free_though_a_program_that_is_being_started_has_its_file() {
        let parent = tempfile::tempdir().unwrap();
        let first = DataDir::open(parent.path()).unwrap();
        // As between fork and exec.
        let inherited = first.lock.try_clone().unwrap();
        drop(first);
        assert!(DataDir::open(parent.path()).is_ok());
        drop(inherited);
    }
}
