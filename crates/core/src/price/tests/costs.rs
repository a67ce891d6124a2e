//! Costs to the nano-dollar, worked out by hand. One dollar per million tokens is 1,000 nano-dollars per token.

use super::{price_of, prices};
use crate::money::{NanoUsd, PicoPerToken};
use crate::price::{Price, Prices, cost};
use crate::usage::Usage;

fn cost_of(provider: &str, model: &str, usage: Usage) -> NanoUsd {
    cost(&price_of(provider, model), &usage)
}

#[test]
fn nothing_costs_nothing() {
    for price in prices().rows() {
        assert_eq!(cost(price, &Usage::default()), NanoUsd::ZERO, "{}", price.model);
    }
}

#[test]
fn openai_chat_plain() {
    // 1,234 * 2,500 + 56 * 10,000 = 3,085,000 + 560,000
    let usage = Usage { input: 1_234, output: 56, ..Usage::default() };
    assert_eq!(cost_of("openai", "gpt-4o", usage), NanoUsd(3_645_000));
}

#[test]
fn openai_chat_with_a_cached_prompt() {
    // 100 * 150 + 1,024 * 75 + 7 * 600 = 15,000 + 76,800 + 4,200
    let usage = Usage { input: 100, cache_read: 1_024, output: 7, ..Usage::default() };
    assert_eq!(cost_of("openai", "gpt-4o-mini", usage), NanoUsd(96_000));
}

#[test]
fn anthropic_with_both_cache_writes() {
    // 3 * 4,000 + 10,000 * 200 + 2,000 * 5,000 + 500 * 8,000 + 400 * 20,000
    // = 12,000 + 2,000,000 + 10,000,000 + 4,000,000 + 8,000,000
    let usage = Usage {
        input: 3,
        cache_read: 10_000,
        cache_write: 2_000,
        cache_write_1h: 500,
        output: 400,
        ..Usage::default()
    };
    assert_eq!(cost_of("anthropic", "claude-opus-5-5", usage), NanoUsd(24_012_000));
}

#[test]
fn cache_parts_without_a_price_cost_the_input_price() {
    // gpt-4o-2024-05-13 names no cache prices: (1 + 10 + 100 + 1,000) * 5,000
    let usage = Usage { input: 1, cache_read: 10, cache_write: 100, cache_write_1h: 1_000, ..Usage::default() };
    assert_eq!(cost_of("openai", "gpt-4o-2024-05-13", usage), NanoUsd(5_555_000));
}

#[test]
fn an_hour_falls_back_to_the_price_of_five_minutes() {
    let mut price = price_of("anthropic", "claude-opus-5-5");
    price.rates.cache_write_1h = None;
    // 10 * 5,000
    assert_eq!(cost(&price, &Usage { cache_write_1h: 10, ..Usage::default() }), NanoUsd(50_000));
}

#[test]
fn reasoning_is_part_of_the_output() {
    // No price of its own: 1,000 * 10,000, however much of it was reasoning.
    let usage = Usage { output: 1_000, reasoning: 900, ..Usage::default() };
    assert_eq!(cost_of("openai", "gpt-4o", usage), NanoUsd(10_000_000));
    // Its own price: 100 * 200 + 900 * 500
    assert_eq!(cost_of("dashscope", "qwen-turbo", usage), NanoUsd(470_000));
    // More reasoning than output is counted as all of it: 1,000 * 500
    let usage = Usage { reasoning: 5_000, ..usage };
    assert_eq!(cost_of("dashscope", "qwen-turbo", usage), NanoUsd(500_000));
}

#[test]
fn audio_has_its_own_price_where_the_list_has_one() {
    let usage = Usage { input: 100, audio_input: 60, output: 50, audio_output: 30, ..Usage::default() };
    // 40 * 2,500 + 60 * 32,000 + 20 * 10,000 + 30 * 64,000
    assert_eq!(cost_of("openai", "gpt-audio", usage), NanoUsd(4_140_000));
    // 100 * 2,500 + 50 * 10,000
    assert_eq!(cost_of("openai", "gpt-4o", usage), NanoUsd(750_000));
}

#[test]
fn gemini_below_at_and_above_the_tier() {
    let at = |input| Usage { input, output: 10, reasoning: 4, ..Usage::default() };
    // 199,999 * 1,250 + 10 * 10,000
    assert_eq!(cost_of("gemini", "gemini-2.5-pro", at(199_999)), NanoUsd(250_098_750));
    // 200,000 * 1,250 + 10 * 10,000
    assert_eq!(cost_of("gemini", "gemini-2.5-pro", at(200_000)), NanoUsd(250_100_000));
    // All of it dearer, reasoning included: 200,001 * 2,500 + 10 * 15,000
    assert_eq!(cost_of("gemini", "gemini-2.5-pro", at(200_001)), NanoUsd(500_152_500));
}

#[test]
fn cached_tokens_count_towards_the_tier() {
    // The list names no cached price above the tier: 1 * 2,500 + 200,000 * 125
    let usage = Usage { input: 1, cache_read: 200_000, ..Usage::default() };
    assert_eq!(cost_of("gemini", "gemini-2.5-pro", usage), NanoUsd(25_002_500));
}

#[test]
fn anthropic_above_the_tier() {
    let usage = Usage {
        input: 1_000,
        cache_read: 90_000,
        cache_write: 10_000,
        cache_write_1h: 1_000,
        output: 100,
        ..Usage::default()
    };
    // 1,000 * 500 + 90,000 * 50 + 10,000 * 625 + 1,000 * 1,000 + 100 * 2,500
    // = 500,000 + 4,500,000 + 6,250,000 + 1,000,000 + 250,000; an hour costs 8/5 of five minutes, as below the tier.
    assert_eq!(cost_of("anthropic", "claude-haiku-5-5", usage), NanoUsd(12_500_000));
}

#[test]
fn an_hour_keeps_the_base_price_when_the_tier_names_no_write() {
    let mut price = price_of("anthropic", "claude-haiku-5-5");
    price.tier.as_mut().unwrap().cache_write = None;
    // 100,001 * 200
    assert_eq!(cost(&price, &Usage { cache_write_1h: 100_001, ..Usage::default() }), NanoUsd(20_000_200));
}

#[test]
fn embeddings_have_no_output() {
    // 8,191 * 20
    let usage = Usage { input: 8_191, ..Usage::default() };
    assert_eq!(cost_of("openai", "text-embedding-3-small", usage), NanoUsd(163_820));
}

#[test]
fn prices_per_thousand_as_first_published() {
    let thousand_each = Usage { input: 1_000, output: 1_000, ..Usage::default() };
    for (provider, model, nano_usd) in [
        ("openai", "gpt-4", 90_000_000),              // $0.03 + $0.06
        ("openai", "gpt-4-turbo", 40_000_000),        // $0.01 + $0.03
        ("openai", "gpt-3.5-turbo", 2_000_000),       // $0.0005 + $0.0015
        ("anthropic", "claude-3-opus", 90_000_000),   // $0.015 + $0.075
        ("anthropic", "claude-3-sonnet", 18_000_000), // $0.003 + $0.015
    ] {
        let prices = Prices::embedded();
        let price = prices.find(provider, model).unwrap();
        assert_eq!(cost(price, &thousand_each), NanoUsd(nano_usd), "{model}");
    }
}

#[test]
fn rounds_once_and_not_per_part() {
    let mut price = price_of("openai", "gpt-4o");
    price.rates.input = PicoPerToken(400);
    price.rates.output = PicoPerToken(400);
    // 0.4 + 0.4 nano-dollars are 0.8, which rounds to 1; rounded apart they would be 0.
    assert_eq!(cost(&price, &Usage { input: 1, output: 1, ..Usage::default() }), NanoUsd(1));
}

#[test]
fn absurd_counts_end_at_the_largest_amount() {
    let all = u64::MAX;
    let usage = Usage {
        input: all,
        cache_read: all,
        cache_write: all,
        cache_write_1h: all,
        output: all,
        reasoning: all,
        audio_input: all,
        audio_output: all,
        estimated: false,
    };
    let mut price: Price = price_of("anthropic", "claude-haiku-5-5");
    price.rates.input = PicoPerToken(all);
    price.tier.as_mut().unwrap().cache_read = Some(PicoPerToken(all));
    price.tier.as_mut().unwrap().cache_write = Some(PicoPerToken(all));
    price.tier.as_mut().unwrap().output = Some(PicoPerToken(all));
    assert_eq!(cost(&price, &usage), NanoUsd(i64::MAX));
    // A trillion tokens are still exact: 10^12 * 2,500
    let usage = Usage { input: 1_000_000_000_000, ..Usage::default() };
    assert_eq!(cost_of("openai", "gpt-4o", usage), NanoUsd(2_500_000_000_000_000));
}
