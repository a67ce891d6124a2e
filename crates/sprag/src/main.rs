//! The `sprag` command.

use std::process::ExitCode;

use clap::Parser;
use sprag::cli::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}
