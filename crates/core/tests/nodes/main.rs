//! Runs that go over several nodes: a watch that is packed, sent and unpacked sees what one in memory sees, and merging
//! what two nodes saw invents nothing.
//!
//! Besides the recorded runs of the repository, real ones are looked for in `../shared` beside the checkout, or in
//! `SPRAG_SHARED`; without them the tests say that they skip. A part of them is followed each time, and all with
//! `cargo test -p sprag-core --release --test nodes -- --include-ignored`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod cluster;
mod recorded;
mod spread;
mod travel;
