//! Secrets that Sprag makes itself: the admin token when none is configured, and the key that links in alerts are signed
//! with.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use rand::Rng;
use rand::distr::Alphanumeric;
use sprag_core::limits;

use super::load::read_bounded;
use super::secret::Secret;

/// The token that belongs to a data directory.
#[derive(Clone, Debug)]
pub struct KeptToken {
    /// The token.
    pub token: Secret,
    /// Whether it was made just now: then it is shown, once.
    pub is_new: bool,
}

const FILE: &str = "admin-token";
const LINK_KEY_FILE: &str = "link-key";
const LENGTH: usize = 40;

/// Reads the token kept in `data_dir`, or makes one there that only the owner can read. The directory must exist.
///
/// # Errors
/// If the file can be neither read nor written.
pub fn keep_admin_token(data_dir: &Path) -> io::Result<KeptToken> {
    keep(data_dir, FILE)
}

/// The key that links in alerts are signed with, made where there is none. The directory must exist.
///
/// # Errors
/// If the file can be neither read nor written.
pub(crate) fn keep_link_key(data_dir: &Path) -> io::Result<Secret> {
    keep(data_dir, LINK_KEY_FILE).map(|kept| kept.token)
}

/// The token kept in `data_dir`, if there is one.
///
/// # Errors
/// If there is a file that cannot be read.
pub fn kept_admin_token(data_dir: &Path) -> io::Result<Option<Secret>> {
    kept(data_dir, FILE)
}

fn keep(data_dir: &Path, file: &str) -> io::Result<KeptToken> {
    if let Some(token) = kept(data_dir, file)? {
        return Ok(KeptToken { token, is_new: false });
    }
    let path = data_dir.join(file);
    let token: String = rand::rng().sample_iter(Alphanumeric).take(LENGTH).map(char::from).collect();
    // Written beside and renamed: a crash leaves either no token or a whole one.
    let draft = data_dir.join(format!("{file}.{}", std::process::id()));
    let result = write_private(&draft, &token).and_then(|()| fs::rename(&draft, &path));
    if result.is_err() {
        let _ = fs::remove_file(&draft);
    }
    result.map(|()| KeptToken { token: Secret::new(token), is_new: true })
}

fn kept(data_dir: &Path, file: &str) -> io::Result<Option<Secret>> {
    let path = data_dir.join(file);
    if !path.try_exists()? {
        return Ok(None);
    }
    let text = read_bounded(&path, limits::SECRET_FILE_BYTES).map_err(io::Error::other)?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(Secret::new))
}

fn write_private(path: &Path, token: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_made_once_and_kept_for_the_owner() {
        let dir = tempfile::tempdir().unwrap();
        let first = keep_admin_token(dir.path()).unwrap();
        assert!(first.is_new);
        assert_eq!(first.token.reveal().len(), LENGTH);
        let second = keep_admin_token(dir.path()).unwrap();
        assert!(!second.is_new);
        assert_eq!(first.token, second.token);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn an_empty_file_is_replaced_and_a_huge_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "\n").unwrap();
        assert!(keep_admin_token(dir.path()).unwrap().is_new);
        let max = usize::try_from(limits::SECRET_FILE_BYTES).unwrap();
        fs::write(dir.path().join(FILE), "x".repeat(max)).unwrap();
        assert_eq!(keep_admin_token(dir.path()).unwrap().token.reveal().len(), max);
        fs::write(dir.path().join(FILE), "x".repeat(max + 1)).unwrap();
        assert!(keep_admin_token(dir.path()).is_err());
    }
}
