//! Several Sprags on one real Redis: what is killed, made or set on one of them holds on all.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

mod away;
mod cut;
mod nodes;
mod setup;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod start_and_end;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
