//! Several Sprags that share one Redis act as one. Each test starts a Redis of its own; without `redis-server` they are
//! skipped, and say so.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../detection/agent.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod agent;
#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod clocks;
mod crash;
mod faults;
mod history_away;
mod loops;
mod money;
mod nodes;
mod order;
mod rates;
#[path = "../runs/say.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod say;
mod secrets;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../runs/stage.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod stage;
mod versions;
