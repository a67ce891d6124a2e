//! `sprag check`: what is wrong with a configuration, all of it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::config::{Flags, Sources, load};

pub(super) fn check(file: Option<PathBuf>, as_json: bool, flags: Flags) -> Result<ExitCode> {
    let config = file.or_else(|| flags.config.clone());
    let sources = Sources::process(Flags { config, ..flags });
    let mut out = std::io::stdout().lock();
    let (problems, is_usable, file) = match load(&sources) {
        Ok(loaded) => (loaded.warnings, true, loaded.file),
        Err(problems) => (problems.0, false, sources.file()),
    };
    if as_json {
        serde_json::to_writer_pretty(&mut out, &problems)?;
        writeln!(out)?;
    } else {
        for problem in &problems {
            writeln!(out, "{problem}\n")?;
        }
        let what =
            file.map_or_else(|| "no configuration file: the defaults".to_owned(), |file| file.display().to_string());
        match (is_usable, problems.len()) {
            (true, 0) => writeln!(out, "{what}: ok")?,
            (true, warnings) => writeln!(out, "{what}: ok, with warnings: {warnings}")?,
            (false, problems) => writeln!(out, "{what}: problems: {problems}")?,
        }
    }
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
