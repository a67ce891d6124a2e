//! Sensitive data through the whole of Sprag: what the provider sees, what the client gets, what is on record.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod deliveries;
mod example;
mod odd_answers;
mod planted;
mod planted_names;
#[path = "../alerts/receiver.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod receiver;
mod reversible;
mod scan;
mod scene;
#[path = "../reasons/shapes.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod shapes;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod stops;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
