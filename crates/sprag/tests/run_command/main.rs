//! `sprag run` as a person at a terminal meets it: real commands before a scripted provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod endings;
mod environment;
mod families;
mod limits;
mod record;
mod scene;
mod stops;
mod terminal;
