//! What stops a run: kills, pauses, limits, inactive agents. Between calls, in the middle of them, and for good.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

mod agents;
mod between;
#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod descriptors;
mod durable;
mod in_flight;
mod limits;
mod refused;
mod scene;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
