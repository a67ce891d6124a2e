//! Loops through the whole proxy: the stuck are stopped before the next call is paid for, the working never.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod actions;
mod agent;
mod healthy;
mod retries;
#[path = "../runs/say.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod say;
mod shadow;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../runs/stage.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod stage;
mod stuck;
mod switch;
