//! The Sprag program: a proxy between AI agents and the LLM APIs they call.
//!
//! - [`gateway`]: a request's way through, step by step; start reading at [`gateway::handle`]
//! - [`server`]: both listeners, from start to drain
//! - [`admin`]: the dashboard and the admin API, on their own listener
//! - [`alerts`]: who is told what happens
//! - [`metrics`], [`otel`]: what is counted, and traces
//! - [`config`]: the configuration as written, and as used
//! - [`replay`]: recorded runs, judged offline
//! - [`run_command`]: one command, guarded while it runs
//! - [`app`]: what everything shares

pub mod acts;
pub mod admin;
pub mod adopt;
pub mod alerts;
pub mod app;
pub mod budgets;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core_file;
pub mod demo;
#[cfg(test)]
mod dlp_page;
pub mod gateway;
pub mod jwt;
pub mod link;
pub mod live;
pub mod logging;
pub mod metrics;
pub mod otel;
pub mod policies;
pub mod reload;
pub mod replay;
pub mod run_command;
pub mod serve;
pub mod server;
pub mod show;
mod spent;
pub mod tokens;
pub mod upstream;
pub mod vaults;
pub mod windows;
