//! Answers on file, read as JSON and as streams.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a file that cannot be read fails the test")]

mod chunking;
mod fixture;
mod golden;
