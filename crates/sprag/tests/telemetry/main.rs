//! What can be seen of Sprag from outside: the page that Prometheus reads, the traces that a collector gets, the dashboard
//! and the rules that are made of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod access;
#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod bounds;
mod collector;
#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod counted;
mod dashboard;
mod logs;
mod outage;
mod page;
mod planted;
mod promtool;
mod propagation;
mod queues;
mod scene;
mod spans;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
