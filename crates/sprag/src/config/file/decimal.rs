//! Decimals that stay what was written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A number, as a number or a text; kept as the decimal that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Decimal(pub String);

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecimalVisitor)
    }
}

impl JsonSchema for Decimal {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["number", "string"]})
    }
}

struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Decimal, E> {
        Ok(Decimal(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Decimal, E> {
        Ok(Decimal(value.to_string()))
    }

    /// The shortest text that reads back as the same number is the decimal that was written, up to fifteen digits.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Decimal, E> {
        Ok(Decimal(value.to_string()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Decimal, E> {
        Ok(Decimal(value.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_keep_their_decimals() {
        #[derive(Deserialize)]
        struct Line {
            price: Decimal,
        }
        for (written, kept) in
            [("0.1", "0.1"), ("3", "3"), ("\" 2.50 \"", "2.50"), ("0.000001", "0.000001"), ("12.3456", "12.3456")]
        {
            let line: Line = toml::from_str(&format!("price = {written}")).unwrap();
            assert_eq!(line.price.0, kept, "{written}");
        }
    }
}
