//! `[prices]` and `[[price]]`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

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
    pub input: Option<UsdPerMillion>,
    /// Output tokens.
    #[schemars(example = &"1.00")]
    pub output: Option<UsdPerMillion>,
    /// Input tokens read from a cache. Without one: as input.
    #[schemars(example = &"0.025")]
    pub cache_read: Option<UsdPerMillion>,
    /// Input tokens written to a cache. Without one: as input.
    #[schemars(example = &"0.3125")]
    pub cache_write: Option<UsdPerMillion>,
    /// Input tokens written to a cache that lives an hour. Without one: as cache_write.
    #[schemars(example = &"0.50")]
    pub cache_write_1h: Option<UsdPerMillion>,
    /// Reasoning tokens. Without one: as output.
    #[schemars(example = &"1.00")]
    pub reasoning: Option<UsdPerMillion>,
    /// Input tokens that are audio. Without one: as input.
    #[schemars(example = &"10.00")]
    pub audio_input: Option<UsdPerMillion>,
    /// Output tokens that are audio. Without one: as output.
    #[schemars(example = &"20.00")]
    pub audio_output: Option<UsdPerMillion>,
    /// Long prompts: from more than this many input tokens on, the prices below hold.
    #[schemars(example = 200_000)]
    pub tier_above_tokens: Option<u64>,
    /// Input tokens of a long prompt.
    #[schemars(example = &"0.50")]
    pub tier_input: Option<UsdPerMillion>,
    /// Output tokens after a long prompt.
    #[schemars(example = &"1.50")]
    pub tier_output: Option<UsdPerMillion>,
    /// Input tokens of a long prompt that were read from a cache.
    #[schemars(example = &"0.05")]
    pub tier_cache_read: Option<UsdPerMillion>,
    /// Input tokens of a long prompt that were written to a cache.
    #[schemars(example = &"0.625")]
    pub tier_cache_write: Option<UsdPerMillion>,
}

/// Dollars per million tokens, as a number or a text; kept as the decimal that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UsdPerMillion(pub String);

impl<'de> Deserialize<'de> for UsdPerMillion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecimalVisitor)
    }
}

impl JsonSchema for UsdPerMillion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "UsdPerMillion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["number", "string"]})
    }
}

struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = UsdPerMillion;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dollars per million tokens")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<UsdPerMillion, E> {
        Ok(UsdPerMillion(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<UsdPerMillion, E> {
        Ok(UsdPerMillion(value.to_string()))
    }

    /// The shortest text that reads back as the same number is the decimal that was written, up to fifteen digits.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<UsdPerMillion, E> {
        Ok(UsdPerMillion(value.to_string()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<UsdPerMillion, E> {
        Ok(UsdPerMillion(value.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_keep_their_decimals() {
        #[derive(Deserialize)]
        struct Line {
            price: UsdPerMillion,
        }
        for (written, kept) in
            [("0.1", "0.1"), ("3", "3"), ("\" 2.50 \"", "2.50"), ("0.000001", "0.000001"), ("12.3456", "12.3456")]
        {
            let line: Line = toml::from_str(&format!("price = {written}")).unwrap();
            assert_eq!(line.price.0, kept, "{written}");
        }
    }
}
