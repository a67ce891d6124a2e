//! Runs as their clients make them: which calls belong together, and what they cost.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may end by a panic and print")]

mod captures;
mod cost;
mod dialects;
mod evidence;
mod names;
mod restart;
mod retries;
mod say;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod stage;
mod trees;
mod twins;
