//! A configuration in a directory of its own, for tests.

use std::path::PathBuf;

use clap::Parser;

use super::{Flags, Loaded, Problems, Sources, load};

/// A directory with a `sprag.toml`, and variables and flags beside it.
pub(super) struct Sandbox {
    pub(super) dir: tempfile::TempDir,
    pub(super) sources: Sources,
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

impl Sandbox {
    pub(super) fn new(text: &str) -> Sandbox {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("sprag.toml"), text).unwrap();
        let sources = Sources { dir: dir.path().to_owned(), ..Sources::default() };
        Sandbox { dir, sources }
    }

    pub(super) fn with_env(mut self, variables: &[(&str, &str)]) -> Sandbox {
        self.sources.environment = variables.iter().copied().collect();
        self
    }

    pub(super) fn with_flags(mut self, arguments: &[&str]) -> Sandbox {
        self.sources.flags = Cli::try_parse_from([&["sprag"], arguments].concat()).unwrap().flags;
        self
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn load(&self) -> Result<Loaded, Problems> {
        load(&self.sources)
    }

    /// What the user sees, with the directory taken out.
    pub(super) fn complaint(&self) -> String {
        let dir = format!("{}/", self.dir.path().display());
        self.load().expect_err("expected problems").to_string().replace(&dir, "")
    }
}
