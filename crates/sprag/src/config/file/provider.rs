//! `[providers.NAME]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::wire::Family;

use crate::config::secret::Secret;

/// One API behind Sprag. What a preset knows may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// Stands before the path that the client sent.
    #[schemars(example = &"https://llm.example.com")]
    pub base_url: Option<String>,
    /// Wire format: "openai", "anthropic" or "gemini".
    #[schemars(example = &"openai", with = "Option<String>", extend("enum" = ["openai", "anthropic", "gemini"]))]
    pub dialect: Option<Family>,
    /// Where a key held by Sprag goes: "bearer", "x-api-key", "x-goog-api-key", "api-key", "header:NAME" or "none".
    #[schemars(example = &"header:x-company-key")]
    pub auth: Option<String>,
    /// Key held by Sprag, sent for callers with a virtual key. Rather use one of the next two.
    #[schemars(example = &"sk-...")]
    pub api_key: Option<Secret>,
    /// Environment variable that holds the key.
    #[schemars(example = &"OPENAI_API_KEY")]
    pub api_key_env: Option<String>,
    /// File that holds the key.
    #[schemars(example = &"/run/secrets/openai")]
    pub api_key_file: Option<String>,
    /// Headers to set on every request to this provider.
    pub headers: BTreeMap<String, Secret>,
    /// Paths that live elsewhere there; the longest that fits is taken. Presets bring their own.
    #[schemars(extend("examples" = [{"/v1": "/openai/v1"}]))]
    pub rewrite: Option<BTreeMap<String, String>>,
    /// Ask for usage in chat streams; the extra chunk is hidden from clients that did not ask.
    #[schemars(example = true)]
    pub stream_usage: Option<bool>,
    /// Time-outs, in milliseconds.
    pub timeouts: Timeouts,
    /// HTTP/2: "auto" if the server offers it over TLS, "never", "prior_knowledge" always, without TLS too.
    pub http2: Http2,
    /// PEM file of certificate authorities to trust for this provider, instead of the system's.
    #[schemars(example = &"/etc/ssl/company-ca.pem")]
    pub ca_file: Option<String>,
    /// Provider in the price table. Without one: its own name.
    #[schemars(example = &"openai")]
    pub price_as: Option<String>,
}

/// How long a provider may take.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until the connection stands.
    #[schemars(range(min = 1, max = 600_000))]
    pub connect_ms: u64,
    /// From the request to the first byte of the answer.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub first_byte_ms: u64,
    /// Between two pieces of the answer.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub idle_ms: u64,
    /// The whole call. 0 is no limit.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub total_ms: u64,
}

/// When to speak HTTP/2 to a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Http2 {
    /// If the server offers it over TLS: all calls then share one connection and its bound on streams.
    Auto,
    /// HTTP/1.1 only, a connection for each call under way.
    #[default]
    Never,
    /// Always, without TLS too.
    PriorKnowledge,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { connect_ms: 10_000, first_byte_ms: 600_000, idle_ms: 300_000, total_ms: 0 }
    }
}
