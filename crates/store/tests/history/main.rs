//! The record of events: what every kind of history must do, what becomes of it in crashes and faults, and several nodes on one.

#[path = "../common/mod.rs"]
mod common;

mod acts;
mod contract;
mod crash;
mod faults;
mod journal;
mod journal_crash;
mod nodes;
mod reading;
mod recording_speed;
mod retention;
mod sending_speed;
mod series;
mod shared;
mod spent;
