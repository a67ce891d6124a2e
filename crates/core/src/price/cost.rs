//! Tokens times rates, in integers, rounded once.

use crate::money::{NanoUsd, PicoPerToken};
use crate::usage::Usage;

use super::rates::Price;

/// What `usage` costs at `price`. Amounts beyond what [`NanoUsd`] holds come out as its largest value.
#[must_use]
pub fn cost(price: &Price, usage: &Usage) -> NanoUsd {
    let rates = price.charged(usage.prompt_tokens());
    // Parts larger than their whole are a provider's mistake; they never make the rest negative.
    let audio_input = usage.audio_input.min(usage.input);
    let reasoning = usage.reasoning.min(usage.output);
    let audio_output = usage.audio_output.min(usage.output - reasoning);
    let parts = [
        (usage.input - audio_input, rates.input),
        (audio_input, rates.audio_input),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write, rates.cache_write),
        (usage.cache_write_1h, rates.cache_write_1h),
        (usage.output - reasoning - audio_output, rates.output),
        (reasoning, rates.reasoning),
        (audio_output, rates.audio_output),
    ];
    let pico = parts.into_iter().map(in_pico).fold(0, u128::saturating_add);
    NanoUsd::from_pico(pico.min(u128::MAX / 2))
}

/// Two numbers of 64 bits never overflow 128.
fn in_pico((tokens, rate): (u64, PicoPerToken)) -> u128 {
    u128::from(tokens) * u128::from(rate.0)
}
