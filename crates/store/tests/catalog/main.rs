//! What the catalog keeps: kills, keys, tokens, standings and corrections, over restarts, at its bounds and on a disk that refuses.

#[path = "../common/mod.rs"]
mod common;

mod adjustments;
mod contract;
mod faults;
mod keys;
mod speed;
mod tokens;
