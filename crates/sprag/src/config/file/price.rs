//! `[prices]` and `[[price]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimal::Decimal;

/// What happens to calls that have no price.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// A call to a model without a price: "allow" and record it as unpriced, or "block".
    pub unpriced: Unpriced,
}

/// What happens to a call to a model without a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unpriced {
    /// Forwarded, and recorded as unpriced.
    #[default]
    Allow,
    /// Refused.
    Block,
}

/// The prices of one model.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// The model's name, as calls write it.
    #[schemars(example = &"my-model")]
    pub model: Option<String>,
    /// Only for this provider. Without one: for every provider.
    #[schemars(example = &"vllm")]
    pub provider: Option<String>,
    /// Input tokens.
    #[schemars(example = &"0.25")]
    pub input: Option<Decimal>,
    /// Output tokens.
    #[schemars(example = &"1.00")]
    pub output: Option<Decimal>,
    /// Input tokens read from a cache. Without one: as input.
    #[schemars(example = &"0.025")]
    pub cache_read: Option<Decimal>,
    /// Input tokens written to a cache. Without one: as input.
    #[schemars(example = &"0.3125")]
    pub cache_write: Option<Decimal>,
    /// Input tokens written to a cache that lives an hour. Without one: as cache_write.
    #[schemars(example = &"0.50")]
    pub cache_write_1h: Option<Decimal>,
    /// Reasoning tokens. Without one: as output.
    #[schemars(example = &"1.00")]
    pub reasoning: Option<Decimal>,
    /// Input tokens that are audio. Without one: as input.
    #[schemars(example = &"10.00")]
    pub audio_input: Option<Decimal>,
    /// Output tokens that are audio. Without one: as output.
    #[schemars(example = &"20.00")]
    pub audio_output: Option<Decimal>,
    /// Long prompts: from more than this many input tokens on, the prices below hold.
    #[schemars(example = 200_000)]
    pub tier_above_tokens: Option<u64>,
    /// Input tokens of a long prompt.
    #[schemars(example = &"0.50")]
    pub tier_input: Option<Decimal>,
    /// Output tokens after a long prompt.
    #[schemars(example = &"1.50")]
    pub tier_output: Option<Decimal>,
    /// Input tokens of a long prompt that were read from a cache.
    #[schemars(example = &"0.05")]
    pub tier_cache_read: Option<Decimal>,
    /// Input tokens of a long prompt that were written to a cache.
    #[schemars(example = &"0.625")]
    pub tier_cache_write: Option<Decimal>,
}
