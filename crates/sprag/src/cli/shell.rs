//! `sprag completions` and `sprag man`: what shells and readers want to know about the commands.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use clap_mangen::{Man, generate_to};

use super::Cli;

/// Prints what makes a shell complete the commands.
pub(super) fn completions(shell: Shell) -> Result<ExitCode> {
    // Into memory first: it panics where it cannot write.
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "sprag", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes one for every command into a folder.
pub(super) fn man(dir: Option<PathBuf>) -> Result<ExitCode> {
    match dir {
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page)?;
            io::stdout().lock().write_all(&page)?;
        }
        Some(dir) => {
            fs::create_dir_all(&dir).with_context(|| format!("making the folder {}", dir.display()))?;
            generate_to(Cli::command(), &dir).with_context(|| format!("writing into {}", dir.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
