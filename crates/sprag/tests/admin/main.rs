//! The admin side as people and programs meet it: pages, API, login and commands of a live Sprag.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic")]

mod access;
mod adjustments;
mod agents;
mod apart;
mod api;
mod browser;
mod budgets;
mod check;
mod commands;
mod commands_agents;
mod commands_budgets;
mod commands_kill;
mod commands_top;
mod csrf;
mod evidence;
mod exports;
mod health;
mod kills;
mod listings;
mod live;
mod login;
mod many_agents;
mod old_pages;
mod openapi;
mod overview;
mod pages;
mod pages_agents;
mod pages_keys;
mod pages_reports;
mod pages_run;
mod pages_stops;
mod roles;
mod shared_history;
mod shared_pages;
mod shared_speed;
mod speed;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod streams;
mod till;
mod tokens;
mod verdicts;
mod world;
