//! Virtual keys: who is let in, what the provider sees, whose runs they are, and who makes and takes them back.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

mod admin;
#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod commands;
mod durable;
mod entry;
mod injection;
mod place;
mod runs;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
