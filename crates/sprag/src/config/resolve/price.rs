//! `[[price]]`: exact decimals, and no model twice.

use std::collections::BTreeSet;

use sprag_core::limits;
use sprag_core::money::PicoPerToken;
use sprag_core::price::PriceOverride;

use crate::config::file::{Decimal, Price};
use crate::config::problem::Problem;

/// The overrides, in the order written.
pub(super) fn resolve_all(prices: &[Price], problems: &mut Vec<Problem>) -> Vec<PriceOverride> {
    if prices.len() > limits::PRICE_OVERRIDES {
        problems.push(Problem::value("price", format!("more than {} prices", limits::PRICE_OVERRIDES)));
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut overrides = Vec::with_capacity(prices.len());
    for (index, price) in prices.iter().enumerate() {
        let entry = resolve(price, &format!("price[{index}]"), problems);
        if !entry.model.is_empty() && !seen.insert((entry.provider.clone(), entry.model.clone())) {
            let message = format!("\"{}\" has a price already", entry.model);
            problems.push(Problem::value(format!("price[{index}].model"), message));
        }
        overrides.push(entry);
    }
    overrides
}

fn resolve(price: &Price, path: &str, problems: &mut Vec<Problem>) -> PriceOverride {
    if price.model.as_deref().is_none_or(str::is_empty) {
        problems.push(Problem::value(format!("{path}.model"), "a price needs the name of its model"));
    }
    if price.input.is_none() {
        let problem = Problem::value(format!("{path}.input"), "a price needs the price of input tokens");
        problems.push(problem.hint("write input = 0 if they cost nothing"));
    }
    let mut read = |key: &str, text: &Option<Decimal>| {
        let parsed = PicoPerToken::parse_usd_per_million(&text.as_ref()?.0);
        parsed.map_err(|error| problems.push(too_fine(format!("{path}.{key}"), &error.to_string()))).ok()
    };
    let entry = PriceOverride {
        provider: price.provider.clone(),
        model: price.model.clone().unwrap_or_default(),
        input: read("input", &price.input).unwrap_or_default(),
        output: read("output", &price.output).unwrap_or_default(),
        cache_read: read("cache_read", &price.cache_read),
        cache_write: read("cache_write", &price.cache_write),
        cache_write_1h: read("cache_write_1h", &price.cache_write_1h),
        reasoning: read("reasoning", &price.reasoning),
        audio_input: read("audio_input", &price.audio_input),
        audio_output: read("audio_output", &price.audio_output),
        tier_above_tokens: price.tier_above_tokens,
        tier_input: read("tier_input", &price.tier_input),
        tier_output: read("tier_output", &price.tier_output),
        tier_cache_read: read("tier_cache_read", &price.tier_cache_read),
        tier_cache_write: read("tier_cache_write", &price.tier_cache_write),
        ..PriceOverride::default()
    };
    let tier = [entry.tier_input, entry.tier_output, entry.tier_cache_read, entry.tier_cache_write];
    let has_tier = tier.iter().any(Option::is_some);
    if has_tier && price.tier_above_tokens.is_none() {
        let problem =
            Problem::value(format!("{path}.tier_above_tokens"), "missing, but prices of long prompts are given");
        problems.push(problem);
    }
    entry
}

fn too_fine(key: String, message: &str) -> Problem {
    Problem::value(key, message).hint("dollars per million tokens, 0 or more, with at most six decimal places")
}
