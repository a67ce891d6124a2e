//! What a newcomer meets first: the demo, a configuration, what the shell knows, and one's own session logs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod demo;
mod init;
mod logs;
mod shell;

use std::path::Path;
use std::process::{Command, Output};

/// The program with these arguments, in an empty folder and without any variable.
fn sprag(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sprag")).args(arguments).env_clear().current_dir(dir).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
