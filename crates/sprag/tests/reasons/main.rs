//! Every reason for which a policy stops a call, provoked for real, in every dialect, whole and streamed.
//!
//! The cases and the configuration that provokes them are in `tests/clients/reasons`: the suites of the SDKs read the
//! same table and hold it against the exceptions that are raised.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod document;
mod every_reason;
mod place;
mod shapes;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod table;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;
