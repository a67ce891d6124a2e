//! Prices set in the configuration.

use serde_json::json;

use super::{prices, usd};
use crate::limits::{MODEL_NAME_BYTES, PRICE_OVERRIDES};
use crate::price::{PriceOverride, Prices};

fn over(value: serde_json::Value) -> PriceOverride {
    serde_json::from_value(value).unwrap()
}

fn with(overrides: &[PriceOverride]) -> Prices {
    prices().with_overrides(overrides).unwrap()
}

fn input_of(prices: &Prices, provider: &str, model: &str) -> Option<f64> {
    prices.find(provider, model).map(|price| price.rates.input.as_usd_per_million())
}

#[test]
fn numbers_and_strings_are_exact() {
    let taken = over(json!({"model": "m", "input": 0.1, "output": "1.5", "cache_read": 1, "cache_write": 0.000001}));
    assert_eq!((taken.input, taken.output), (usd("0.1"), usd("1.5")));
    assert_eq!((taken.cache_read, taken.cache_write), (Some(usd("1")), Some(usd("0.000001"))));
    assert_eq!(taken.reasoning, None);
}

#[test]
fn what_cannot_be_a_price_is_refused() {
    for wrong in [
        json!({"model": "m", "input": 1}),
        json!({"model": "m", "input": -1, "output": 1}),
        json!({"model": "m", "input": "cheap", "output": 1}),
        json!({"model": "m", "input": 1e-7, "output": 1}),
        json!({"model": "m", "input": true, "output": 1}),
        json!({"model": "m", "input": 1, "output": 1, "ouput": 2}),
    ] {
        assert!(serde_json::from_value::<PriceOverride>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn an_override_wins_over_the_list_and_covers_dated_names() {
    let prices = with(&[over(json!({"model": "GPT-4o", "input": 2, "output": 8}))]);
    assert_eq!(input_of(&prices, "openai", "gpt-4o"), Some(2.0));
    assert_eq!(input_of(&prices, "openrouter", "openai/gpt-4o-2024-08-06"), Some(2.0));
    assert_eq!(input_of(&prices, "openai", "gpt-4o-2024-05-13"), Some(2.0));
    assert_eq!(input_of(&prices, "openai", "gpt-4o-mini"), Some(0.15));
    // The list says how long answers get; the price of cached tokens is not guessed.
    let price = prices.find("openai", "gpt-4o").unwrap();
    assert_eq!((price.max_output_tokens, price.rates.cache_read), (Some(16_384), None));
}

#[test]
fn the_more_specific_override_wins() {
    let prices = with(&[
        over(json!({"model": "*", "input": 1, "output": 1})),
        over(json!({"model": "gpt-*", "input": 2, "output": 1})),
        over(json!({"model": "gpt-4o", "input": 3, "output": 1})),
        over(json!({"model": "gpt-4o", "provider": "azure", "input": 4, "output": 1})),
        over(json!({"model": "gpt-4o-2024-05-13", "input": 5, "output": 1})),
        over(json!({"model": "gpt-*-mini", "provider": "azure", "input": 6, "output": 1})),
        over(json!({"model": "ft:gpt-4o-mini-2024-07-18:org::id", "input": 7, "output": 1})),
    ]);
    for (provider, model, input) in [
        ("azure", "gpt-4o", 4.0),
        ("openai", "gpt-4o", 3.0),
        ("azure", "gpt-4o-2024-05-13", 5.0),
        ("azure", "gpt-9-mini", 6.0),
        ("openai", "gpt-9-mini", 1.0),
        ("azure", "gpt-9-mini-x", 1.0),
        ("openai", "ft:gpt-4o-mini-2024-07-18:org::id", 7.0),
        ("openai", "ft:gpt-4o-mini-2024-07-18:org::other", 1.0),
    ] {
        assert_eq!(input_of(&prices, provider, model), Some(input), "{provider} {model}");
    }
}

#[test]
fn patterns_match_whole_names() {
    let prices = with(&[over(json!({"model": "a*b*c", "input": 1, "output": 1}))]);
    for (model, is_priced) in
        [("abc", true), ("a-b-c", true), ("abbcc", true), ("ac", false), ("abcd", false), ("xabc", false), ("a", false)]
    {
        assert_eq!(prices.find("mine", model).is_some(), is_priced, "{model}");
    }
    let prices = with(&[over(json!({"model": "aba*aba", "input": 1, "output": 1}))]);
    assert!(prices.find("mine", "aba").is_none());
    assert!(prices.find("mine", "abaaba").is_some());
}

#[test]
fn a_local_model_is_free_only_when_the_configuration_says_so() {
    let prices = with(&[over(json!({"provider": "ollama", "model": "*", "input": 0, "output": 0}))]);
    assert!(prices.find("ollama", "llama-9:8b").unwrap().is_free());
    assert!(prices.find("vllm", "llama-9:8b").is_none());
}

#[test]
fn new_overrides_replace_the_old() {
    let first = with(&[over(json!({"model": "mine", "input": 1, "output": 1}))]);
    let second = first.with_overrides(&[]).unwrap();
    assert!(second.find("x", "mine").is_none());
    assert_eq!((first.overrides().len(), second.overrides().len()), (1, 0));
}

#[test]
fn a_bad_override_is_named() {
    let good = over(json!({"model": "m", "input": 1, "output": 1}));
    let tier = PriceOverride { tier_input: Some(usd("1")), ..good.clone() };
    let error = prices().with_overrides(&[good.clone(), tier]).unwrap_err();
    assert_eq!(error.to_string(), "price[1] (`m`): a tier price without `tier_above_tokens`");
    let named = |length| PriceOverride { model: "m".repeat(length), ..good.clone() };
    assert!(prices().with_overrides(&[named(MODEL_NAME_BYTES)]).is_ok());
    assert!(prices().with_overrides(&[named(MODEL_NAME_BYTES + 1)]).is_err());
    assert!(prices().with_overrides(&[named(0)]).is_err());
}

#[test]
fn there_is_a_bound() {
    let many = vec![over(json!({"model": "m*", "input": 1, "output": 1})); PRICE_OVERRIDES + 1];
    assert!(prices().with_overrides(&many[1..]).is_ok());
    assert_eq!(prices().with_overrides(&many).unwrap_err().index, PRICE_OVERRIDES);
}
