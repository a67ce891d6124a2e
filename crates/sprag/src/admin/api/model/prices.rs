//! What a model costs.

use serde::{Deserialize, Serialize};
use sprag_core::money::PicoPerToken;
use sprag_core::price::Price;

/// A page of the prices in force.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct PriceListing {
    /// When the list was gathered, as it says itself.
    pub(crate) gathered: Option<String>,
    pub(crate) items: Vec<PriceRecord>,
    /// Where the next page begins, to be given as `cursor`.
    pub(crate) next: Option<String>,
}

/// A price, in dollars per million tokens.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct PriceRecord {
    /// Empty for a configured price that holds at every provider.
    pub(crate) provider: String,
    /// The pattern, for a configured price.
    pub(crate) model: String,
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: Option<f64>,
    pub(crate) cache_write: Option<f64>,
    pub(crate) cache_write_1h: Option<f64>,
    pub(crate) reasoning: Option<f64>,
    /// Prompts longer than this cost as follows.
    pub(crate) tier_above_tokens: Option<u64>,
    pub(crate) tier_input: Option<f64>,
    pub(crate) tier_output: Option<f64>,
    pub(crate) max_input_tokens: Option<u64>,
    pub(crate) max_output_tokens: Option<u64>,
}

impl From<&Price> for PriceRecord {
    fn from(price: &Price) -> PriceRecord {
        let (rates, usd) = (price.rates, |rate: PicoPerToken| rate.as_usd_per_million());
        PriceRecord {
            provider: price.provider.to_string(),
            model: price.model.to_string(),
            input: usd(rates.input),
            output: usd(rates.output),
            cache_read: rates.cache_read.map(usd),
            cache_write: rates.cache_write.map(usd),
            cache_write_1h: rates.cache_write_1h.map(usd),
            reasoning: rates.reasoning.map(usd),
            tier_above_tokens: price.tier.map(|tier| tier.above_tokens),
            tier_input: price.tier.and_then(|tier| tier.input).map(usd),
            tier_output: price.tier.and_then(|tier| tier.output).map(usd),
            max_input_tokens: price.max_input_tokens,
            max_output_tokens: price.max_output_tokens,
        }
    }
}
