//! The proxy as its clients meet it: a Sprag on free ports before a scripted provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod basics;
mod binary;
mod clients_gone;
mod closing;
mod crash;
mod full_disk;
mod http_forms;
mod identity;
mod limits;
mod prices;
mod reload;
mod secrets;
mod signals;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod stops;
mod tls;
mod upstream_cut;
mod upstream_faults;
mod usage;
mod wire;
