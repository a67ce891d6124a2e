//! Catalogs of several nodes on one real Redis: every change reaches all of them, whatever happens to Redis meanwhile.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

mod away;
mod garbage;
mod node;
mod rows;
mod speed;
mod together;
