//! Prices set in the configuration. They win over the list.
//!
//! An override names a model, or a pattern with `*`, and may be bound to one provider. It replaces the whole price:
//! a cell that it leaves out is absent, not taken from the list. Only the lengths of prompt and answer stay.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::limits::{MODEL_NAME_BYTES, PRICE_OVERRIDES};
use crate::money::PicoPerToken;

use super::names::{self, Spellings};
use super::rates::{Mode, Price, Rates, Tier};

/// One `[[price]]` of the configuration, in dollars per million tokens, each a number or a string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceOverride {
    /// The model, or a pattern in which `*` stands for any characters.
    pub model: String,
    /// The only provider it holds for; every one when absent.
    #[serde(default)]
    pub provider: Option<String>,
    /// Input at the full price.
    #[serde(deserialize_with = "rate")]
    pub input: PicoPerToken,
    /// Output; write 0 for embeddings.
    #[serde(deserialize_with = "rate")]
    pub output: PicoPerToken,
    /// Input read from a cache.
    #[serde(default, deserialize_with = "some_rate")]
    pub cache_read: Option<PicoPerToken>,
    /// Input written to a cache that lives five minutes.
    #[serde(default, deserialize_with = "some_rate")]
    pub cache_write: Option<PicoPerToken>,
    /// Input written to a cache that lives an hour.
    #[serde(default, deserialize_with = "some_rate")]
    pub cache_write_1h: Option<PicoPerToken>,
    /// Output that was reasoning.
    #[serde(default, deserialize_with = "some_rate")]
    pub reasoning: Option<PicoPerToken>,
    /// Input that was audio.
    #[serde(default, deserialize_with = "some_rate")]
    pub audio_input: Option<PicoPerToken>,
    /// Output that was audio.
    #[serde(default, deserialize_with = "some_rate")]
    pub audio_output: Option<PicoPerToken>,
    /// The longest prompt that is still charged at the prices above.
    #[serde(default)]
    pub tier_above_tokens: Option<u64>,
    /// Input of a call with a longer prompt.
    #[serde(default, deserialize_with = "some_rate")]
    pub tier_input: Option<PicoPerToken>,
    /// Output of a call with a longer prompt.
    #[serde(default, deserialize_with = "some_rate")]
    pub tier_output: Option<PicoPerToken>,
    /// Cached input of a call with a longer prompt.
    #[serde(default, deserialize_with = "some_rate")]
    pub tier_cache_read: Option<PicoPerToken>,
    /// Five-minute writes of a call with a longer prompt.
    #[serde(default, deserialize_with = "some_rate")]
    pub tier_cache_write: Option<PicoPerToken>,
    /// The longest prompt.
    #[serde(default)]
    pub max_input_tokens: Option<u64>,
    /// The longest answer.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
}

/// An override that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("price[{index}] (`{model}`): {problem}")]
pub struct BadOverride {
    /// Its place in the configuration, counted from zero.
    pub index: usize,
    /// The model or pattern as written.
    pub model: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The overrides in force.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    prices: Vec<Price>,
    /// Overrides of one model by its spelling; those bound to a provider first.
    named: HashMap<String, Vec<usize>>,
    /// Overrides with a `*`, spelled; those bound to a provider first.
    patterns: Vec<(String, usize)>,
}

impl Overrides {
    /// Takes over what the configuration says; `listed` is the price that a model has without it.
    pub(super) fn new<'p>(
        overrides: &[PriceOverride],
        listed: impl Fn(&str, &str) -> Option<&'p Price>,
    ) -> Result<Overrides, BadOverride> {
        let mut prices = Vec::with_capacity(overrides.len().min(PRICE_OVERRIDES));
        for (index, wanted) in overrides.iter().enumerate() {
            let price = if index < PRICE_OVERRIDES {
                wanted.price(listed(wanted.provider.as_deref().unwrap_or(""), &wanted.model))
            } else {
                Err(format!("more than {PRICE_OVERRIDES} prices"))
            };
            let bad = |problem| BadOverride { index, model: wanted.model.clone(), problem };
            prices.push(price.map_err(bad)?);
        }
        let mut order: Vec<usize> = (0..prices.len()).collect();
        order.sort_by_key(|&at| prices.get(at).is_some_and(|price| price.provider.is_empty()));
        let mut taken = Overrides::default();
        for at in order {
            let Some(price) = prices.get(at) else { continue };
            let spelled = names::spelled(&price.model);
            if spelled.contains('*') {
                taken.patterns.push((spelled, at));
            } else {
                taken.named.entry(spelled).or_default().push(at);
            }
        }
        Ok(Overrides { prices, ..taken })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    pub(super) fn prices(&self) -> impl ExactSizeIterator<Item = &Price> {
        self.prices.iter()
    }

    /// The override of the most specific spelling; a name wins over a pattern, the first pattern over later ones.
    pub(super) fn find(&self, provider: &str, spellings: &Spellings) -> Option<&Price> {
        if self.is_empty() {
            return None;
        }
        let held =
            |at: &usize| self.prices.get(*at).filter(|price| price.provider.is_empty() || *price.provider == *provider);
        let named = spellings.iter().find_map(|(name, _)| self.named.get(name)?.iter().find_map(held));
        named.or_else(|| {
            let mut patterns = self.patterns.iter().filter_map(|(pattern, at)| Some((pattern, held(at)?)));
            let matched = patterns.find(|(pattern, _)| spellings.iter().any(|(name, _)| is_match(pattern, name)));
            matched.map(|(_, price)| price)
        })
    }
}

impl PriceOverride {
    fn price(&self, listed: Option<&Price>) -> Result<Price, String> {
        if self.model.is_empty() || self.model.len() > MODEL_NAME_BYTES {
            return Err(format!("a model of 1 to {MODEL_NAME_BYTES} characters is needed"));
        }
        let cells = [self.tier_input, self.tier_output, self.tier_cache_read, self.tier_cache_write];
        if self.tier_above_tokens.is_none() && cells.iter().any(Option::is_some) {
            return Err("a tier price without `tier_above_tokens`".to_owned());
        }
        Ok(Price {
            provider: self.provider.as_deref().unwrap_or("").into(),
            model: self.model.as_str().into(),
            mode: listed.map_or(Mode::Chat, |listed| listed.mode),
            rates: Rates {
                input: self.input,
                output: self.output,
                cache_read: self.cache_read,
                cache_write: self.cache_write,
                cache_write_1h: self.cache_write_1h,
                reasoning: self.reasoning,
                audio_input: self.audio_input,
                audio_output: self.audio_output,
            },
            tier: self.tier_above_tokens.map(|above_tokens| Tier {
                above_tokens,
                input: self.tier_input,
                output: self.tier_output,
                cache_read: self.tier_cache_read,
                cache_write: self.tier_cache_write,
            }),
            max_input_tokens: self.max_input_tokens.or(listed.and_then(|listed| listed.max_input_tokens)),
            max_output_tokens: self.max_output_tokens.or(listed.and_then(|listed| listed.max_output_tokens)),
            deprecated_on: listed.and_then(|listed| listed.deprecated_on),
        })
    }
}

/// Whether `name` is `pattern` with something in place of each `*`.
fn is_match(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = name.get(at + part.len()..).unwrap_or("");
    }
    name.ends_with(tail)
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PicoPerToken, D::Error> {
    deserializer.deserialize_any(RateVisitor)
}

fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PicoPerToken>, D::Error> {
    rate(deserializer).map(Some)
}

/// Reads numbers by their shortest decimal, which is what was written: 0.1 is exactly a tenth.
struct RateVisitor;

impl Visitor<'_> for RateVisitor {
    type Value = PicoPerToken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dollars per million tokens, such as 0.25 or \"0.25\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PicoPerToken, E> {
        PicoPerToken::parse_usd_per_million(text.trim()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<PicoPerToken, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<PicoPerToken, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<PicoPerToken, E> {
        self.visit_str(&number.to_string())
    }
}
