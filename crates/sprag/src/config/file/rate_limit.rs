//! `[[defaults.rate_limits]]`, `[[agents.NAME.rate_limits]]` and `[[routes.rate_limits]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::LimitMode;

/// One limit on how often. Set `requests` or `tokens` with `window_seconds`, or `rps` with `burst`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimit {
    /// What refusals call it. Without one: its place in the list.
    #[schemars(example = &"base")]
    pub name: Option<String>,
    /// Calls with the same values of all of these share the limit: "agent", "key", "ip", "model", "header:NAME", "query:NAME" or "jwt:CLAIM". Without any, all calls share it.
    #[schemars(example = &["agent", "model"])]
    pub limit_keys: Vec<String>,
    /// Requests in any `window_seconds`.
    #[schemars(range(min = 1, max = 4_000_000_000_u64), example = 60)]
    pub requests: Option<u64>,
    /// Tokens in any `window_seconds`: what calls are expected to use, corrected by what they used.
    #[schemars(range(min = 1, max = 4_000_000_000_u64), example = 100_000)]
    pub tokens: Option<u64>,
    /// The length of the window.
    #[schemars(range(min = 1, max = 86_400), example = 60)]
    pub window_seconds: Option<u64>,
    /// A bucket that fills with so many requests a second.
    #[schemars(example = 20.0)]
    pub rps: Option<f64>,
    /// Requests that the bucket holds, no fewer than `rps`. Without one: as many as `rps`, and at least one.
    #[schemars(example = 40.0)]
    pub burst: Option<f64>,
    /// "enforce", "shadow" (only report what it would have stopped) or "off". Without one: enforce.
    #[schemars(example = &"enforce")]
    pub mode: Option<LimitMode>,
}
