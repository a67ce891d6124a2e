//! Dollars as a JSON number with all their digits.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sprag_core::money::NanoUsd;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An amount that is written as a decimal number, never through a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usd(pub(crate) NanoUsd);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        // A text too, for those whose numbers are floats.
        NanoUsd::parse_usd(number.get().trim_matches('"')).map(Usd).map_err(D::Error::custom)
    }
}

impl PartialSchema for Usd {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^-?[0-9]{1,9}(\.[0-9]{1,9})?$"));
        AnyOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .item(text)
            .description(Some("Dollars, exact to the nano-dollar: answers have a number, orders may have a text."))
            .into()
    }
}

impl ToSchema for Usd {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_digit_both_ways() {
        for (nano, text) in
            [(1, "0.000000001"), (300_000_000, "0.30"), (i64::MAX, "9223372036.854775807"), (-5, "-0.000000005")]
        {
            let amount = Usd(NanoUsd(nano));
            assert_eq!(serde_json::to_string(&amount).unwrap(), text);
            assert_eq!(serde_json::from_str::<Usd>(text).unwrap(), amount);
            assert_eq!(serde_json::from_str::<Usd>(&format!("\"{text}\"")).unwrap(), amount);
        }
    }
}
