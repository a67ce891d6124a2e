//! Recorded runs: what `sprag replay` says of them, and that the proxy says the same.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may end by a panic and print")]

mod command;
mod live;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../runs/stage.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod stage;

use std::path::{Path, PathBuf};

/// A recording of our own.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/replay").join(name)
}
