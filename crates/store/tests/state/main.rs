//! Runs under way, money and rates: what every kind of state must do, in memory and in Redis.

#[path = "../common/mod.rs"]
mod common;
#[path = "../contract/mod.rs"]
mod contract;

mod following;
mod money;
mod rates;
mod runs;
