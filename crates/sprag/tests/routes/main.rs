//! `[[routes]]`: any other HTTP API behind a whole Sprag.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod documented;
mod http_forms;
mod policy;
mod repeat;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod tools;
