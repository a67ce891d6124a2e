//! Money: what is set aside, what is spent, and what is refused because of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod cold;
mod crash;
mod documented;
mod hostile;
mod levels;
mod opening;
mod outrun;
mod purse;
mod schedules;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod stages;
mod storm;
mod unread;
mod windows;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
