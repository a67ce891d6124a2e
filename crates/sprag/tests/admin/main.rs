//! The admin side as people and programs meet it: pages, API, login and commands of a live Sprag.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic")]

mod access;
mod adjustments;
mod agents;
mod api;
mod budgets;
mod commands;
mod commands_agents;
mod commands_budgets;
mod commands_kill;
mod commands_top;
mod csrf;
mod evidence;
mod health;
mod kills;
mod live;
mod login;
mod openapi;
mod pages;
mod pages_run;
mod roles;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod till;
mod tokens;
mod verdicts;
mod world;
