//! The list that Sprag is built with.

use super::usd;
use crate::price::Prices;

#[test]
fn is_read_whole() {
    let prices = Prices::embedded();
    let lines = include_str!("../../../data/prices.tsv").lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(prices.rows().len(), lines - 1);
    assert!(prices.rows().len() > 1_000);
    assert!(prices.gathered().is_some_and(|gathered| gathered.len() == "2026-11".len()));
}

#[test]
fn every_row_is_found_under_its_own_name() {
    let prices = Prices::embedded();
    for row in prices.rows() {
        assert!(prices.find(&row.provider, &row.model).is_some_and(|found| std::ptr::eq(found, row)), "{}", row.model);
    }
}

#[test]
fn names_that_people_use_have_a_price() {
    let prices = Prices::embedded();
    for (provider, model, input, output) in [
        ("anthropic", "claude-3-opus-20240229", "15", "75"),
        ("openrouter", "claude-3-opus-20240229", "15", "75"),
        ("openai", "gpt-4-turbo-2024-04-09", "10", "30"),
        ("openai", "gpt-4o-2024-08-06", "2.5", "10"),
        ("openrouter", "anthropic/claude-sonnet-4-5", "3", "15"),
        ("openrouter", "anthropic/claude-sonnet-4.5", "3", "15"),
        ("gemini", "models/gemini-2.5-pro", "1.25", "10"),
        ("anthropic", "claude-opus-5-5", "4", "20"),
        ("vertex", "claude-sonnet-4-5@20250929", "3", "15"),
        ("anthropic", "claude-sonnet-4-5@20250929", "3", "15"),
        ("openai", "ft:gpt-4o-mini-2024-07-18:org::id", "0.3", "1.2"),
        ("azure", "gpt-4o-mini-2024-07-18", "0.15", "0.6"),
        ("azure", "eu/gpt-4o-mini", "0.165", "0.66"),
        ("openrouter", "openai/gpt-4o-mini", "0.15", "0.6"),
        ("openrouter", "deepseek/deepseek-chat", "0.28", "0.42"),
    ] {
        let price = prices.find(provider, model).unwrap_or_else(|| panic!("{provider} {model} has no price"));
        assert_eq!((price.rates.input, price.rates.output), (usd(input), usd(output)), "{provider} {model}");
    }
}

#[test]
fn unknown_models_have_none() {
    let prices = Prices::embedded();
    for (provider, model) in [
        ("openai", "gpt-5.9-ultra"),
        ("openai", "gpt-4o-nano"),
        ("openai", "ft:gpt-5:org::id"),
        ("ollama", "gpt-oss-120b"),
        ("openrouter", "openai/gpt-4o:free"),
        ("azure", "my-deployment"),
    ] {
        assert!(prices.find(provider, model).is_none(), "{provider} {model}");
    }
}

#[test]
fn longest_answers_are_known_where_listed() {
    let prices = Prices::embedded();
    assert_eq!(prices.find("anthropic", "claude-opus-5-5").unwrap().max_output_tokens, Some(128_000));
    assert_eq!(prices.find("anthropic", "claude-3-opus").unwrap().max_output_tokens, None);
}
