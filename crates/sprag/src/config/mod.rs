//! Configuration: one TOML file, the environment and a few flags, turned into [`Settings`].
//!
//! The way from text to settings is a straight line:
//!
//! 1. `document` reads the file and remembers where each key stands;
//! 2. `environment` and `flags` add their layers on top: file < environment < flags;
//! 3. `check` compares everything with the `schema`, which is derived from the types in [`mod@file`];
//! 4. `resolve` makes [`Settings`] of it, in which nothing is left open that could be decided here.
//!
//! Every step collects [`Problem`]s and none stops at the first. Adding a section: a struct in [`mod@file`], its
//! counterpart in `settings`, a few lines in `resolve`, and the keys in `sprag.example.toml` (a test names what is
//! missing). Environment names, error messages and the schema follow by themselves.
//!
//! Nothing here watches files, opens listeners or logs.

mod admin_token;
pub(crate) mod agent_override;
mod alerts;
mod base_url;
mod check;
mod document;
mod environment;
pub mod file;
mod flags;
mod load;
pub(crate) mod made_alerts;
mod presets;
mod problem;
mod resolve;
mod route_rule;
mod schema;
mod secret;
mod settings;
mod values;

#[cfg(test)]
mod example;
#[cfg(test)]
mod sandbox;

pub(crate) use admin_token::keep_link_key;
pub use admin_token::{KeptToken, keep_admin_token, kept_admin_token};
pub use alerts::{Alerts, Channel, Mail, SecretUrl, Target};
pub use base_url::BaseUrl;
pub use environment::Environment;
pub use flags::{Flags, ProviderFlag};
pub use load::{Loaded, Reads, Sources, load, needs_restart};
pub use presets::{PRESETS, Preset, is_reserved, preset};
pub use problem::{Level, Problem, Problems};
pub use route_rule::{PathSelector, RouteRule};
pub use schema::schema;
pub(crate) use secret::MASK;
pub use secret::Secret;
pub use settings::{
    Admin, Auth, Events, GlobalBudget, Log, Policies, Prices, Provider, Proxy, Responses, Routing, Runs, Settings,
    State, Telemetry, Timeouts, Traces,
};
pub use values::{ConfigValue, Origin, Values};
